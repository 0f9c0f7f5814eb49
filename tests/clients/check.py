"""Drives the binary with each client, over stdio and HTTP, in each era, and checks what the client saw.

Every run gets its own upstream and its own server, so runs cannot disturb each other and two go at a time.
A client is a script that takes one job as JSON, {command | url, era, calls: [[name, arguments]]}, and prints
{protocol, server, list, results: [{result} | {error: {code, message}}]}.
"""

import argparse
import base64
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from upstream import PIXEL, TEXT, THINGS, Upstream

HERE = Path(__file__).resolve().parent
PETSTORE = HERE.parent.parent / "examples" / "petstore" / "petstore.yaml"
VERSION = {"legacy": "2025-11-25", "modern": "2026-07-28"}
START_DEADLINE = 20  # seconds, for a server to listen or to stop
CLIENT_DEADLINE = 90  # seconds, for a whole client script


def hints(read_only, destructive, idempotent):
    return {
        "readOnlyHint": read_only,
        "destructiveHint": destructive,
        "idempotentHint": idempotent,
        "openWorldHint": True,
    }


# name: (title, properties that inputSchema must have, those that it must require, annotations)
GET = HEAD = OPTIONS = hints(True, False, True)
POST = hints(False, False, False)
PUT = DELETE = hints(False, True, True)
PATCH = hints(False, True, False)
TRACE = None  # no annotations at all: MCP's defaults apply
TOOLS = {
    "listThings": ("List things", [], [], GET),
    "createThing": ("Create a thing", ["body"], ["body"], POST),
    "getThing": ("Get a thing", ["id", "tags", "limit"], ["id"], GET),
    "headThing": ("Look for a thing", ["id"], ["id"], HEAD),
    "optionsThing": ("Ask what a thing allows", ["id"], ["id"], OPTIONS),
    "replaceThing": ("Replace a thing", ["id", "body"], ["id", "body"], PUT),
    "patchThing": ("Change a thing", ["id", "body"], ["id", "body"], PATCH),
    "deleteThing": ("Delete a thing", ["id"], ["id"], DELETE),
    "traceThing": ("Trace the way to a thing", ["id"], ["id"], TRACE),
    "readText": ("Read some text", [], [], GET),
    "readImage": ("Read an image", [], [], GET),
    "getMissing": ("Get what is not there", [], [], GET),
}

ABSENT = object()


def show(value):
    text = "nothing" if value is ABSENT else json.dumps(value, ensure_ascii=False)
    return text if len(text) < 600 else text[:600] + " …"


class Report:
    """The checks of one run."""

    def __init__(self, title):
        self.title, self.passed, self.failures = title, 0, []

    def true(self, ok, what, got=ABSENT):
        if ok:
            self.passed += 1
        else:
            self.failures.append(what if got is ABSENT else f"{what}; got {show(got)}")
        return ok

    def equal(self, got, expected, what):
        return self.true(got == expected, f"{what}: expected {show(expected)}", got)


# ---- what a call must come back as: each takes (report, what, outcome) ----


def succeeded(report, what, outcome):
    result = outcome.get("result")
    return report.true(result is not None and not result.get("isError"), f"{what}: succeeds", outcome)


def structured(expected):
    """structuredContent is `expected`, and so is the only text, as compact JSON."""

    def expect(report, what, outcome):
        if not succeeded(report, what, outcome):
            return
        result = outcome["result"]
        report.equal(result.get("structuredContent", ABSENT), expected, f"{what}: structuredContent")
        texts = [block.get("text") for block in result["content"] if block["type"] == "text"]
        text = json.dumps(expected, separators=(",", ":"), ensure_ascii=False)
        report.equal(texts, [text], f"{what}: text")

    return expect


def echo(method, path, query=None, body=None, content_type=None):
    return structured(
        {"method": method, "path": path, "query": query or {}, "contentType": content_type, "body": body}
    )


def content(*blocks):
    """Exactly these content blocks (their own annotations and _meta aside), and no structuredContent."""

    def expect(report, what, outcome):
        if not succeeded(report, what, outcome):
            return
        result = outcome["result"]
        got = [{k: v for k, v in block.items() if k not in ("annotations", "_meta")} for block in result["content"]]
        report.equal(got, list(blocks), f"{what}: content")
        report.equal(result.get("structuredContent", ABSENT), ABSENT, f"{what}: structuredContent")

    return expect


