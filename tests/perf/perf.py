"""Counts the instructions that a binary takes for a fixed script, by callgrind, and compares them with a baseline.

Instructions are the same from run to run to within a few in a thousand, where times on a busy machine are not. They depend on the
compiler: after another version of it, or on another processor, the baseline has to be written again.

Usage: perf.py BINARY BASELINE [--update]
"""

import concurrent.futures
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PETSTORE = ROOT / "examples/petstore/petstore.yaml"
# A change of more than this is shown, or fails, in percent.
SHOWN, FAILS = 3.0, 10.0
# So many calls, and then so many more, so that what the start takes cancels out.
FEW, MANY = 100, 400
REPLY_BODY = b'{"id":7,"name":"Biscuit","status":"available","photoUrls":["https://x.example/y.jpg"],"tags":[{"id":1,"name":"a"}]}'
REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(REPLY_BODY) + REPLY_BODY
DEADLINE = 300

HANDSHAKE = [
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "perf", "version": "1"}},
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "perf", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def call(number: int, is_modern: bool = False, has_token: bool = False) -> dict:
    params = {"name": "get_pet", "arguments": {"petId": number}}
    if is_modern:
        params["_meta"] = MODERN_META
    if has_token:
        params["_meta"] = {"progressToken": number}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def answer_requests(connection: socket.socket) -> None:
    """Answers every request, a call or spans, with the same bytes."""
    reader = connection.makefile("rb")
    while reader.readline():
        length = 0
        while (line := reader.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        reader.read(length)
        connection.sendall(REPLY)


def start_upstream() -> str:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=answer_requests, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def synthetic(operations: int) -> dict:
    """A document of operations like those of real APIs: parameters, a body and a reply that components describe."""
    thing = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "id": {"type": "string", "readOnly": True},
            "name": {"type": "string", "description": "What people call it."},
            "size": {"type": "integer", "minimum": 0},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "owner": {"$ref": "#/components/schemas/Owner"},
        },
    }
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}
    paths = {}
    for number in range(operations // 2):
        identifier = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
        limit = {"name": "limit", "in": "query", "description": "How many at most.", "schema": {"type": "integer", "maximum": 100}}
        replies = {"200": {"description": "The thing.", "content": content}}
        paths[f"/groups{number}/{{id}}/things"] = {
            "parameters": [identifier],
            "get": {"operationId": f"listThings{number}", "summary": f"List things {number}", "parameters": [limit], "responses": replies},
            "post": {"operationId": f"createThing{number}", "requestBody": {"required": True, "content": content}, "responses": replies},
        }
    owner = {"type": "object", "properties": {"email": {"type": "string", "format": "email"}}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Synthetic", "version": "1"},
        "servers": [{"url": "http://127.0.0.1:1"}],
        "paths": paths,
        "components": {"schemas": {"Thing": thing, "Owner": owner}},
    }


class Callgrind:
    """The program under callgrind, until it ends."""

    def __init__(self, binary: str, arguments: list[str], settings: dict[str, str], **pipes):
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name) / "callgrind.out"
        variables = {key: value for key, value in os.environ.items() if not key.startswith(("OPENAPI_MCP", "OTEL", "RUST_LOG"))}
        variables |= {"TOKIO_WORKER_THREADS": "1", **settings}
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={self.file}", binary, "serve", *arguments]
        self.process = subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True, **pipes)

    def instructions(self) -> int:
        """Waits for the end."""
        words = self.process.communicate(timeout=DEADLINE)[1]
        self.folder.cleanup()
        found = re.search(r"Collected : (\d+)", words)
        if self.process.returncode != 0 or not found:
            sys.exit(f"the run under callgrind ended with {self.process.returncode}:\n{words}")
        return int(found[1])


