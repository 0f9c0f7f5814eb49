"""TypeSpec's http-specs: what its compiler emits as OpenAPI, called with the values of each scenario; the suite's mock server judges."""

import base64
import json
import os
import re
import subprocess
import time
import urllib.request
from urllib.parse import unquote

from autorest import free_port, sample
from drive import Score, Session, words

VERSIONS = ("3.0.0", "3.1.0", "3.2.0")
METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
# Bodies that a mock judges by itself, and does not name.
FILES = {
    "uploadFileSpecificContentType": ("file", False),
    "uploadFileRequiredFilename": ("file", False),
    "uploadFileArray": ("files", True),
}
KNOWN = [
    (r"ContentNegotiation|StringBody_getAs", "`Accept` names every type of the replies with weights, and calls cannot choose one"),
    (r"nextPage: no operation", "a page's link is not in the document as an operation"),
    (r"QueryContinuation", "TypeSpec's compiler writes no such path: OpenAPI does not allow a query in it"),
    (
        r"PathExpansion|ReservedExpansion",
        "a slash in a path stays encoded unless a rule (`slashes`) allows it; TypeSpec's compiler loses the expansion",
    ),
    (r"Type_Enum_Fixed_String_putUnknownValue", "a value that the enum does not have is refused"),
    (r"SpecialWords_Parameters_constructor", "TypeSpec's compiler fails on this name, so it is another one here"),
    (r"Parameters_Path_optional", "an empty value in a path is refused: it would name another resource"),
    (r"uploadFileJsonContentType", "a defect: a JSON file (`format: binary`, 3.0) is sent as a JSON text with quotes"),
]


def resolved(document, part):
    while isinstance(part, dict) and "$ref" in part:
        found = document
        for step in part["$ref"][2:].split("/"):
            found = found[step.replace("~1", "/").replace("~0", "~")]
        part = found
    return part


def kind_of(document, schema):
    schema = resolved(document, schema) or {}
    for branch in [schema, *schema.get("anyOf", []), *schema.get("allOf", []), *schema.get("oneOf", [])]:
        branch = resolved(document, branch)
        if "type" in branch:
            return branch["type"] if isinstance(branch["type"], str) else branch["type"][0]
    return "object" if "properties" in schema else "string"


def typed(kind, text):
    if kind in ("integer", "number", "boolean") and isinstance(text, str):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text if not isinstance(text, (int, float)) or kind != "string" else str(text)


def parsed(document, parameter, text):
    """The value that a text of the scenario stands for, by the parameter's style."""
    schema = parameter.get("schema", {})
    kind, place = kind_of(document, schema), parameter["in"]
    style = parameter.get("style", "form" if place == "query" else "simple")
    explode = parameter.get("explode", style == "form")
    if "content" in parameter:
        return json.loads(text)
    if isinstance(text, dict):
        inner = resolved(document, schema)
        inner = inner.get("additionalProperties") or inner.get("unevaluatedProperties") or {}
        return {name: typed(kind_of(document, inner), value) for name, value in text.items()}
    if not isinstance(text, str):
        return text
    if style == "matrix":
        text = text.removeprefix(";")
        if kind == "string" or not explode:
            text = text.removeprefix(parameter["name"] + "=")
    if style == "label":
        text = text.removeprefix(".")
    separator = {"spaceDelimited": " ", "pipeDelimited": "|"}.get(style, ",")
    separator = {"label": ".", "matrix": ";"}.get(style, separator) if explode else separator
    parts = text.split(separator)
    if kind == "array":
        items = kind_of(document, resolved(document, schema).get("items", {}))
        return [typed(items, part.removeprefix(parameter["name"] + "=") if style == "matrix" else part) for part in parts]
    if kind == "object":
        members = [part.split("=", 1) for part in parts] if explode else list(zip(parts[::2], parts[1::2], strict=False))
        schema = resolved(document, schema)
        inner = schema.get("additionalProperties") or schema.get("unevaluatedProperties") or {}
        return {name: typed(kind_of(document, inner), value) for name, value in members if name}
    return typed(kind, text)


