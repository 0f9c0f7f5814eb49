"""The examples that a document gives for the arguments of an operation, and the property each belongs to."""

import hashlib
import re
from pathlib import Path
from typing import Any, Iterator
from urllib.parse import unquote, urlsplit

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from document import At, Document, Operation

LEGAL = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
# OpenAPI says to ignore the first three as parameters; the others frame or route a message, so that no call may set them.
NOT_SETTABLE = re.compile(
    r"accept|content-type|authorization|host|content-length|transfer-encoding|connection|keep-alive|te|trailer|upgrade"
    r"|expect|cookie|forwarded|proxy-.*|x-forwarded-.*",
    re.IGNORECASE,
)
PLACES = ("path", "query", "querystring", "header", "cookie")  # in this order they may keep a name that several have


def cut(text: str, whole: str) -> str:
    return text[:57].rstrip("_-.") + "_" + hashlib.sha256(whole.encode()).hexdigest()[:6]


def sanitized(name: str) -> str:
    """The key that a tool uses for a name: the README's rule."""
    if LEGAL.fullmatch(name):
        return name
    key = "_".join(word for word in re.split(r"[^a-zA-Z0-9_.-]+", name) if word)
    return cut(key or "argument", name) if not key or len(key) > 64 else key


def renamed(value: Any) -> Any:
    """The value with member names as the tool has them."""
    if isinstance(value, dict):
        return {sanitized(str(key)): renamed(inner) for key, inner in value.items()}
    return [renamed(inner) for inner in value] if isinstance(value, list) else value


def values(document: Document, holder: At, swagger: bool) -> list[Any]:
    """`example` and `examples` of a Parameter or Media Type Object; `x-example` of 2.0."""
    if not isinstance(holder.value, dict):
        return []
    found = [holder.value[key] for key in ("example", *(["x-example"] if swagger else [])) if key in holder.value]
    for _, example in holder.get("examples").items():
        example = document.resolve(example).value
        if isinstance(example, dict):
            found += [example[key] for key in ("value", "dataValue") if key in example]
    return found


def parameters(document: Document, operation: Operation) -> list[At]:
    """Those of the path item and of the operation, which replace the former by name and place."""
    found = {}
    for at in operation.shared.each() + operation.node.get("parameters").each():
        at = document.resolve(at)
        if isinstance(at.value, dict) and isinstance(at.value.get("name"), str):
            found[at.value.get("in"), at.value["name"]] = at
    return list(found.values())


def is_json(media_type: str) -> bool:
    essence = media_type.split(";")[0].strip().lower()
    return essence in ("application/json", "*/*", "application/*", "text/json") or essence.endswith("+json")


def body(document: Document, operation: Operation, declared: list[At]) -> tuple[bool, At | None]:
    """Whether there is a body, and the object with schema and examples where it is JSON."""
    if document.version < (3,):
        holders = [at for at in declared if at.value.get("in") == "body"]
        consumes = operation.node.get("consumes").value or document.root.get("consumes").value or ["application/json"]
        json_body = bool(holders) and any(is_json(str(name)) for name in consumes)
        return any(at.value.get("in") in ("body", "formData") for at in declared), holders[0] if json_body else None
    content = document.resolve(operation.node.get("requestBody")).get("content").items()
    media = [document.resolve(at) for name, at in content if is_json(name)]
    return bool(content), media[0] if media else None


def without_read_only(document: Document, schema: At, value: Any, depth: int = 0) -> Any:
    """The value without members whose schemas are `readOnly`: replies have them, requests do not."""
    schema = document.resolve(schema)
    if depth > 24 or not isinstance(schema.value, dict):
        return value
    if isinstance(value, list):
        return [without_read_only(document, schema.get("items"), inner, depth + 1) for inner in value]
    if not isinstance(value, dict):
        return value
    for key in ("allOf", "anyOf", "oneOf"):
        for branch in schema.get(key).each():
            value = without_read_only(document, branch, value, depth + 1)
    declared = dict(schema.get("properties").items())
    more = schema.get("additionalProperties")
    kept = {}
    for key, inner in value.items():
        at = declared.get(key)
        if at and True in (at.get("readOnly").value, document.resolve(at).get("readOnly").value):
            continue
        kept[key] = without_read_only(document, at or more, inner, depth + 1)
    return kept