def text_with(*words):
    def expect(report, what, outcome):
        if succeeded(report, what, outcome):
            text = "\n".join(block.get("text", "") for block in outcome["result"]["content"])
            report.true(all(word in text for word in words), f"{what}: text says {', '.join(words)}", text)

    return expect


def tool_error(*words):
    """A result with isError, which a model can read and repair, and not a protocol error."""

    def expect(report, what, outcome):
        result = outcome.get("result", {})
        if report.true(result.get("isError") is True, f"{what}: is a result with isError", outcome):
            text = "\n".join(block.get("text", "") for block in result["content"])
            report.true(all(word in text for word in words), f"{what}: text says {', '.join(words)}", text)

    return expect


def protocol_error(code):
    def expect(report, what, outcome):
        report.equal(outcome.get("error", {}).get("code", ABSENT), code, f"{what}: JSON-RPC error of {show(outcome)}")

    return expect


LAMP = {"name": "lamp", "price": 12.5, "tags": ["new", "grün"]}
JSON_TYPE = "application/json"
MERGE_TYPE = "application/merge-patch+json"

# (what, tool, arguments, the request that must arrive or None, expectation)
CASES = [
    ("GET", "getThing", {"id": 7, "tags": ["red", "light blue"], "limit": 5},
     ("GET", "/things/7?tags=red&tags=light%20blue&limit=5"),
     echo("GET", "/things/7", {"tags": ["red", "light blue"], "limit": ["5"]})),
    ("GET without the optional arguments", "getThing", {"id": 7}, ("GET", "/things/7"), echo("GET", "/things/7")),
    ("HEAD", "headThing", {"id": 7}, ("HEAD", "/things/7"), text_with("200")),
    ("OPTIONS", "optionsThing", {"id": 7}, ("OPTIONS", "/things/7"), echo("OPTIONS", "/things/7")),
    ("POST", "createThing", {"body": LAMP}, ("POST", "/things"),
     echo("POST", "/things", body=LAMP, content_type=JSON_TYPE)),
    ("PUT", "replaceThing", {"id": 7, "body": LAMP}, ("PUT", "/things/7"),
     echo("PUT", "/things/7", body=LAMP, content_type=JSON_TYPE)),
    ("PATCH", "patchThing", {"id": 7, "body": {"name": None}}, ("PATCH", "/things/7"),
     echo("PATCH", "/things/7", body={"name": None}, content_type=MERGE_TYPE)),
    ("DELETE, answered by 204", "deleteThing", {"id": 7}, ("DELETE", "/things/7"), text_with("204 No Content")),
    ("TRACE", "traceThing", {"id": 7}, ("TRACE", "/things/7"), echo("TRACE", "/things/7")),
    ("a JSON array", "listThings", {}, ("GET", "/things"), structured({"result": THINGS})),
    ("text", "readText", {}, ("GET", "/text"), content({"type": "text", "text": TEXT})),
    ("an image", "readImage", {}, ("GET", "/image"),
     content({"type": "text", "text": f"image/png, {len(PIXEL)} bytes"},
             {"type": "image", "data": base64.b64encode(PIXEL).decode(), "mimeType": "image/png"})),
    ("a 404", "getMissing", {}, ("GET", "/missing"), tool_error("404", "there is no such thing")),
    ("an argument of the wrong type", "getThing", {"id": "seven"}, None, tool_error("id")),
    ("a missing argument", "getThing", {"limit": 5}, None, tool_error("id")),
    ("an argument out of range", "getThing", {"id": 7, "limit": 5000}, None, tool_error("limit")),
    ("a body without a required field", "createThing", {"body": {"price": 1}}, None, tool_error("name")),
    ("an unknown argument", "getThing", {"id": 7, "limmit": 5}, None, tool_error("limmit")),
    ("an unknown tool", "noSuchTool", {}, None, protocol_error(-32602)),
]
# The Inspector starts a process for each call, so it gets a few. (Not the unknown tool: it refuses that by itself.)
FEW = [case for case in CASES if case[0] in ("GET", "POST", "a 404", "an unknown argument")]