def body_of(document, operation, request, image):
    """The body and its media type; a mock that judges by itself gets a sample."""
    content = resolved(document, operation.get("requestBody") or {}).get("content") or {}
    if not content:
        return {}
    wanted = request.get("body")
    chosen = next(iter(content))
    sent = (request.get("headers") or {}).get("content-type") or (request.get("headers") or {}).get("Content-Type")
    media = (wanted or {}).get("contentType") or sent or chosen
    bare = media.split(";")[0]
    made = {"contentType": bare} if len(content) > 1 else {}
    if wanted is None:
        if name := next((name for name in FILES if operation["operationId"].endswith(name)), None):
            field, several = FILES[name]
            return {**made, "body": {field: [image, image] if several else image}}
        if not resolved(document, operation["requestBody"]).get("required"):
            return {}
        return {**made, "body": sample(document, content[chosen].get("schema", {}))}
    if wanted.get("kind") == "multipart":
        fields = resolved(document, content[chosen].get("schema", {})).get("properties", {})
        body = {name: typed(kind_of(document, fields.get(name, {})), value) for name, value in (wanted.get("parts") or {}).items()}
        for file in wanted.get("files") or []:
            one = {
                "data": file["buffer"]["base64"] if "base64" in file["buffer"] else file["buffer"],
                "filename": file["originalname"],
                "mediaType": file["mimetype"],
            }
            field = resolved(
                document, resolved(document, content[chosen].get("schema", {})).get("properties", {}).get(file["fieldname"], {})
            )
            if kind_of(document, field) == "array":
                body.setdefault(file["fieldname"], []).append(one)
            else:
                body[file["fieldname"]] = one
        return {**made, "body": body}
    raw = wanted.get("rawContent")
    if isinstance(raw, dict) and "base64" in raw:
        if media.startswith("application/jsonl"):
            return {**made, "body": base64.b64decode(raw["base64"]).decode()}
        # A type that the document leaves open stands in the file.
        return {**made, "body": {"data": raw["base64"], "mediaType": media} if bare not in content else raw["base64"]}
    if "json" in bare and resolved(document, content.get(bare, {}).get("schema", {})).get("format") == "binary":
        return {**made, "body": base64.b64encode(raw.encode()).decode()}
    if "json" in bare:
        return {**made, "body": json.loads(raw)}
    return {**made, "body": raw}


def template(path):
    """A pattern of the path, without its query."""
    parts = re.split(r"(\{[^}]*\})", path.split("?")[0])
    return re.compile(
        "".join(f"(?P<p{number}>.*)" if part.startswith("{") else re.escape(part) for number, part in enumerate(parts)) + "$"
    ), {f"p{number}": part[1:-1] for number, part in enumerate(parts) if part.startswith("{")}


def prefix(document):
    """The path of the document's first server."""
    server = (document.get("servers") or [{"url": ""}])[0]
    url = server["url"]
    for name, variable in server.get("variables", {}).items():
        url = url.replace("{" + name + "}", "" if name == "endpoint" else variable.get("default") or document["info"]["version"])
    return re.sub(r"^https?://[^/]*", "", url).rstrip("/")


def candidates(document, api):
    """The operations that a request may be one of, the most literal first."""
    uri = api["uri"].replace("\\", "")
    before = prefix(document)
    if not uri.startswith(before):
        return []
    uri = uri[len(before) :] or "/"
    found = []
    for path, item in document.get("paths", {}).items():
        match_of, names = template(path)
        match = match_of.match(uri)
        if match and api["method"] in item:
            found.append((path.count("{"), -len(path), path, item, {names[key]: value for key, value in match.groupdict().items()}))
    return [one[2:] for one in sorted(found, key=lambda one: one[:2])]


def arguments(document, item, operation, values, api, image):
    made = {}
    query = dict(api.get("query") or {})
    headers = {name.lower(): value for name, value in (api.get("headers") or {}).items()}
    parameters = [resolved(document, one) for one in [*item.get("parameters", []), *operation.get("parameters", [])]]
    named = {one["name"] for one in parameters}
    for parameter in parameters:
        name, place = parameter["name"], parameter["in"]
        given = None
        if place == "path":
            given = values.get(name)
            given = unquote(given) if given is not None else given
        elif place == "query":
            given = query.get(name)
            if given is None and kind_of(document, parameter.get("schema", {})) == "object":
                given = {key: value for key, value in query.items() if key not in named and key != "fixed"} or None
        elif place == "header" and name.lower() not in ("content-type", "accept", "authorization"):
            given = headers.get(name.lower())
        elif place == "cookie":
            found = re.search(re.escape(name) + "=([^;]*)", headers.get("cookie", ""))
            given = found and found[1]
        else:
            continue
        if given is None and parameter.get("required"):
            given = sample(document, parameter.get("schema", {}))
        if given is not None:
            made[name] = parsed(document, parameter, given)
    return made | body_of(document, operation, api, image)


def coverage(base):
    with urllib.request.urlopen(f"{base}/.coverage") as answer:
        return json.load(answer)[0]["results"]


