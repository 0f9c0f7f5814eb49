"""The tests of RFC 6570's own repository, as parameters of OpenAPI, which takes its styles from that RFC."""

import json
import re
from urllib.parse import unquote

from drive import Score, Session, Upstream, document, schema_of, words

OPERATORS = {
    "": ("path", "simple"),
    "+": ("path", "simple"),
    ".": ("path", "label"),
    ";": ("path", "matrix"),
    "?": ("query", "form"),
    "&": ("query", "form"),
}

FIRST = "?first=1"  # what an expression that continues a query continues, if its template begins with it
KNOWN = [
    (r"must not be empty: it is part of the path", "an empty value in a path is refused: it would name another resource"),
    (r"got '[^']*%2F", "a slash in a path stays encoded unless a rule (`slashes`) allows it"),
    (r"got '[^']*%3B", "a semicolon in a path stays encoded: it would begin a matrix parameter"),
    (r"Straße", "a defect: an argument's name that is not ASCII is only taken as the schema writes it"),
    (r" (map|)\?\{x,", "a query without a name, inside of the path template"),
]


class LeftOut(Exception):
    """A template that OpenAPI cannot express."""


def translate(template, variables):
    """The path, its parameters and its arguments."""
    path, parameters, arguments = "", {}, {}
    in_query = False
    for literal, expression in re.findall(r"([^{]*)(?:\{([^}]*)\})?", template):
        if literal and in_query:
            raise LeftOut("a literal behind an expression of the query")
        path += literal
        if not expression:
            continue
        operator = expression[0] if expression[0] in "+#./;?&" else ""
        if operator not in OPERATORS:
            raise LeftOut(f"the operator {operator}: OpenAPI has no such style")
        place, style = OPERATORS[operator]
        if operator == "&" and not in_query and "?" not in path:
            path += FIRST
        in_query |= place == "query"
        templates = []
        for variable in expression[len(operator) :].split(","):
            if ":" in variable:
                raise LeftOut("a prefix of a value (`:3`): OpenAPI has no such modifier")
            name = unquote(variable.removesuffix("*"))
            value = variables.get(unquote(name), variables.get(variable.removesuffix("*")))
            parameter = {"name": name, "in": place, "style": style, "explode": variable.endswith("*"), "schema": schema_of(value)}
            if operator == "+":
                parameter["allowReserved"] = True
            if value is None and place == "path":
                raise LeftOut("an undefined value in a path: a path parameter is required")
            if parameters.setdefault(name, parameter) != parameter:
                raise LeftOut("one name with two styles in one template")
            if value is not None:
                arguments[name] = value
            if place == "path":
                parameter["required"] = True
                templates.append("{" + name + "}")
        path += ("," if operator in ("", "+") else "").join(templates)
    return path, list(parameters.values()), arguments


def run(options, data):
    score = Score("rfc6570")
    cases, paths = [], {}
    for file, text in data["tests"].items():
        for section, tests in json.loads(text).items():
            for number, (template, wanted) in enumerate(tests["testcases"]):
                case = f"{file} {section} #{number} {template}"
                try:
                    path, parameters, arguments = translate(template, tests["variables"])
                except LeftOut as reason:
                    score.leave_out(case, str(reason))
                    continue
                key = f"c{len(cases)}"
                cases.append((case, key, arguments, wanted if isinstance(wanted, list) else [wanted]))
                operation = {"operationId": key, "parameters": parameters, "responses": {"200": {"description": "OK"}}}
                paths[f"/{key}_{path}"] = {"get": operation}
    upstream = Upstream()
    # 3.2 is the first version that lets path parameters keep reserved characters.
    with Session(options.binary, document(paths, "3.2.0"), "--base-url", upstream.url) as session:
        for case, key, arguments, wanted in cases:
            result = session.call(key, arguments)
            came = upstream.take()
            got = came[0].target.removeprefix(f"/{key}_").replace(FIRST, "") if came else "nothing was sent: " + words(result)
            score.check(case, got, wanted)
    score.explain(KNOWN)
    return [score]