def over_stdio(binary: str, arguments: list[str], messages: list[dict], handshake: list[dict] = HANDSHAKE) -> int:
    run = Callgrind(binary, arguments, {}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for message in handshake + messages:
        run.process.stdin.write(json.dumps(message) + "\n")
        run.process.stdin.flush()
        if "id" in message:
            answer = json.loads(run.process.stdout.readline())
            while "method" in answer:
                answer = json.loads(run.process.stdout.readline())
            if "result" not in answer or answer["result"].get("isError"):
                sys.exit(f"{message} was answered with {answer}")
    return run.instructions()


def call_over(connection: socket.socket, host: str, numbers, is_modern: bool) -> None:
    """Makes calls, one after the other, until there is no number left."""
    headers = f"Host: {host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    if is_modern:
        headers += "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: get_pet\r\n"
    else:
        headers += "MCP-Protocol-Version: 2025-11-25\r\n"
    reader = connection.makefile("rb")
    for number in numbers:
        body = json.dumps(call(number, is_modern)).encode()
        connection.sendall(f"POST /mcp HTTP/1.1\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        length = 0
        while (line := reader.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        answer = reader.read(length)
        if b"Biscuit" not in answer:
            sys.exit(f"the call was answered with {answer}")


def over_http(
    binary: str, arguments: list[str], calls: int, is_modern: bool = False, clients: int = 1, settings: dict[str, str] | None = None
) -> int:
    arguments = [*arguments, "--transport", "http", "--bind", "127.0.0.1:0"]
    run = Callgrind(binary, arguments, settings or {}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    for line in run.process.stderr:
        if found := re.search(r"listening on http://([^/]+)/mcp", line):
            host, _, port = found[1].rpartition(":")
            break
    else:
        sys.exit("the server does not listen")
    # The answers are read by as many threads as there are clients; each takes the next number.
    numbers = iter(range(1, calls + 1))
    connections = [socket.create_connection((host, int(port))) for _ in range(clients)]
    with concurrent.futures.ThreadPoolExecutor(clients) as threads:
        for done in [threads.submit(call_over, connection, f"{host}:{port}", numbers, is_modern) for connection in connections]:
            done.result()
    for connection in connections:
        connection.close()
    run.process.terminate()
    return run.instructions()


def measure(binary: str) -> dict[str, int]:
    upstream = start_upstream()
    pets = ["--spec", str(PETSTORE), "--base-url", upstream]

    def calls(count: int, is_modern: bool = False, has_token: bool = False) -> list[dict]:
        return [call(number, is_modern, has_token) for number in range(1, count + 1)]

    def lists(count: int) -> list[dict]:
        return [{**LIST, "id": number} for number in range(1, count + 1)]

    def per_call(measure_calls) -> int:
        return (measure_calls(MANY) - measure_calls(FEW)) // (MANY - FEW)

    def of_64(arguments: list[str], settings: dict[str, str] | None = None) -> int:
        return per_call(lambda count: over_http(binary, [*pets, *arguments], count, clients=64, settings=settings))

    spans = {"OTEL_EXPORTER_OTLP_ENDPOINT": upstream, "OTEL_BSP_SCHEDULE_DELAY": "60000", "OTEL_BSP_MAX_QUEUE_SIZE": "8192"}
    few_spans = spans | {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.01"}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as document, tempfile.TemporaryDirectory() as folder:
        audit = ["--audit-log", f"{folder}/audit.log"]
        metrics = ["--metrics-bind", "127.0.0.1:0"]
        json.dump(synthetic(1000), document)
        document.flush()
        return {
            "start_petstore": over_stdio(binary, pets, []),
            "start_and_list_1000_operations": over_stdio(binary, ["--spec", document.name], [LIST]),
            "list_petstore": per_call(lambda count: over_stdio(binary, pets, lists(count))),
            "call_over_stdio": per_call(lambda count: over_stdio(binary, pets, calls(count))),
            "call_over_stdio_2026": per_call(lambda count: over_stdio(binary, pets, calls(count, True), [])),
            "call_over_http": per_call(lambda count: over_http(binary, pets, count)),
            "call_over_http_2026": per_call(lambda count: over_http(binary, pets, count, is_modern=True)),
            "call_over_http_of_64": of_64([]),
            "call_over_http_of_64_with_metrics": of_64(metrics),
            "call_over_http_of_64_with_audit_log": of_64(audit),
            "call_over_http_of_64_with_traces": of_64([], spans),
            "call_over_http_of_64_with_few_traces": of_64([], few_spans),
            "call_over_http_of_64_with_all": of_64([*metrics, *audit], spans),
            "call_over_stdio_with_audit_log_and_progress": per_call(
                lambda count: over_stdio(binary, [*pets, *audit], calls(count, has_token=True))
            ),
        }


def main() -> int:
    binary, baseline = sys.argv[1], Path(sys.argv[2])
    measured = measure(binary)
    if "--update" in sys.argv[3:]:
        baseline.write_text("".join(f"{name} = {instructions}\n" for name, instructions in measured.items()))
        return 0
    if not baseline.exists():
        for name, instructions in measured.items():
            print(f"{name}: {instructions:,} instructions")
        print(f"{baseline} does not exist: --update writes it")
        return 1
    lines = [line for line in baseline.read_text().splitlines() if line.strip() and not line.startswith("#")]
    before = {name.strip(): int(value) for name, _, value in (line.partition("=") for line in lines)}
    failed = False
    for name, instructions in measured.items():
        if name not in before:
            print(f"FAILED {name}: {instructions:,} instructions; the baseline does not have it")
            failed = True
            continue
        change = 100.0 * (instructions - before[name]) / before[name]
        verdict = "FAILED " if change > FAILS else "CHANGED " if abs(change) > SHOWN else ""
        failed |= change > FAILS
        print(f"{verdict}{name}: {instructions:,} instructions, {change:+.1f} % of {before[name]:,}")
    return 1 if failed else 0


sys.exit(main())