def check_list(report, listed):
    tools = {tool["name"]: tool for tool in listed["tools"]}
    report.equal(sorted(tools), sorted(TOOLS), "tools/list: names")
    report.equal(listed.get("nextCursor", ABSENT), ABSENT, "tools/list: one page, so nextCursor")
    for name, (title, properties, required, annotations) in TOOLS.items():
        tool = tools.get(name)
        if tool is None:
            continue  # reported above
        report.equal(tool.get("title", ABSENT), title, f"{name}: title")
        report.true(bool(tool.get("description")), f"{name}: has a description")
        schema = tool.get("inputSchema") or {}
        report.equal(schema.get("type", ABSENT), "object", f"{name}: type of inputSchema")
        have = list(schema.get("properties", {}))
        report.true(set(properties) <= set(have), f"{name}: inputSchema has {properties}", have)
        report.equal(sorted(schema.get("required", [])), sorted(required), f"{name}: required arguments")
        expected = ABSENT if annotations is None else annotations
        report.equal(tool.get("annotations", ABSENT), expected, f"{name}: annotations")


def check_calls(report, cases, results, seen):
    report.equal(len(results), len(cases), "as many results as calls")
    for (what, name, _, _, expect), outcome in zip(cases, results):
        expect(report, f"{name} ({what})", outcome)
    # In order and once each: nothing is retried, and nothing refused is sent all the same.
    report.equal([list(r) for r in seen], [list(c[3]) for c in cases if c[3]], "requests that reached the upstream")


# ---- processes ----


@contextmanager
def serving(binary, *options):
    """Runs the binary over HTTP on a free port and yields its URL, as it tells it on stderr."""
    command = [binary, "serve", *options, "--transport", "http", "--bind", "127.0.0.1:0"]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    lines, ready = [], threading.Event()

    def read():  # to the end, so that the pipe never fills up
        for line in server.stderr:
            lines.append(line)
            if "listening on" in line:
                ready.set()
        ready.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        ready.wait(START_DEADLINE)
        found = re.search(r"listening on (http://\S+?/mcp)\b", "".join(lines))
        if not found:
            raise RuntimeError(f"{' '.join(command)}: no `listening on` line; stderr: {''.join(lines)!r}")
        yield found.group(1)
    finally:
        server.terminate()
        try:
            server.wait(START_DEADLINE)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        reader.join(START_DEADLINE)
        server.stderr.close()


def ask(client, job):
    """Runs one client script and returns what it printed."""
    run = subprocess.run([*client, json.dumps(job)], capture_output=True, text=True, timeout=CLIENT_DEADLINE)
    if run.returncode != 0:
        # The server's own words come first on stderr, the client's reason last.
        said = run.stderr.strip()
        said = said if len(said) < 2000 else f"{said[:700]}\n…\n{said[-1300:]}"
        raise RuntimeError(f"the client ended with {run.returncode}: {said}")
    return json.loads(run.stdout)


# ---- the runs ----


def one_run(report, binary, client, transport, era, cases, schemas="auto"):
    with Upstream() as upstream, tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        options = ["--config", config.name]
        keys = {"spec": str(HERE / "verbs.yaml"), "base_url": upstream.url, "output_schemas": schemas}
        json.dump(keys, config)
        config.flush()
        job = {"era": era, "calls": [[name, arguments] for _, name, arguments, _, _ in cases]}
        if transport == "stdio":
            saw = ask(client, {**job, "command": [binary, "serve", *options]})
        else:
            with serving(binary, *options) as url:
                saw = ask(client, {**job, "url": url})
        if "protocol" in saw:  # the Inspector does not tell it
            report.equal(saw["protocol"], VERSION[era], "negotiated protocol version")
            report.equal((saw["server"] or {}).get("name", ABSENT), "verbs", "name of the server")
        if "lint" in saw:
            report.equal(saw["lint"]["exit"], 0, f"strict lint of the list: {saw['lint']['report']}")
        check_list(report, saw["list"])
        if schemas == "strict":
            unwrap_objects(saw["results"])
        check_calls(report, cases, saw["results"], upstream.seen)


def unwrap_objects(outcomes):
    """Strict schemas have every reply as the member `result`; here the cases expect objects as they are."""
    for outcome in outcomes:
        result = outcome.get("result", {})
        content = result.get("structuredContent")
        if isinstance(content, dict) and list(content) == ["result"] and isinstance(content["result"], dict):
            text = result["content"][0]["text"]
            result["structuredContent"] = content["result"]
            result["content"][0]["text"] = text.removeprefix('{"result":').removesuffix("}")