def drive(options, folder, scenarios, base, log):
    documents = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"), reverse=True)]
    sessions = {}
    try:
        for name, scenario in scenarios.items():
            for api in scenario["apis"]:
                call(options, documents, sessions, name, api, base, log)
    finally:
        for session in sessions.values():
            session.__exit__()


def credentials(document, api):
    """The variables with the credentials that the scenario's headers name."""
    headers = {name.lower(): value for name, value in (api.get("headers") or {}).items()}
    made = {}
    for name, scheme in document.get("components", {}).get("securitySchemes", {}).items():
        value = headers.get(scheme["name"].lower()) if scheme["type"] == "apiKey" else headers.get("authorization", "").partition(" ")[2]
        if value:
            variable = re.sub(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).upper()
            made[f"OPENAPI_MCP_AUTH_{variable}"] = value
    return made


def image(options):
    """The picture that the suite sends."""
    path = options.cache / "typespec/node_modules/@typespec/http-specs/assets/image.png"
    return {"data": base64.b64encode(path.read_bytes()).decode(), "filename": "image.png", "mediaType": "image/png"}


def call(options, documents, sessions, name, api, base, log):
    for number, document in enumerate(documents):
        for path, item, values in candidates(document, api):
            operation = item[api["method"]]
            keys = credentials(document, api)
            session_of = (number, str(keys))
            if session_of not in sessions:
                extra = [
                    "--base-url",
                    base + prefix(document),
                    "--allow-missing-credentials",
                    "--timeout",
                    "10",
                ]
                sessions[session_of] = Session(options.binary, document, *extra, env={**os.environ, **keys}, breaker_failures=0, max_tool_name_length=128)
            session = sessions[session_of]
            tool = next((tool for tool in session.tools if tool.lower() == operation["operationId"].replace(".", "_").lower()), None)
            if tool is None:
                continue
            try:
                given = arguments(document, item, operation, values, api, image(options))
            except (ValueError, KeyError, TypeError) as error:
                log.append(f"{name} {api['method']} {path}: no arguments: {error!r}")
                continue
            result = session.call(tool, given)
            log.append(
                f"{name} {api['method']} {path} {json.dumps(given)[:300]}: {'FAILED ' if result.get('isError') else ''}{words(result)[:400]!r}"
            )
            return
    log.append(f"{name} {api['method']} {api['uri']}: no operation")


def run(options):
    folder = options.cache / "typespec"
    specifications = folder / "node_modules/@typespec/http-specs/specs"
    output = folder / "openapi"
    done = output / ".installed.json"
    stamp = (folder / "package.json").read_text() + (folder / "typespec.mjs").read_text()
    if not done.exists() or done.read_text() != stamp:
        subprocess.run(["node", folder / "typespec.mjs", specifications, output], check=True, cwd=folder)
        done.write_text(stamp)
    scenarios = json.loads((output / "scenarios.json").read_text())
    return [score(options, folder, specifications, output, scenarios, version) for version in VERSIONS]


def score(options, folder, specifications, output, scenarios, version):
    made = Score(f"typespec-{version}")
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    log = []
    with open(options.cache / f"typespec-{version}-server.txt", "w") as written:
        command = [
            "node",
            folder / "node_modules/@typespec/spector/dist/src/cli/cli.js",
            "serve",
            specifications,
            "--port",
            str(port),
            "--coverageFile",
            options.cache / "typespec-coverage.json",
        ]
        server = subprocess.Popen(command, stdout=written, stderr=written, cwd=folder)
        try:
            for _ in range(600):
                try:
                    coverage(base)
                    break
                except OSError:
                    time.sleep(0.1)
            by_folder = {}
            for name, scenario in scenarios.items():
                by_folder.setdefault(scenario["folder"], {})[name] = scenario
            for name, group in by_folder.items():
                drive(options, output / name / version, group, base, log)
            results = coverage(base)
        finally:
            server.terminate()
            server.wait(10)
    (options.cache / f"typespec-{version}-calls.txt").write_text("\n".join(log) + "\n")
    for name, result in results.items():
        if result == "pass":
            made.passed.append(name)
        else:
            made.failed[name] = next(
                (line for line in log if line.startswith(f"{name} ") and ("FAILED" in line or ": no " in line)), result
            )[:500]
    made.explain(KNOWN)
    package = json.loads((folder / "node_modules/@typespec/http-specs/package.json").read_text())
    made.facts = {"source": "npm @typespec/http-specs", "version": package["version"], "licence": package["license"], "driver": "typespec"}
    return made
