"""Checks every tool against Python's validator and against what strict clients accept.

Usage: lint.py CACHE
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Iterator

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
SINGLE = ("items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "not", "if", "then", "else",
          "contains", "propertyNames", "contentSchema")
MAY_BE_FALSE = ("additionalProperties", "unevaluatedProperties", "unevaluatedItems")
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
# Control, bidirectional, zero-width (but the joiners, which scripts and emoji need) and tag characters.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
HINTED = ("GET", "HEAD", "OPTIONS", "QUERY", "POST", "PUT", "PATCH", "DELETE")
LONGEST_DESCRIPTION = 2048
BATCH = 500

cache = Path(sys.argv[1])
passed, failures = 0, []


def check(place: str, rule: str, wrong: list[str]) -> None:
    """One check: `wrong` lists what breaks the rule."""
    global passed
    if wrong:
        failures.append((rule, place, wrong))
    else:
        passed += 1


def below(schema: dict) -> Iterator[tuple[str, Any]]:
    """The subschemas of a schema, each with its pointer from it."""
    for key, value in schema.items():
        if key in MAPS and isinstance(value, dict):
            yield from ((f"/{key}/{name}", inner) for name, inner in value.items())
        elif key in LISTS and isinstance(value, list):
            yield from ((f"/{key}/{index}", inner) for index, inner in enumerate(value))
        elif key in SINGLE:
            yield f"/{key}", value


def walk(schema: Any, pointer: str = "#") -> Iterator[tuple[str, Any]]:
    yield pointer, schema
    if isinstance(schema, dict):
        for step, inner in below(schema):
            yield from walk(inner, pointer + step)


class MetaSchema:
    """`check_schema` on every schema. The meta-schema judges each level of a schema by itself, so that levels which
    occur again (most do) are checked once, many in one call: a tenth of the time of the plain way."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.waiting: list[tuple[str, Any]] = []
        self.broken: dict[str, str] = {}
        self.users: list[tuple[str, list[str]]] = []

    def add(self, place: str, schema: Any) -> None:
        levels: list[str] = []
        self.level(schema, levels)
        self.users.append((place, levels))

    def level(self, schema: Any, levels: list[str]) -> None:
        flat = schema
        if isinstance(schema, dict):
            flat = {}
            for key, value in schema.items():
                if key in MAPS and isinstance(value, dict):
                    value, inner = {name: {} for name in value}, list(value.values())
                elif key in LISTS and isinstance(value, list) and value:
                    value, inner = [{}], value
                elif key in SINGLE:
                    value, inner = {}, [value]
                else:
                    inner = []
                flat[key] = value
                for one in inner:
                    self.level(one, levels)
        text = json.dumps(flat)
        levels.append(text)
        if text not in self.seen:
            self.seen.add(text)
            self.waiting.append((text, flat))
            if len(self.waiting) == BATCH:
                self.flush()

    def flush(self) -> None:
        if not self.waiting:
            return
        try:
            Draft202012Validator.check_schema({"allOf": [flat for _, flat in self.waiting]})
        except SchemaError:
            for text, flat in self.waiting:
                try:
                    Draft202012Validator.check_schema(flat)
                except SchemaError as error:
                    self.broken[text] = f"{error.json_path}: {error.message}"
        self.waiting.clear()

    def report(self) -> None:
        self.flush()
        for place, levels in self.users:
            check(place, "Draft202012Validator.check_schema", sorted({self.broken[text] for text in levels if text in self.broken}))