# In search mode: the hints of each meta_tool, all four of them.
META_TOOLS = {
    "search_operations": {**hints(True, False, True), "openWorldHint": False},
    "describe_operations": {**hints(True, False, True), "openWorldHint": False},
    "call_read": hints(True, False, True),
    "call_write": hints(False, False, False),
    "call_destructive": hints(False, True, False),
}
THING = {"operation": "deleteThing", "arguments": {"id": 7}}
GATE_CASES = [
    ("a read", "call_read", {"operation": "headThing", "arguments": {"id": 7}}, ("HEAD", "/things/7"), succeeded),
    ("a deletion", "call_destructive", THING, ("DELETE", "/things/7"), succeeded),
    ("a deletion as a read", "call_read", THING, None, tool_error("call_destructive")),
    ("a deletion as a write", "call_write", THING, None, tool_error("call_destructive")),
    ("a search", "search_operations", {"queries": ["delete a thing"]}, None, succeeded),
    ("a description", "describe_operations", {"names": ["deleteThing"]}, None, succeeded),
]


def gates_run(report, binary, client, transport, era):
    """Search mode: the client sees the hints of the meta-tools, and no meta-tool lets through what its hints do not say."""
    with Upstream() as upstream, tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        options = ["--spec", str(HERE / "verbs.yaml"), "--base-url", upstream.url, "--tools", "search"]
        job = {"era": era, "calls": [[name, arguments] for _, name, arguments, _, _ in GATE_CASES]}
        if transport == "stdio":
            saw = ask(client, {**job, "command": [binary, "serve", *options]})
        else:
            with serving(binary, *options) as url:
                saw = ask(client, {**job, "url": url})
        tools = {tool["name"]: tool.get("annotations") for tool in saw["list"]["tools"]}
        report.equal(tools, META_TOOLS, "the meta-tools and their annotations")
        check_calls(report, GATE_CASES, saw["results"], upstream.seen)
        found = saw["results"][4].get("result", {}).get("_meta", {}).get("openapi-mcp/search", {}).get("results", [{}])[0]
        first = (found.get("hits") or [{}])[0]
        report.equal((first.get("name"), first.get("effect")), ("deleteThing", "destructive"), "the first hit")


# What the operator says of the server, and how clients get it. The icon is the smallest PNG image.
ABOUT = {
    "name": "verbs-eu",
    "title": "Verbs in Europe",
    "description": "Every verb once.",
    "website": "https://verbs.example/",
    "icon": "icon.png",
}
ICON = {"src": "data:image/png;base64," + base64.b64encode(PIXEL).decode(), "mimeType": "image/png", "sizes": ["1x1"]}
INFO = {
    "name": "verbs-eu",
    "title": "Verbs in Europe",
    "description": "Every verb once.",
    "websiteUrl": "https://verbs.example/",
    "icons": [ICON],
}


