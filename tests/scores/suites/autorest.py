"""AutoRest's test server: its own Swagger files as tools, and the coverage keys that their calls reach."""

import json
import os
import re
import socket
import subprocess
import tempfile
import time
import urllib.request

from autorest_values import CLIENT, VALUES
from drive import Score, Session, words

KNOWN = [
    (r"LRO|CustomHeader(Put|Post)", "long-running operations that the server lets end by a cookie, and calls keep no cookies"),
    (r"HttpRetry(408|500|503Post|504Patch)|PagingMultipleRetry", "not repeated: 408, 500, and after 503 and 504 a POST or PATCH"),
    (r"HttpRetry", "repeated, but the server knows a repetition by its cookie, and calls keep no cookies"),
    (r"(Path|Query)UrlEncoding", "`x-ms-skip-url-encoding`, an extension: values are always encoded"),
    (
        r"PagingCustomUrlPartial|PagingReturnModelWithXMSClientName|PagingFragment|PagingFirstResponseEmpty",
        "pages by `x-ms-pageable` and `x-ms-paths`, extensions: a next page is another path, and no URL of a reply is followed",
    ),
    (r"MultiapiDifferentCalls|ApiVersionThreePDF", "keys that the server never counts"),
    (r"UrlPaths(Byte|String)Empty", "an empty value in a path is refused: it would name another resource"),
    (r"UrlQueriesArrayCsvEmpty", "an empty list is left out of a query"),
    (r"putComplex(Array|Dictionary)Valid", "`null` where the document allows only text is refused"),
    (r"HeaderParameterProtectedKey", "a defect: a header parameter named `Content-Type` is left out in Swagger 2.0 as well, which does not say so"),
    (r"MediaTypePdf", "a PDF for a body whose schema is an object"),
    (
        r"RequestWithSecrets|ConstantsInBody|PassMergePatchObject|AzureRequestClientIdInError",
        "arguments that the document does not declare",
    ),
]
PACKAGE = "node_modules/@microsoft.azure/autorest.testserver"
METHODS = ("get", "head", "put", "patch", "post", "delete", "options")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def report(base):
    keys = {}
    for part in ("", "/azure", "/optional"):
        with urllib.request.urlopen(f"{base}/report{part}") as answer:
            keys |= {f"{part.strip('/') or 'general'}:{key}": count for key, count in json.load(answer).items()}
    return keys


def resolved(document, part):
    while isinstance(part, dict) and "$ref" in part:
        if not part["$ref"].startswith("#/"):
            return {}
        found = document
        for step in part["$ref"][2:].split("/"):
            found = found[step.replace("~1", "/").replace("~0", "~")]
        part = found
    return part


def sample(document, schema, depth=0):
    """The smallest value that a schema accepts, with its constants and defaults."""
    schema = resolved(document, schema) or {}
    if "const" in schema:
        return schema["const"]
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object" or "properties" in schema or "allOf" in schema:
        made = {}
        for part in schema.get("allOf", []):
            inherited = sample(document, part, depth + 1)
            made |= inherited if isinstance(inherited, dict) else {}
        for name in schema.get("required", []):
            if name in schema.get("properties", {}) and depth < 6:
                made[name] = sample(document, schema["properties"][name], depth + 1)
        return made
    if kind == "array":
        return []
    texts = {"date": "2012-01-01", "date-time": "2012-01-01T01:01:01Z", "byte": "AA==", "uuid": "00000000-0000-0000-0000-000000000000"}
    return {"integer": 1, "number": 1.5, "boolean": True, "file": "AA=="}.get(kind, texts.get(schema.get("format"), "value"))


def arguments(document, item, operation, replies, path):
    """The arguments of a call: values that the server wants by name, else constants, else a sample; the body is what GET replies."""
    wanted = VALUES.get(operation["operationId"], {})
    made = {name: value for name, value in wanted.items() if name != "body"}
    form = {}
    for parameter in [*item.get("parameters", []), *operation.get("parameters", [])]:
        parameter = resolved(document, parameter)
        name, place = parameter.get("name"), parameter.get("in")
        if place == "body":
            if "body" in wanted:
                made["body"] = wanted["body"]
            elif path in replies:
                made["body"] = replies[path]
            elif parameter.get("required"):
                made["body"] = sample(document, parameter.get("schema", {}))
        elif place == "formData":
            if parameter.get("required") and "body" not in wanted:
                form[name] = sample(document, parameter)
        elif f"{name}=" in path.partition("?")[2]:
            continue  # the path's own query has it
        elif name not in made and name not in wanted and (parameter.get("required") or place == "path"):
            # The version of an API that a document asks for is its own.
            known = {"api-version": document["info"]["version"], **VALUES["*"]}
            made[name] = parameter["enum"][0] if parameter.get("enum") else known.get(name, sample(document, parameter))
    if form:
        made["body"] = form
    if "body" in wanted:
        made["body"] = wanted["body"]
    return {name: value for name, value in made.items() if value is not ...}


