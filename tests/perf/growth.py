#!/usr/bin/env python3
"""Counts the instructions of `tools --format json` and `check` for documents of which one dimension doubles.

Work that is linear doubles with it. If the instructions beyond those for an almost empty document grow by more than GROWTH, the
program fails. They are counted by cachegrind (valgrind), so that they do not depend on what else the machine does.

Usage: growth.py BINARY [FACTOR]      (FACTOR multiplies all sizes, for an optimized binary)
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

GROWTH = 2.4
TOOLS, CHECK = ["tools", "--format", "json"], ["check"]
REPLIES = {"200": {"description": "Done."}}
TEXT = {"type": "string"}


def document(paths: dict, **more) -> dict:
    start = {"openapi": "3.1.0", "info": {"title": "Growth", "version": "1"}, "servers": [{"url": "http://127.0.0.1:1"}]}
    return {**start, "paths": paths, **more}


def get(number: int = 0, **more) -> dict:
    return {"get": {"operationId": f"listThings{number}", "responses": REPLIES, **more}}


def post(schema: dict, **schemas) -> dict:
    body = {"content": {"application/json": {"schema": schema}}}
    operation = {"operationId": "createThing", "requestBody": body, "responses": REPLIES}
    return document({"/things": {"post": operation}}, components={"schemas": schemas})


def named(count: int, value) -> dict:
    return {f"name{number}": value(number) for number in range(count)}


def of_names(count: int, value=lambda number: TEXT) -> dict:
    return {"type": "object", "properties": named(count, value)}


def reference(name: str) -> dict:
    return {"$ref": f"#/components/schemas/{name}"}


def operations(count: int) -> dict:
    methods = ["get", "put", "post", "delete", "patch"]
    paths = {}
    for number in range(count):
        operation = {"operationId": f"doThing{number}", "summary": f"Do thing {number}", "responses": REPLIES}
        paths.setdefault(f"/groups{number // 5}/{{id}}", {})[methods[number % 5]] = operation
    return document(paths)


def path_items(count: int) -> dict:
    return document({f"/things{number}": get(number) for number in range(count)})


def parameters(count: int) -> dict:
    def parameter(number):
        return {"name": f"X-Filter{number}", "in": ["query", "header"][number % 2], "schema": TEXT}

    return document({"/things": get(parameters=[parameter(number) for number in range(count)])})


def enum_values(count: int) -> dict:
    kinds = {"type": "string", "enum": [f"kind-{number}" for number in range(count)]}
    return document({"/things": get(parameters=[{"name": "kind", "in": "query", "schema": kinds}])})


def tags(count: int) -> dict:
    names = [f"tag{number}" for number in range(count)]
    return document({"/things": get(tags=names)}, tags=[{"name": name, "description": "One of many."} for name in names])


def servers(count: int) -> dict:
    return document({"/things": get()}) | {"servers": [{"url": f"http://127.0.0.1:1/{number}"} for number in range(count)]}


def components(count: int) -> dict:
    return post(of_names(count, lambda number: reference(f"name{number}")), **named(count, lambda _: of_names(1)))


def branches(count: int) -> dict:
    return post({"allOf": [{"type": "object", "properties": {f"name{number}": TEXT}} for number in range(count)]})


def depth(count: int) -> dict:
    levels = named(count, lambda number: of_names(1) | {"properties": {"next": reference(f"name{number + 1}")}})
    return post(reference("name0"), **levels, **{f"name{count}": TEXT})


def identifiers(count: int) -> dict:
    url = "https://schemas.example/{}".format
    schemas = named(count, lambda number: of_names(1) | {"$id": url(number), "$anchor": f"anchor{number}"})
    return post(of_names(count, lambda number: {"$ref": url(number)}), **schemas)


# How many there are at first, and what is run. In an unoptimized binary, that takes a few hundred million instructions.
DIMENSIONS = {
    "operations": (250, operations, [TOOLS, CHECK]),
    "path items": (250, path_items, [TOOLS, CHECK]),
    "properties": (1500, lambda count: post(of_names(count)), [TOOLS, CHECK]),
    "enum values": (20000, enum_values, [TOOLS, CHECK]),
    "parameters": (1500, parameters, [TOOLS, CHECK]),
    "branches of allOf": (1000, branches, [TOOLS, CHECK]),
    "references": (1500, lambda count: post(of_names(count, lambda _: reference("Thing")), Thing=TEXT), [TOOLS, CHECK]),
    "tags": (4000, tags, [TOOLS, CHECK]),
    "servers": (4000, servers, [TOOLS, CHECK]),
    "components": (750, components, [TOOLS, CHECK]),
    "depth": (750, depth, [TOOLS, CHECK]),
    "references that lead nowhere": (1500, lambda count: post(of_names(count, lambda n: reference(f"Thing{n}"))), [CHECK]),
    "schemas with $id and $anchor": (1000, identifiers, [CHECK]),
}


def instructions(binary: str, command: list[str], content: dict) -> int:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(content, file)
        file.flush()
        valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
        variables = {key: value for key, value in os.environ.items() if not key.startswith(("OPENAPI_MCP", "OTEL", "RUST_LOG"))}
        run = subprocess.run(
            [*valgrind, binary, command[0], "--spec", file.name, *command[1:]],
            env=variables | {"TOKIO_WORKER_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    found = re.search(r"I\s+refs:\s+([\d,]+)", run.stderr)
    if run.returncode != 0 or not found:
        sys.exit(f"{command[0]} under cachegrind ended with {run.returncode}:\n{run.stderr}")
    return int(found[1].replace(",", ""))


def main() -> int:
    for tool in ["valgrind", "strip"]:
        if not shutil.which(tool):
            print(f"skipped: {tool} is not installed")
            return 0
    factor = float(sys.argv[2]) if len(sys.argv) > 2 else 1
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        # valgrind reads debug information for seconds.
        binary = str(Path(folder) / "openapi-mcp")
        subprocess.run(["strip", "-o", binary, sys.argv[1]], check=True)
        empty = {command[0]: instructions(binary, command, document({"/things": get()})) for command in [TOOLS, CHECK]}
        for name, (size, make, commands) in DIMENSIONS.items():
            size = int(size * factor)
            for command in commands:
                once, twice = (instructions(binary, command, make(count)) - empty[command[0]] for count in [size, 2 * size])
                growth = twice / once
                failed |= growth > GROWTH
                verdict = "FAILED " if growth > GROWTH else ""
                print(f"{verdict}{name}, {command[0]}: {size:,} take {once / 1e6:,.0f} million instructions, twice as many {growth:.2f} x", flush=True)
    return 1 if failed else 0


sys.exit(main())
