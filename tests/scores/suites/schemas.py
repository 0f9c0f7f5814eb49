"""The JSON Schema Test Suite: each schema as that of a body; what the schema refuses must not reach the API, and the rest must, unchanged."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

from drive import Score, Session, Upstream, document, words

KNOWN = [
    (r"\trepaired: ", "repaired: only one reading of the value fits the schema"),
    (r"optional/format.*\tlooser: ", "looser: the schema's `format` is an annotation"),
    (r"dynamic.*\tlooser: ", "looser: `$dynamicRef` is read as `$ref` or left out"),
    (r"dependencies-compatibility.*\tlooser: ", "looser: `dependencies`, which 2020-12 does not have"),
    (r"unevaluated\w+\.json.*\tlooser: ", "looser: `unevaluatedItems`, and `unevaluatedProperties` beside other schemas"),
    (r"(if-then-else|if/then/else|if without then).*\tlooser: ", "looser: `if`, `then` and `else`"),
    (r"(max|min)Contains\.json.*\tlooser: ", "looser: `maxContains`"),
    (r"(oneOf|nested refs).*\tlooser: ", "looser: `oneOf` is checked as `anyOf`"),
    (r"not\.json.*\tlooser: ", "looser: `not`"),
    (r"empty enum.*\tlooser: ", "looser: an empty `enum`"),
    (r"(regex|pattern)\.json.*\tlooser: ", "looser: a pattern of ECMAScript that means something else to clients' validators"),
    (r"(nul characters|escaped characters).*\tlooser: ", "looser: constants with hidden characters; `check` says so"),
    (
        r"(refRemote|unknownKeyword)\.json.*\tlooser: ",
        "looser: a reference into another file is looked up beside its file, and not at its `$id`",
    ),
    (r"(anchor|ref)\.json.*\tlooser: ", "looser: an `$id` or an anchor that is relative to another `$id`, or not unique"),
    (r"zeroTerminatedFloats", "looser: 1.0 is an integer, as later drafts have it"),
    (r"is not of type (null or )?object", "stricter: `properties` without a `type` is read as that of an object"),
]
REMOTE = "http://localhost:1234/"
# Keywords of draft 4 that a Schema Object of OpenAPI 3.0 does not have.
NOT_IN_30 = {"additionalItems", "definitions", "dependencies", "id", "patternProperties"}
OTHER = re.compile(r'"(https?://json-schema\.org/[^"]*)"')


def keywords(schema):
    """The keywords of a schema and of those below it, with "[type]" and "[items]" for lists of those."""
    if isinstance(schema, list):
        for part in schema:
            yield from keywords(part)
    elif isinstance(schema, dict):
        yield from (f"[{key}]" if key in ("type", "items") and isinstance(value, list) else key for key, value in schema.items())
        if "$ref" in schema and len(schema) > 1:
            yield "$ref with siblings"
        for value in schema.values():
            yield from keywords(value)


def embedded(value, place, base):
    """The schema inside of an OpenAPI document: references to its own root name its place there."""
    if isinstance(value, list):
        return [embedded(item, place, base) for item in value]
    if isinstance(value, dict):
        if "$id" in value or "id" in value and isinstance(value["id"], str):
            place = None  # a resource of its own, with its own root
        return {
            key: (
                item
                if key in ("const", "enum")
                else (
                    place + item[1:]
                    if place and key == "$ref" and isinstance(item, str) and (item == "#" or item.startswith("#/"))
                    else embedded(item, place, base)
                )
            )
            for key, item in value.items()
            if key != "$schema"
        }
    return value.replace(REMOTE, base) if isinstance(value, str) else value


def left_out(draft, schema, remotes):
    text = json.dumps(schema)
    if any(f"/remotes/{path}" not in remotes for path in re.findall(r'"\$ref": "' + REMOTE + r'([^"#]*)', text)):
        return "a file that is not in the data"
    if draft == "draft4":
        absent = (NOT_IN_30 | {"[type]", "[items]", "$ref with siblings"}) & set(keywords(schema))
        if absent or isinstance(schema, dict) and "null" in text and '"type": "null"' in text:
            return "draft 4, with keywords that OpenAPI 3.0 does not have"
    names = OTHER.findall(text.replace('"$schema": "https://json-schema.org/draft/2020-12/schema"', ""))
    if names or "draft2019-09" in text or "metaschema" in text:
        return "another dialect, or a reference to a metaschema"
    return None


def run(options, data):
    score = Score("json-schema")
    remotes = {f"/remotes/{path}": text.encode() for path, text in data["remotes"].items()}

    def answer(request):
        # Other files of the suite name each other by the address that it is meant to be served at.
        own = f"http://{request.headers['Host']}/remotes/".encode()
        known = request.method == "POST" or request.target in remotes
        return (
            200 if known else 404,
            [("Content-Type", "application/json")],
            remotes.get(request.target, b"{}").replace(REMOTE.encode(), own),
        )

    def drive(item):
        file, text = item
        draft = file.split("/")[0]
        upstream = Upstream(answer)
        own = f"{upstream.url}/remotes/"
        groups, schemas, paths = [], {}, {}
        for number, group in enumerate(json.loads(text)):
            reason = left_out(draft, group["schema"], remotes)
            if reason:
                for test in group["tests"]:
                    score.leave_out(f"{file} {group['description']}: {test['description']}", reason)
                continue
            key = f"S{number}"
            schemas[key] = embedded(group["schema"], f"#/components/schemas/{key}", own)
            content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{key}"}}}
            operation = {
                "operationId": key,
                "requestBody": {"required": True, "content": content},
                "responses": {"200": {"description": "OK"}},
            }
            paths[f"/{key}"] = {"post": operation}
            groups.append((key, group))
        made = document(paths, "3.0.4" if draft == "draft4" else "3.1.0", components={"schemas": schemas})
        with Session(options.binary, made, "--base-url", upstream.url, external_refs="any") as session:
            why = "" if session.started else session.why()
            upstream.take()
            for key, group in groups:
                for test in group["tests"]:
                    case = f"{file} {group['description']}: {test['description']}"
                    if key not in session.tools:
                        score.failed[case] = f"no tool: {why}"
                        continue
                    result = session.call(key, {"body": test["data"]})
                    came = [request for request in upstream.take() if request.method == "POST"]
                    sent = json.loads(came[0].body or "null") if came else None
                    same = bool(came) and (
                        json.dumps(sent, sort_keys=True) == json.dumps(test["data"], sort_keys=True) or sent == test["data"]
                    )
                    if test["valid"] and same or not test["valid"] and not came:
                        score.passed.append(case)
                    elif test["valid"] and not came:
                        score.failed[case] = f"stricter: {json.dumps(test['data'])[:200]}: {words(result)[:300]!r}"
                    elif not same:
                        score.failed[case] = f"repaired: {json.dumps(test['data'])[:200]} into {json.dumps(sent)[:200]}"
                    else:
                        score.failed[case] = f"looser: {json.dumps(test['data'])[:200]} was sent"
        upstream.server.shutdown()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(drive, data["tests"].items()))
    score.explain(KNOWN)
    kinds = [why.split(":")[0] for why in score.failed.values()]
    score.facts = {kind: kinds.count(kind) for kind in ("looser", "repaired", "stricter")}
    return [score]