class Judge:
    """Whether a value fits a schema of the document as it is written: else a miss is the document's own doing.

    Reads `nullable` and boolean limits of 3.0 not at all, so that some misses are excused wrongly, none accused."""

    def __init__(self, document: Document):
        self.document = document
        self.registry = Registry(retrieve=self.retrieve)
        self.validators: dict[int, tuple[Any, Draft202012Validator]] = {}

    def retrieve(self, uri: str) -> Resource:
        return Resource(self.document.load(Path(unquote(urlsplit(uri).path))), DRAFT202012)

    def fits(self, schema: At, value: Any) -> bool:
        if not isinstance(schema.value, dict):
            return False
        known = self.validators.get(id(schema.value))
        if known is None:
            absolute = {key: inner for key, inner in self.absolute(schema.value, schema.file).items() if key != "in"}
            if not isinstance(absolute.get("required", []), list):
                del absolute["required"]  # a parameter of 2.0 is its own schema
            if "properties" in absolute and not {"type", "$ref", "allOf", "anyOf", "oneOf", "enum", "const"} & absolute.keys():
                absolute["type"] = "object"  # properties without a type are meant as an object's
            # The schema is kept beside its validator, so that its id stays its own.
            checker = Draft202012Validator.FORMAT_CHECKER
            known = schema.value, Draft202012Validator(absolute, registry=self.registry, format_checker=checker)
            self.validators[id(schema.value)] = known
        try:
            return known[1].is_valid(value)
        except Exception:  # a schema that this validator cannot read accuses nobody
            return False

    def absolute(self, value: Any, file: Path) -> Any:
        if isinstance(value, list):
            return [self.absolute(inner, file) for inner in value]
        if not isinstance(value, dict):
            return value
        found = {key: self.absolute(inner, file) for key, inner in value.items()}
        if isinstance(reference := value.get("$ref"), str) and "://" not in reference:
            name, _, fragment = reference.partition("#")
            target = (file.parent / unquote(name)).resolve() if name else file
            found["$ref"] = f"{target.as_uri()}#{fragment}"
        return found


def cases(document: Document, judge: Judge, operation: Operation, tool: dict) -> Iterator[dict]:
    """For every example its property (null where the tool has none), the values that may stand for it, and whether it fits
    the document's own schema."""
    declared = parameters(document, operation)
    has_body, holder = body(document, operation, declared)
    swagger = document.version < (3,)
    properties = tool["inputSchema"].get("properties", {})
    taken = {"body"} if has_body else set()

    flat = [at for at in declared if at.value.get("in") in PLACES]
    for at in sorted(flat, key=lambda at: PLACES.index(at.value["in"])):
        name, place = at.value["name"], at.value["in"]
        if place == "header" and NOT_SETTABLE.fullmatch(name):
            continue
        if place == "path" and f"{{{name}}}" not in operation.path:
            continue
        key = next(key for key in names(sanitized(name), place) if key not in taken)
        taken.add(key)
        media = [document.resolve(inner) for _, inner in at.get("content").items()]
        for holding in [at, *media[:1]]:
            for value in values(document, holding, swagger):
                yield {
                    "key": key if key in properties else None,
                    "of": f"{place} {name}",
                    "values": [renamed(value)],
                    "fits": judge.fits(at if swagger else (media or [at])[0].get("schema"), value),
                }

    if holder:
        schema = holder.get("schema")
        for value in values(document, holder, swagger):
            candidates = [renamed(value)]
            if (trimmed := without_read_only(document, schema, value)) != value:
                candidates.append(renamed(trimmed))
            yield {
                "key": "body" if "body" in properties else None,
                "of": "body",
                "values": candidates,
                "fits": judge.fits(schema, value),
            }


def names(key: str, place: str) -> Iterator[str]:
    yield key
    for number in range(1, 100):
        candidate = f"{key}_{place}" if number == 1 else f"{key}_{place}_{number}"
        yield candidate if len(candidate) <= 64 else cut(candidate, candidate)
