"""Calls the tools of real documents with arguments made from their own input schemas, against the mock: no call may fail on our
side, and none may be refused by an HTTP parser."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

MOST_TOOLS = int(os.environ.get("GENERATED_TOOLS", "4"))
DEEPEST = 6
TEXTS = ["a", "x y", "ä&b=c", "100%", "2026-01-31", "7", "true", "..x", "#", "a,b;c", "line\nbreak"]
FORMATS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T10:00:00Z",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "email": "a@b.example",
    "uri": "https://a.example/b?c=d",
    "ipv4": "192.0.2.1",
}


def make(schema, root, chance, depth=0):
    """A value that most likely fits the schema; what it does not understand it leaves out."""
    if not isinstance(schema, dict) or depth > DEEPEST:
        return None if isinstance(schema, bool) else {} if "object" in kinds(schema) else "a"
    if "$ref" in schema:
        target = root
        for key in schema["$ref"].removeprefix("#/").split("/"):
            target = target[key.replace("~1", "/").replace("~0", "~")]
        return make({**target, **{key: value for key, value in schema.items() if key != "$ref"}}, root, chance, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return chance.choice(schema["enum"])
    if schema.get("examples") and chance.random() < 0.5:
        return schema["examples"][0]
    for several in ("anyOf", "oneOf"):
        if schema.get(several):
            rest = {key: value for key, value in schema.items() if key != several}
            return make(merged(rest, chance.choice(schema[several]), root), root, chance, depth + 1)
    if schema.get("allOf"):
        whole = {key: value for key, value in schema.items() if key != "allOf"}
        for part in schema["allOf"]:
            whole = merged(whole, part, root)
        return make(whole, root, chance, depth + 1)
    kind = chance.choice(kinds(schema))
    if kind == "object":
        required = schema.get("required", [])
        value = {}
        for key, inner in schema.get("properties", {}).items():
            if key in required or chance.random() < (0.6 if depth == 0 else 0.3):
                value[key] = make(inner, root, chance, depth + 1)
        for key in required:
            value.setdefault(key, "a")
        return value
    if kind == "array":
        count = max(schema.get("minItems", 0), min(chance.randint(0, 2), schema.get("maxItems", 2)))
        return [make(schema.get("items", {}), root, chance, depth + 1) for _ in range(min(count, 20))]
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        high = schema.get("maximum", schema.get("exclusiveMaximum", low + 10))
        value = int(min(max(low + 1, low), high))
        step = schema.get("multipleOf")
        return value if not step else int(-(-value // step) * step)
    if kind == "boolean":
        return chance.random() < 0.5
    if kind == "null":
        return None
    text = FORMATS.get(schema.get("format"), "" if "pattern" in schema else chance.choice(TEXTS))
    text = text.ljust(schema.get("minLength", 0), "a")
    return text[: schema.get("maxLength", len(text))]


def kinds(schema):
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind is None:
        return ["object"] if isinstance(schema, dict) and "properties" in schema else ["string"]
    return kind if isinstance(kind, list) else [kind]


def merged(base, part, root):
    if isinstance(part, dict) and "$ref" in part:
        target = root
        for key in part["$ref"].removeprefix("#/").split("/"):
            target = target[key.replace("~1", "/").replace("~0", "~")]
        part = {**target, **{key: value for key, value in part.items() if key != "$ref"}}
    if not isinstance(part, dict):
        return base
    whole = {**base, **part}
    if "properties" in base and "properties" in part:
        whole["properties"] = {**base["properties"], **part["properties"]}
    if "required" in base and "required" in part:
        whole["required"] = base["required"] + part["required"]
    return whole


def main():
    binary, corpus = sys.argv[1], Path(sys.argv[2])
    chance = random.Random(20261120)
    called = refused = 0
    failures = []
    for line in (corpus / "MANIFEST.tsv").read_text().splitlines():
        name = line.split("\t")[0]
        if line.startswith("#") or not name:
            continue
        server = subprocess.Popen(
            [binary, "serve", "--spec", str(corpus / name), "--mock", "--tools", "all", "--log-level", "off"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        ids = iter(range(1, 1 << 30))

        def request(method, params):
            number = next(ids)
            server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
            server.stdin.flush()
            for text in server.stdout:
                answer = json.loads(text)
                if answer.get("id") == number:
                    return answer
            raise RuntimeError(f"{name}: the server ended")

        try:
            request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "generated", "version": "1"}})
        except (RuntimeError, BrokenPipeError):
            continue  # No document to serve; others count those.
        # No made-up handle is one.
        tools = [tool for tool in request("tools/list", {})["result"]["tools"] if tool["name"] != "wait_operation"]
        for tool in chance.sample(tools, min(len(tools), MOST_TOOLS)):
            schema = tool["inputSchema"]
            arguments = make(schema, schema, chance)
            answer = request("tools/call", {"name": tool["name"], "arguments": arguments})
            called += 1
            result = answer.get("result")
            if result is None:
                failures.append(f"{name} {tool['name']}: {json.dumps(answer)[:300]}")
                continue
            text = " ".join(block.get("text", "") for block in result["content"])[:400]
            if not result.get("isError"):
                continue
            if "nothing was sent" in text or "failed: `" in text:
                refused += 1  # What was made did not fit, or cannot be sent; the model is told.
            elif text[:1].isdigit():
                # The mock's own status: it answers what the document declares, and says 4xx and 5xx of its own in words.
                if text.startswith(("400", "404", "405", "411", "413", "431", "500", "501", "505")) and "mock" in text:
                    failures.append(f"{name} {tool['name']} {json.dumps(arguments)[:200]}: {text}")
            else:
                failures.append(f"{name} {tool['name']} {json.dumps(arguments)[:200]}: {text}")
        server.stdin.close()
        server.wait(20)
    for failure in failures[:20]:
        print("FAILED", failure)
    print(f"{called} calls, of which {refused} were refused before anything was sent")
    print(f"{called - len(failures)} passed, {len(failures)} failed")


main()
