"""The examples that the text of OpenAPI 3.2 gives: its table of styles and its XML; and the documents of the OpenAPI Initiative."""

import re
import xml.etree.ElementTree as tree
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from drive import Score, Session, Upstream, document, schema_of, words

VALUES = {"undefined": None, "string": "blue", "array": ["blue", "black", "brown"], "object": {"R": 100, "G": 200, "B": 150}}
PLACES = {"matrix": "path", "label": "path", "simple": "path", "cookie": "cookie"}
KNOWN = [
    (r"XML Name Replacement", "data that the example's own schema refuses"),
    (r"\bundefined\b.*must not be empty", "an empty value in a path is refused: it would name another resource"),
]


def styles(text):
    """Each cell of the table of styles: case, parameter, value, what it must look like."""
    for row in re.findall(r"^\| ((?:matrix|label|simple|form|spaceDelimited|pipeDelimited|deepObject|cookie)\b.*) \|$", text, re.M):
        style, explode, *cells = [re.sub(r"<[^>]*>", "", cell).strip() for cell in row.split(" | ")]
        for (kind, value), cell in zip(VALUES.items(), cells, strict=True):
            if cell == "_n/a_":
                continue
            parameter = {
                "name": "color",
                "in": PLACES.get(style, "query"),
                "style": style,
                "explode": explode == "true" or style == "deepObject",
            }
            parameter["schema"] = schema_of("" if value is None else value)
            yield f"style {style}, explode {explode}, {kind}", parameter, "" if value is None else value, "" if cell == "_empty_" else cell


def blocks(text):
    """Each example of XML: case, media type object, components, data, text of XML."""
    section = text.split("#### XML Object Examples")[1].split("\n### ")[0]
    fence = re.compile(r"^```(yaml|xml)\n(.*?)^```", re.M | re.S)
    found = [
        (kind, body, section[: match.start()].rsplit("\n##### ", 1)[-1].split("\n")[0])
        for match in fence.finditer(section)
        for kind, body in [match.groups()]
    ]
    number = 0
    while found:
        kind, body, title = found.pop(0)
        written = []
        while found and found[0][0] == "xml":
            written.append(found.pop(0)[1])
        if kind != "yaml":
            continue
        number += 1
        try:
            parsed = yaml.safe_load(body)
        except yaml.YAMLError:
            yield f"XML #{number} {title}", None, {}, None, None
            continue
        components = parsed.get("components", {}) if isinstance(parsed, dict) else {}
        for media in media_types(parsed):
            for name, example in (media.get("examples") or {}).items():
                wanted = example.get("serializedValue") or (written.pop(0) if written else None)
                yield f"XML #{number} {title}: {name}", media, components, example.get("dataValue"), wanted


def media_types(part):
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "application/xml":
                yield value
            else:
                yield from media_types(value)


def canonical(text):
    """XML without the blanks between its elements."""
    node = tree.fromstring(text)
    for element in node.iter():
        element.text = (element.text or "").strip()
        element.tail = (element.tail or "").strip()
    return tree.tostring(node, encoding="unicode")


def run(options, data):
    scores = [specification(options, next(iter(data["specification"].values()))), documents(options, data["documents"])]
    for score in scores:
        score.facts["driver"] = "openapi"
    return scores


def specification(options, text):
    score = Score("openapi-examples")
    cases, paths = [], {}
    for case, parameter, value, wanted in styles(text):
        key = f"c{len(cases)}"
        path = "{color}" if parameter["in"] == "path" else ""
        if path:
            parameter["required"] = True
        paths[f"/{key}_{path}"] = {"get": {"operationId": key, "parameters": [parameter], "responses": {"200": {"description": "OK"}}}}
        cases.append((case, key, {"color": value}, wanted, parameter["in"]))
    for case, media, components, value, wanted in blocks(text):
        key = f"c{len(cases)}"
        if media is None:
            score.leave_out(case, "YAML of the specification that is not valid")
            continue
        if wanted is None or value is None:
            score.leave_out(case, "examples without data or without XML")
            continue
        schemas = {f"{name}": schema for name, schema in components.get("schemas", {}).items()}
        body = {"required": True, "content": {"application/xml": {"schema": media["schema"]}}}
        one = document(
            {f"/{key}_": {"post": {"operationId": key, "requestBody": body, "responses": {"200": {"description": "OK"}}}}},
            "3.2.0",
            components={"schemas": schemas},
        )
        cases.append((case, key, {"body": value}, wanted, one))
    upstream = Upstream()
    with Session(options.binary, document(paths, "3.2.0"), "--base-url", upstream.url) as session:
        for case, key, arguments, wanted, place in cases:
            if isinstance(place, dict):
                with Session(options.binary, place, "--base-url", upstream.url) as own:
                    result = own.call(key, arguments)
            else:
                result = session.call(key, arguments)
            came = upstream.take()
            if not came:
                score.failed[case] = f"nothing was sent: {words(result)!r}"
            elif isinstance(place, dict):
                compare_xml(score, case, came[0].body.decode(), wanted)
            elif place == "cookie":
                score.check(case, came[0].headers.get("Cookie", ""), [wanted])
            else:
                score.check(case, came[0].target.removeprefix(f"/{key}_").removeprefix("?"), [wanted])
    score.explain(KNOWN)
    return score


def compare_xml(score, case, sent, wanted):
    try:
        wanted = canonical(wanted)
    except tree.ParseError:
        score.leave_out(case, "XML of the specification that is not well-formed")
        return
    try:
        score.check(case, canonical(sent), [wanted])
    except tree.ParseError as error:
        score.failed[case] = f"{error}: {sent}"


def documents(options, files):
    """Each document is served without a loss: as many tools as operations, and nothing in the log."""
    score = Score("openapi-documents")
    distinct = {}
    with TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name, text in files.items():
            parsed = yaml.safe_load(text)
            if not isinstance(parsed, dict) or not {"openapi", "swagger"} & set(parsed):
                continue  # a part that another document refers to
            if text in distinct:
                continue
            distinct[text] = name
            methods = {"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"}
            count = sum(
                len(methods & set(item or {})) + len((item or {}).get("additionalOperations") or {})
                for item in (parsed.get("paths") or {}).values()
            )
            if not count:
                score.leave_out(name, "documents without operations")
                continue
            with Session(
                options.binary,
                Path(folder) / name,
                "--base-url",
                "http://127.0.0.1:9",
                "--allow-missing-credentials",
                external_refs="any",
            ) as session:
                # What an operation that takes long needs besides is no operation.
                got = len(session.tools.keys() - {"wait_operation"}) if session.started else session.why()
            score.check(name, got, [count])
    return score