def identity_run(report, binary, client, transport, era):
    """The client gets the name, title, description, address and icon that the operator set."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "mcp.json"
        config.write_text(json.dumps({"spec": str(HERE / "verbs.yaml"), "mock": True, "about": ABOUT}))
        (Path(folder) / "icon.png").write_bytes(PIXEL)
        options = ["--config", str(config)]
        if transport == "stdio":
            saw = ask(client, {"era": era, "calls": [], "command": [binary, "serve", *options]})
        else:
            with serving(binary, *options) as url:
                saw = ask(client, {"era": era, "calls": [], "url": url})
        info = {key: value for key, value in (saw["server"] or {}).items() if key != "version"}
        report.equal(info, INFO, "introduction of the server")


def mock_run(report, binary, client):
    """A document with examples and no API behind it at all."""
    options = ["--spec", str(PETSTORE), "--mock"]
    document = PETSTORE.read_text()
    wanted = operation_id(document, "/pets/{petId}", "get")
    job = {"era": "modern", "calls": [[wanted, {"petId": 1}]]}
    saw = ask(client, {**job, "command": [binary, "serve", *options]})
    names = [tool["name"] for tool in saw["list"]["tools"]]
    report.equal(sorted(names), sorted(re.findall(r"operationId: *(\S+)", document)), "one tool per operation")
    if succeeded(report, wanted, saw["results"][0]):
        result = saw["results"][0]["result"]
        report.true(bool(result.get("structuredContent")), f"{wanted}: has structuredContent", result)


def operation_id(document, path, method):
    """Finds an operationId by indentation: the standard library reads no YAML, and the document is ours."""
    below = document.split(f"\n  {path}:\n", 1)[1].split(f"\n    {method}:\n", 1)[1]
    return re.search(r"^      operationId: *(\S+)", below, re.MULTILINE).group(1)


def bare_run(report, binary):
    """What no client shows: a closed stdin ends the process well, and stdout carries nothing but the protocol."""
    with Upstream() as upstream, tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        options = ["--spec", str(HERE / "verbs.yaml"), "--base-url", upstream.url]
        hello = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": VERSION["legacy"],
                "capabilities": {},
                "clientInfo": {"name": "clients-kit", "version": "1.0.0"},
            },
        }
        for what, sent in [("at once", ""), ("after initialize", json.dumps(hello) + "\n")]:
            run = subprocess.run(
                [binary, "serve", *options], input=sent, capture_output=True, text=True, timeout=START_DEADLINE
            )
            report.equal(run.returncode, 0, f"exit code when stdin ends {what} ({run.stderr.strip()[-500:]})")
            replies = [json.loads(line)["id"] for line in run.stdout.splitlines()]
            report.equal(replies, [1] if sent else [], f"replies on stdout when stdin ends {what}")
        with serving(binary, *options) as url:
            with urllib.request.urlopen(url.removesuffix("/mcp") + "/healthz", timeout=START_DEADLINE) as health:
                report.equal(health.status, 200, "/healthz")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--cache", required=True, type=Path, help="where the clients are installed")
    parser.add_argument("--without-node", action="store_true", help="leave the npm clients out")
    arguments = parser.parse_args()
    binary, cache = arguments.binary, arguments.cache

    python = [str(cache / "venv" / "bin" / "python"), str(HERE / "client-python.py")]
    clients = {"python": (python, ["legacy", "modern"], CASES)}
    if not arguments.without_node:
        node = str(cache / "node_modules" / ".bin" / "node")
        os.environ["PATH"] = f"{cache / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"
        # The Inspector keeps its catalog and settings in a home directory; not in the user's.
        os.environ["MCP_CATALOG_PATH"] = str(cache / "inspector" / "mcp.json")
        os.environ["MCP_CLIENT_CONFIG_PATH"] = str(cache / "inspector" / "client.json")
        (cache / "inspector").mkdir(exist_ok=True)
        script = lambda name: [node, str(cache / name)]
        clients["inspector"] = (script("client-inspector.mjs"), ["legacy", "modern"], FEW)
        clients["typescript-1"] = (script("client-ts1.mjs"), ["legacy"], CASES)
        clients["typescript-2"] = (script("client-ts2.mjs"), ["legacy", "modern"], CASES)

    runs = [(Report("no client: exit code, stdout, health"), bare_run, (binary,))]
    for name, (client, eras, cases) in sorted(clients.items()):
        for transport in ("stdio", "http"):
            for era in eras:
                report = Report(f"{name} {transport} {era}")
                runs.append((report, one_run, (binary, client, transport, era, cases)))
                runs.append((Report(f"{name} {transport} {era}, search mode"), gates_run, (binary, client, transport, era)))
                if name != "inspector":  # it does not tell it
                    runs.append((Report(f"{name} {transport} {era}, identity"), identity_run, (binary, client, transport, era)))
        # The clients that check results against output schemas, with the document's own.
        if name != "inspector":
            for era in eras:
                report = Report(f"{name} stdio {era}, strict output schemas")
                runs.append((report, one_run, (binary, client, "stdio", era, cases, "strict")))
    runs.append((Report("python stdio modern, petstore with --mock"), mock_run, (binary, python)))

    def perform(run):
        report, function, parameters = run
        try:
            function(report, *parameters)
        except Exception as error:
            report.true(False, f"the run broke off: {type(error).__name__}: {error}")
        return report

    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for report in pool.map(perform, runs):
            passed += report.passed
            failed += len(report.failures)
            print(f"{'FAIL' if report.failures else 'ok  '} {report.title}: {report.passed} checks passed")
            for failure in report.failures:
                print(f"     - {failure}")
            sys.stdout.flush()
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
