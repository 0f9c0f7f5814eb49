"""Prism as the API: one generated call for each tool of real documents; Prism says whether the request is what the document means."""

import http.client
import json
import os
import re
import subprocess
import threading

import yaml
from autorest import free_port
from drive import Score, Session, Upstream, words

# Of each version and of several generators and trades; none takes Prism longer than some seconds to read.
DOCUMENTS = (
    "apisguru20/amazonaws_cloudformation-5.0.0.json",
    "apisguru20/google_classroom-5.0.0.json",
    "apisguru20/hetras_certification_hotel-6.0.0.json",
    "apisguru20/salesloft-5.0.0.json",
    "apisguru20/weatherbit-5.0.0.json",
    "apisguru20/xero-4.1.1.json",
    "docker/v1.51.yaml",
    "go-openapi/gitea.yaml",
    "go-openapi/fixture-1602-full.yaml",
    "libopenapi/petstorev2-complete.yaml",
    "apisguru30/api.video.json",
    "apisguru30/asana.com.json",
    "apisguru30/etherpad.local.json",
    "apisguru30/mozilla.com__kinto.json",
    "apisguru30/orthanc-server.com.json",
    "apisguru30/paylocity.com.json",
    "apisguru30/slack.com.json",
    "apisguru30/spoonacular.com.json",
    "apisguru30/telegram.org.json",
    "apisguru30/vectara.io.json",
    "libopenapi/petstorev3.json",
    "oxide/nexus.json",
    "readme-examples/3.0/file-uploads.json",
    "readme-examples/3.0/form-data.json",
    "readme-examples/3.0/parameters-style.json",
    "apisguru31/discourse.local__latest.json",
    "apisguru31/vercel.com__0.0.1.json",
    "fastapi/prefect-3.8.8.json",
    "readme-examples/3.1/train-travel.json",
    "scalar-galaxy/latest.yaml",
)
TOOLS = 40
# Values of formats.
TEXTS = {
    "date": "2026-01-02",
    "date-time": "2026-01-02T03:04:05Z",
    "time": "03:04:05Z",
    "duration": "P1D",
    "uuid": "01234567-89ab-4def-8123-456789abcdef",
    "email": "a@example.com",
    "uri": "https://example.com/a",
    "url": "https://example.com/a",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ip": "192.0.2.1",
    "ipv6": "2001:db8::1",
    }
# One of these fits most patterns. "text" is also base64, so it may be a file.
CANDIDATES = ("text", "w", "1", '"1"', "/a", "0" * 12, "bytes 0-0/1")
KNOWN = [
    (r"No supported content types", "Prism: it allows no body if `consumes` of a Swagger 2.0 document names no type"),
    (
        r"body\.[^;]* must be (object|array)|Reserved characters used in request body",
        "Prism: it takes each part of a multipart body for a text, although a part may be JSON or one of several of its name",
    ),
    (r"header\.accept", "Prism: it checks a header parameter named `Accept`, which OpenAPI ignores"),
    (r"weatherbit.*NO_PATH_MATCHED", "the document: a query inside of the path template, which OpenAPI does not allow"),
    (r"trip_id must match format", "the document: an example that does not fit its own format"),
    (r"header\.content-type", "ours, a defect: a header parameter named `Content-Type` is left out in Swagger 2.0 as well, which does not say so"),
    (r"`body` must be an object, because it is sent as a form", "ours: a form whose schema is a text cannot be sent; `check` says so"),
]
APART = [
    (r"^Prism broke off", "Prism ends at the request: an object in a path or in a delimited style"),
    (r"^(UNKNOWN|NO_COMPLEX_OBJECT_TEXT|SCHEMA_TOO_COMPLEX)", "Prism cannot make its reply, and says nothing about the request"),
    (r"^not sent: 'The arguments of", "no call: the document's default does not fit its own schema, or no value is known for a pattern"),
]


def sample(root, schema, depth=0):
    """A value that the schema of a tool accepts: its example, default or constant, else one by its type."""
    if not isinstance(schema, dict):
        return CANDIDATES[0]
    if "$ref" in schema:
        found = root
        for step in schema["$ref"].lstrip("#/").split("/"):
            found = found[step.replace("~1", "/").replace("~0", "~")]
        return sample(root, {**found, **{key: part for key, part in schema.items() if key != "$ref"}}, depth + 1)
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    for name in ("examples", "enum"):
        if schema.get(name):
            return schema[name][0]
    if schema.get("allOf"):
        parts = [sample(root, part, depth + 1) for part in schema["allOf"]]
        rest = {key: part for key, part in schema.items() if key != "allOf"}
        if all(isinstance(part, dict) for part in parts):
            own = sample(root, rest, depth + 1) if "properties" in rest else {}
            return {name: value for part in [*parts, own] for name, value in part.items()}
        return parts[0]
    for name in ("oneOf", "anyOf"):
        if schema.get(name):
            branch = next((part for part in schema[name] if part.get("type") != "null"), schema[name][0])
            rest = {key: part for key, part in schema.items() if key != name}
            value = sample(root, branch, depth + 1)
            if isinstance(value, dict) and "properties" in rest:
                value = sample(root, rest, depth + 1) | value
            return value
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if kind == "object":
        required = schema.get("required", [])
        made = {
            name: sample(root, part, depth + 1)
            for name, part in schema.get("properties", {}).items()
            if part is not False and "not" not in part and (name in required or depth < 3)
        }
        if not made and depth < 3 and isinstance(schema.get("additionalProperties"), dict):
            made = {"key": sample(root, schema["additionalProperties"], depth + 1)}
        return made
    if kind == "array":
        items = schema.get("prefixItems") or [schema.get("items", {})] * max(1, schema.get("minItems", 1))
        return [sample(root, part, depth + 1) for part in items] if depth < 8 else []
    if kind in ("integer", "number"):
        least = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1 if "exclusiveMinimum" in schema else 1)
        return min(max(1, least), schema.get("maximum", max(1, least)))
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    text = TEXTS.get(schema.get("format"), CANDIDATES[0])
    if "pattern" in schema:
        text = next((one for one in CANDIDATES if re.search(schema["pattern"], one)), text)
    text += "x" * (schema.get("minLength", 0) - len(text))
    return text[: schema.get("maxLength", len(text))]