def target(root: Any, reference: Any) -> Any:
    """What a reference inside a schema points to, else None."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    for part in reference.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        root = root.get(part) if isinstance(root, dict) else None
    return root


def lint_schema(place: str, root: Any, is_input: bool) -> None:
    """What holds for schemas of either direction."""
    wrong: dict[str, list[str]] = {rule: [] for rule in (
        "references resolve", "no boolean schema", "no $id, $schema, nullable, boolean limit", "no empty enum",
        "`required` is an array", "arrays have items", "objects have properties")}
    for pointer, schema in walk(root):
        if not isinstance(schema, dict):
            if schema is not False or not pointer.endswith(MAY_BE_FALSE):
                wrong["no boolean schema"].append(f"{pointer}: {schema}")
            continue
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if "$ref" in schema and not isinstance(target(root, schema["$ref"]), dict):
            wrong["references resolve"].append(f"{pointer}: {schema['$ref']}")
        for key in ("$id", "$schema", "nullable"):
            if key in schema:
                wrong["no $id, $schema, nullable, boolean limit"].append(f"{pointer}/{key}")
        for key in ("exclusiveMinimum", "exclusiveMaximum"):
            if isinstance(schema.get(key), bool):
                wrong["no $id, $schema, nullable, boolean limit"].append(f"{pointer}/{key}")
        if schema.get("enum", True) == []:
            wrong["no empty enum"].append(pointer)
        if not isinstance(schema.get("required", []), list):
            wrong["`required` is an array"].append(pointer)
        if "array" in kinds and "items" not in schema:
            wrong["arrays have items"].append(pointer)
        if "object" in kinds and not isinstance(schema.get("properties"), dict):
            wrong["objects have properties"].append(pointer)
    if root.get("type") != "object":
        wrong["the root is an object"] = [str(root.get("type"))]
    if is_input:
        wrong["no combinator at the root"] = [key for key in ("oneOf", "anyOf", "allOf", "not", "if") if key in root]
    for rule, places in wrong.items():
        check(place, rule, places)


described = Counter()


def lint_input(place: str, root: dict) -> None:
    """What holds for arguments only: model APIs judge their names, and models read their descriptions."""
    keys, silent = [], []
    for pointer, schema in walk(root):
        properties = schema.get("properties") if isinstance(schema, dict) else None
        for name, inner in properties.items() if isinstance(properties, dict) else ():
            if not KEY.fullmatch(name):
                keys.append(f"{pointer}: {name!r}")
            if isinstance(inner, dict) and not inner.get("description"):
                if "$ref" not in inner:
                    silent.append(f"{pointer}/properties/{name}")
                elif (target(root, inner["$ref"]) or {}).get("description"):
                    described["by what it refers to"] += 1
                else:
                    described["not at all: a reference to a schema without one"] += 1
            else:
                described["itself"] += 1
    check(place, "property keys are legal", keys)
    check(place, "properties have descriptions", silent)
    if root.get("properties") == {}:
        closed = root == {"type": "object", "properties": {}, "additionalProperties": False}
        check(place, "without arguments: a closed empty object", [] if closed else [json.dumps(root)])


def hidden(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if match := HIDDEN.search(value):
            yield f"U+{ord(match[0]):04X} in {value[max(0, match.start() - 20):match.end() + 20]!r}"
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from hidden(key)
            yield from hidden(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from hidden(inner)


def lint_tool(place: str, method: str, tool: dict) -> None:
    name, description, hints = tool.get("name", ""), tool.get("description", ""), tool.get("annotations", {})
    check(place, "the name is legal", [] if NAME.fullmatch(name) else [name])
    check(place, "has a title", [] if tool.get("title", "").strip() else ["none"])
    check(place, "has a description", [] if description.strip() else ["none"])
    size = len(description.encode())
    check(place, "the description is short enough", [f"{size} bytes"] if size > LONGEST_DESCRIPTION else [])
    if method in HINTED:
        check(place, "all four hints are booleans", [hint for hint in HINTS if not isinstance(hints.get(hint), bool)])
    check(place, "no hidden characters", list(hidden(tool)))


meta = MetaSchema()
for document in (cache / "work/documents").read_text().splitlines():
    try:
        entries = json.loads((cache / "lists" / (document.replace("/", "_") + ".json")).read_text())
    except (OSError, ValueError):
        continue  # count.py has said so
    counted = Counter(entry["tool"].get("name") for entry in entries)
    check(document, "names are unique", [f"{name} {count} times" for name, count in counted.items() if count > 1])
    for entry in entries:
        tool = entry["tool"]
        place = f"{document} {tool.get('name')}"
        lint_tool(place, entry["method"], tool)
        for kind in ("inputSchema", "outputSchema"):
            if kind in tool:
                lint_schema(f"{place} {kind}", tool[kind], kind == "inputSchema")
                meta.add(f"{place} {kind}", tool[kind])
        lint_input(f"{place} inputSchema", tool["inputSchema"])
meta.report()

total = max(sum(described.values()), 1)
print("properties with a description: " + ", ".join(f"{count / total:.1%} {how}" for how, count in described.most_common()))
for rule, count in Counter(rule for rule, _, _ in failures).most_common():
    print(f"FAILED {count} times: {rule}; the first:")
    for _, place, wrong in [failure for failure in failures if failure[0] == rule][:3]:
        print(f"    {place}: {'; '.join(wrong)[:300]}")
(cache / "lint-failures.txt").write_text("".join(f"{rule}\t{place}\t{'; '.join(wrong)[:500]}\n" for rule, place, wrong in failures))
print(f"{passed} passed, {len(failures)} failed")
