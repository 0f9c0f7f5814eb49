"""Reads OpenAPI documents independently of the program under test: operations, references, values."""

import json
import re
from pathlib import Path
from typing import Any, Iterator, NamedTuple
from urllib.parse import unquote

import yaml

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


class Loader(yaml.CSafeLoader):
    """YAML 1.2 as OpenAPI means it: `on` and `2020-01-01` are strings, and every key is."""

    yaml_implicit_resolvers: dict = {}

    def construct_mapping(self, node, deep=False):
        if isinstance(node, yaml.MappingNode):
            self.flatten_mapping(node)
        return {
            key.value if isinstance(key, yaml.ScalarNode) else str(self.construct_object(key, deep=True)):
            self.construct_object(value, deep=deep)
            for key, value in node.value
        }


for tag, pattern, first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
    ("merge", r"^<<$", "<"),
):
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), list(first))
# YAML 1.1 reads 010 as eight and 1:30 as ninety.
Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value))
Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))


class At(NamedTuple):
    """A value and the file it stands in, from which its references are read."""

    value: Any
    file: Path

    def get(self, key: str) -> "At":
        return At(self.value.get(key) if isinstance(self.value, dict) else None, self.file)

    def items(self) -> list[tuple[str, "At"]]:
        members = self.value.items() if isinstance(self.value, dict) else ()
        return [(key, At(value, self.file)) for key, value in members]

    def each(self) -> list["At"]:
        return [At(value, self.file) for value in self.value] if isinstance(self.value, list) else []


class Operation(NamedTuple):
    method: str  # as tools show it; `*` for a path item that cannot be read
    path: str
    pointer: str
    node: At
    shared: At  # the path item's parameters


class Document:
    def __init__(self, path: Path):
        self.path = path
        self.files: dict[Path, Any] = {}
        self.root = At(self.load(path), path)
        version = self.root.value.get("openapi") or self.root.value.get("swagger")
        self.version = tuple(int(part) for part in re.findall(r"\d+", str(version))[:2])

    def load(self, path: Path) -> Any:
        if path not in self.files:
            text = path.read_text("utf-8-sig")
            try:
                self.files[path] = json.loads(text)
            except ValueError:
                self.files[path] = yaml.load(text, Loader)
        return self.files[path]

    def resolve(self, at: At) -> At:
        """Follows references; the value is None where one leads nowhere."""
        for _ in range(32):
            reference = at.value.get("$ref") if isinstance(at.value, dict) else None
            if not isinstance(reference, str):
                return at
            at = self.target(reference, at.file)
        return At(None, at.file)

    def target(self, reference: str, file: Path) -> At:
        name, _, fragment = reference.partition("#")
        if "://" in name:
            return At(None, file)
        try:
            file = (file.parent / unquote(name)).resolve() if name else file
            value = self.load(file)
            for part in unquote(fragment).split("/")[1:]:
                part = part.replace("~1", "/").replace("~0", "~")
                value = value[int(part)] if isinstance(value, list) else value[part]
            return At(value, file)
        except (OSError, ValueError, KeyError, IndexError, TypeError, yaml.YAMLError):
            return At(None, file)

    def operations(self) -> Iterator[Operation]:
        for path, item in self.root.get("paths").items():
            if path.startswith("x-"):
                continue
            pointer = "#/paths/" + path.replace("~", "~0").replace("/", "~1")
            target = self.resolve(item)
            if not isinstance(target.value, dict):
                yield Operation("*", path, pointer, item, At(None, item.file))
                continue
            shared = target.get("parameters")
            for key, node in target.items():
                if key in METHODS or (key == "query" and self.version >= (3, 2)):
                    yield Operation(key.upper(), path, f"{pointer}/{key}", self.resolve(node), shared)
                if key == "additionalOperations" and self.version >= (3, 2):
                    for method, node in node.items():
                        yield Operation(method, path, f"{pointer}/{key}/{method}", self.resolve(node), shared)