def variables(path):
    """A credential for each security scheme of a document."""
    described = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    schemes = described.get("securityDefinitions") or (described.get("components") or {}).get("securitySchemes") or {}
    made = dict(os.environ)
    for name, scheme in schemes.items():
        basic = scheme.get("type") == "basic" or scheme.get("scheme", "").lower() == "basic"
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "_", name).strip("_").upper()
        made[f"OPENAPI_MCP_AUTH_{words}"] = "user:secret-of-scores" if basic else "secret-of-scores"
    return made


class Prism:
    """Prism with one document, and an upstream before it that keeps the verdict on each request."""

    def __init__(self, folder, path, log):
        self.port = free_port()
        self.command = [
            folder / "node_modules/node/bin/node",
            folder / "node_modules/@stoplight/prism-cli/dist/index.js",
            *("mock", path, "--port", str(self.port)),
        ]
        self.log = log.open("a")
        self.verdicts = []
        self.upstream = Upstream(self.forward)
        self.listening = self.start()

    def start(self):
        self.child = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True)
        listening = any("is listening" in line for line in self.child.stdout)
        # Its log must not fill the pipe.
        threading.Thread(target=self.child.stdout.read, daemon=True).start()
        return listening

    def end(self):
        self.child.kill()
        self.child.wait()

    def forward(self, request):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in ("host", "transfer-encoding", "content-length")}
        try:
            connection.request(request.method, request.target, request.body or None, headers)
            answer = connection.getresponse()
            content = answer.read()
        except OSError as error:
            self.verdicts.append((request, [f"Prism broke off: {error}"]))
            self.end()
            self.start()
            return 502, [], b""
        finally:
            connection.close()
        self.verdicts.append((request, violations(answer, content)))
        return answer.status, [("Content-Type", answer.headers.get("Content-Type") or "text/plain")], content

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        self.log.close()


def violations(answer, content):
    """What Prism says against a request; nothing against its own reply."""
    found = json.loads(answer.headers.get("sl-violations") or "[]")
    if answer.headers.get("Content-Type", "").startswith("application/problem+json"):
        problem = json.loads(content)
        found += problem.get("validation", [])
        if not found:
            return [f"{problem.get('type', '').rpartition('#')[2]}: {problem.get('detail')}"]
    return [f"{'.'.join(map(str, one['location']))}: {one['message']} ({one.get('code')})" for one in found if one["location"][:1] != ["response"]]


def run(options):
    corpus = options.corpus
    if not corpus or not corpus.is_dir():
        print("skipped: prism, because OPENAPI_MCP_CORPUS names no folder")
        return []
    score = Score("prism")
    lines = []
    log = options.cache / "prism-server.txt"
    log.unlink(missing_ok=True)
    for name in DOCUMENTS:
        path = corpus / name
        if not path.is_file():
            print(f"skipped: prism with {name}, which OPENAPI_MCP_CORPUS does not have")
            continue
        with Prism(options.cache / "prism", path, log) as prism:
            if not prism.listening:
                score.failed[name] = "Prism did not start"
                continue
            more = ("--base-url", prism.upstream.url, "--allow-missing-credentials")
            with Session(options.binary, path, *more, env=variables(path), breaker_failures=0, retries=0) as session:
                if not session.started:
                    score.failed[name] = f"the binary did not start: {session.why()}"
                for tool in list(session.tools.values())[:TOOLS]:
                    case = f"{name} {tool['name']}"
                    made = sample(tool["inputSchema"], tool["inputSchema"])
                    prism.verdicts.clear()
                    result = session.call(tool["name"], made)
                    if prism.verdicts:
                        request, found = prism.verdicts[-1]
                        why, sent = "; ".join(found), f"{request.method} {request.target}\t{request.body[:300]!r}"
                    else:
                        why, sent = f"not sent: {words(result)[:300]!r}", json.dumps(made)[:300]
                    lines.append(f"{case}\t{why}\t{sent}")
                    reason = next((reason for pattern, reason in APART if re.search(pattern, why)), None)
                    if reason:
                        score.leave_out(case, reason)
                    elif why:
                        score.failed[case] = f"{why}\t{sent}"
                    else:
                        score.passed.append(case)
    (options.cache / "prism-calls.txt").write_text("\n".join(lines) + "\n")
    score.explain(KNOWN)
    package = json.loads((options.cache / "prism/node_modules/@stoplight/prism-cli/package.json").read_text())
    score.facts |= {"source": f"npm {package['name']}", "version": package["version"], "licence": package["license"]}
    return [score]
