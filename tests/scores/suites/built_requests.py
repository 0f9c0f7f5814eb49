"""The tests of swagger-js that say which request an operation and its values make."""

import json
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from drive import Score, Session, Upstream, schema_of, words

UNDEFINED = {"$undefined": True}
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
KNOWN = [
    (r"'accept'", "`Accept` prefers JSON, whatever the order in the document"),
    (r"'target': [^ ]*\|", "swagger-js sends a vertical bar as it is, which RFC 3986 does not allow in a URL"),
    (r"wanted .*:/\?#\[\]|wanted .*#,\[,\]", "swagger-js sends `#`, `[` and `&` of a value as they are: the server would read another URL"),
    (r"'cookie'", "swagger-js encodes all of a cookie's value; RFC 6570 and OpenAPI 3.2 keep the delimiters"),
    (r"label/no-explode", "OpenAPI 3.0.4 and later join the values of `label` by commas; swagger-js follows 3.0.0"),
    (r"(Default=|petId=3')", "an optional argument's default is left to the API"),
    (r"(subschema|union type|array element)", "a JSON text for a value that may be a text is sent as a text"),
    (r"is (not valid|missing)|are not valid|must not be empty", "arguments that do not fit the schema are refused"),
    (r"'content-type': None", "no `Content-Type` without a body"),
    (r"'content-type': 'test'", "a form with a media type that is none"),
    (r"deepObject", "objects below the first level of `deepObject`, which OpenAPI does not define"),
    (r"'id': 123}", "repaired: a text for an integer"),
    (r"header.js.*special characters", "a blank at the start of a header, which HTTP removes"),
]


def complete(spec, item, found, given):
    """The document with what the tests leave out because swagger-js does not read it: mostly the schemas of parameters."""
    spec.setdefault("info", {"title": "Scores", "version": "1"})
    if "openapi" not in spec:
        spec.setdefault("swagger", "2.0")
    for parameter in [*item.get("parameters", []), *found.get("parameters", [])]:
        name = parameter.get("name")
        value = given.get(name, given.get(f"{parameter.get('in')}.{name}"))
        if {"schema", "content", "type", "$ref"} & set(parameter) or value in (None, UNDEFINED):
            continue
        schema = schema_of(value)
        if "openapi" in spec or parameter.get("in") == "body":
            parameter["schema"] = schema
        else:
            parameter.update({"type": "string"} if schema["type"] == "object" else schema)
    return spec


def operation(spec, wanted):
    for path, item in spec.get("paths", {}).items():
        for method, found in (item or {}).items():
            if method in METHODS and found.get("operationId") == wanted:
                return path, item, found
    return None, {}, {}


def arguments(options, item, found):
    """The arguments of the tool: parameters of the body and of forms stand in `body`."""
    given = {name: value for name, value in (options.get("parameters") or {}).items() if value != UNDEFINED}
    parameters = [*item.get("parameters", []), *found.get("parameters", [])]
    made = {}
    for name, value in given.items():
        places = [parameter.get("in") for parameter in parameters if parameter.get("name") in (name, name.split(".", 1)[-1])]
        bare = name if any(parameter.get("name") == name for parameter in parameters) else name.split(".", 1)[-1]
        if "body" in places:
            made["body"] = value
        if "formData" in places:
            made.setdefault("body", {})[bare] = value
        if not places or set(places) - {"body", "formData"}:
            made[bare] = value
    body = options.get("requestBody", UNDEFINED)
    if body != UNDEFINED:
        made["body"] = body
    if options.get("requestContentType") and len((found.get("requestBody") or {}).get("content") or found.get("consumes") or []) > 1:
        made["contentType"] = options["requestContentType"]
    return made


def wanted(expected, whole):
    """Target, method, the headers that the test names, and the body."""
    url = urlsplit(expected["url"])
    made = {
        "method": expected["method"],
        "target": (url.path or "/") + (f"?{url.query}" if url.query else "") + (f"#{url.fragment}" if url.fragment else ""),
    }
    for name, value in expected.get("headers", {}).items():
        made[name.lower()] = str(value)
    if whole and expected.get("body", UNDEFINED) != UNDEFINED:
        made["body"] = expected["body"]
    return made


def got(request, names):
    made = {"method": request.method, "target": request.target}
    for name in names - {"method", "target", "body"}:
        made[name] = request.headers.get(name)
    if "body" in names:
        text = request.body.decode(errors="replace")
        try:
            made["body"] = json.loads(text)
        except ValueError:
            made["body"] = text
    return made


def run(options, data):
    score = Score("swagger-js")

    def drive(numbered):
        number, test = numbered
        case = f"#{number} {test['test']}"
        given, expected = test["options"], test["expected"]
        path, item, found = operation(given["spec"], given["operationId"])
        if reason := left_out(test, path, found):
            score.leave_out(case, reason)
            return
        upstream = Upstream()
        made = wanted(expected, True)
        prefix = base_path(given["spec"], given)
        with Session(
            options.binary,
            complete(given["spec"], item, found, given.get("parameters") or {}),
            "--base-url",
            upstream.url + prefix,
            "--allow-missing-credentials",
        ) as session:
            name = (
                next(iter(session.tools), None)
                if len(session.tools) < 2
                else next((name for name in session.tools if name == given["operationId"]), None)
            )
            if name is None:
                score.failed[case] = f"no tool among {list(session.tools)}: {session.why()}"
                return
            result = session.call(name, arguments(given, item, found))
            came = upstream.take()
        if isinstance(made.get("body"), str):
            try:
                made["body"] = json.loads(made["body"])
            except ValueError:
                pass
        sent = got(came[0], set(made)) if came else f"nothing was sent: {words(result)}"
        score.check(case, sent, [made])
        upstream.server.shutdown()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(drive, enumerate(data["cases"])))
    score.explain(KNOWN)
    return [score]


def base_path(spec, options):
    if "openapi" in spec:
        url = options.get("server") or (spec.get("servers") or [{"url": ""}])[0].get("url", "")
        variables = (spec.get("servers") or [{}])[0].get("variables", {})
        for name, value in {**{name: one["default"] for name, one in variables.items()}, **(options.get("serverVariables") or {})}.items():
            url = url.replace("{" + name + "}", value)
        return urlsplit(url).path.rstrip("/")
    return spec.get("basePath", "").rstrip("/")


def left_out(test, path, found):
    if test["how"] == "part":
        return "cases that look at a part of the request which is not in the data"
    if path is None:
        return "documents that swagger-js has prepared for itself (`$$normalized`)"
    if test["options"].get("responseContentType"):
        return "cases that choose the media type of the reply: calls have no such choice"
    if "UNDEFINED-ITEM" in json.dumps(test["options"].get("parameters")).replace('[{"$undefined": true}', "UNDEFINED-ITEM"):
        return "lists with undefined items: JSON has none"
    return None