def content(result):
    """The reply of a call, without the notes of the server."""
    if "structuredContent" in result:
        data = result["structuredContent"]
        if isinstance(data, dict):
            data = {key: value for key, value in data.items() if key != "_notes"}
            if set(data) == {"result"}:
                return data["result"]
        return data
    for part in result.get("content", []):
        if part.get("type") == "resource":
            return part["resource"].get("blob") or part["resource"].get("text")
    return words(result)


def asked(result):
    """The body that the server says it wants, if it refused another one."""
    found = re.search(r'\{"message":"Body provided doesn.t match expected body".*', words(result))
    if not result.get("isError") or not found:
        return None
    return json.JSONDecoder().raw_decode(found[0])[0].get("expected")


def drive(options, file, base, log, settings=()):
    document = json.loads(file.read_text(encoding="utf-8-sig"))
    operations = [
        (path, method, item, item[method])
        for path, item in document.get("paths", {}).items()
        for method in METHODS
        if isinstance(item.get(method), dict) and "operationId" in item[method]
    ]
    operations += [
        (path, method, item, item[method])
        for path, item in document.get("x-ms-paths", {}).items()
        for method in METHODS
        if isinstance(item.get(method), dict)
    ]
    if not operations:
        return
    replies = {}
    keys = {"OPENAPI_MCP_AUTH_AZUREKEY": "123456789", "OPENAPI_MCP_AUTH_AADTOKEN": "https://security.microsoft.com/.default"}
    base += document.get("x-ms-parameterized-host", {}).get("hostTemplate", "").rpartition("}")[2]
    extra = [
        "--base-url",
        base,
        "--allow-missing-credentials",
        # Long-running operations are asked about after one second and after two more.
        "--timeout",
        "6",
    ]
    settings_of_file = {"external_refs": "any", "breaker_failures": 0, "max_tool_name_length": 128}
    with Session(options.binary, file, *extra, *settings, env={**os.environ, **keys}, **settings_of_file) as session:
        if not session.started:
            log.append(f"{file.name}: {session.why()}")
            return
        names = {name.lower(): name for name in session.tools}
        for path, method, item, operation in sorted(operations, key=lambda one: METHODS.index(one[1])):
            key = operation["operationId"]
            tool = names.get(key.lower()) or names.get(key.replace("_", "").lower())
            if tool is None:
                log.append(f"{file.name} {key}: no tool")
                continue
            calls = VALUES.get(key + "[]") or [None]
            for call in calls:
                given = call if call is not None else arguments(document, item, operation, replies, path)
                result = session.call(tool, given)
                wanted = asked(result)
                if wanted is not None and "body" in session.tools[tool]["inputSchema"].get("properties", {}):
                    given = {**given, "body": wanted}
                    result = session.call(tool, given)
                if method == "get" and not result.get("isError"):
                    replies.setdefault(path, content(result))
                log.append(
                    f"{file.name} {key} {json.dumps(given)[:300]}: {'FAILED ' if result.get('isError') else ''}{words(result)[:300]!r}"
                )


def run(options):
    score = Score("autorest")
    package = options.cache / "autorest" / PACKAGE
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    log = []
    with tempfile.TemporaryDirectory() as coverage, open(options.cache / "autorest-server.txt", "w") as output:
        command = ["node", package / "dist/cli/cli.js", "run", f"--port={port}", f"--coverageDirectory={coverage}"]
        server = subprocess.Popen(command, stdout=output, stderr=output, cwd=coverage)
        try:
            for _ in range(200):
                try:
                    before = report(base)
                    break
                except OSError:
                    time.sleep(0.1)
            for file in sorted((package / "swagger").glob("*.json")):
                drive(options, file, base, log)
            # Once more, with the header that Azure's clients send with every request.
            for name in ("azure-special-properties", "header", "lro"):
                drive(options, package / "swagger" / f"{name}.json", base, log, ("--header", f"x-ms-client-request-id: {CLIENT}"))
            after = report(base)
        finally:
            server.terminate()
            server.wait(10)
    (options.cache / "autorest-calls.txt").write_text("\n".join(log) + "\n")
    for key, count in after.items():
        if count and not before.get(key):
            score.passed.append(key)
        else:
            score.failed[key] = "not reached"
    score.explain(KNOWN)
    score.facts = {
        "source": "npm @microsoft.azure/autorest.testserver",
        "version": json.loads((package / "package.json").read_text())["version"],
        "licence": "MIT",
    }
    return [score]
