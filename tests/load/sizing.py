"""What calls cost the server: seconds of CPU for 1,000 calls, and memory, without and with what an operator may turn on. The figures
of docs/guides/sizing.md are made with it. Usage: sizing.py BINARY [CALLS]; needs Linux, and redis-server for the last row."""

import asyncio
import json
import os
import pathlib
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

BINARY = sys.argv[1]
CALLS = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
CLIENTS = 64
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Sizing", "version": "1"},
    "paths": {
        "/things/{id}": {
            "get": {
                "operationId": "getThing",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
            }
        }
    },
}
BODY = json.dumps({"id": 7, "name": "a thing", "tags": ["a", "b"], "pad": "x" * 1000}).encode()
REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
    len(BODY),
    BODY,
)
ACCEPTED = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


async def answer(reader, writer):
    """The API, and a collector of spans."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            if head.startswith(b"POST"):
                lines = head.lower().split(b"\r\n")
                length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:"))
                await reader.readexactly(length)
                writer.write(ACCEPTED)
            else:
                writer.write(REPLY)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass


def serve_api():
    """An API in a thread of its own; gives its URL."""
    started, url = threading.Event(), []

    async def run():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        url.append("http://127.0.0.1:%d" % server.sockets[0].getsockname()[1])
        started.set()
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(run()), daemon=True).start()
    started.wait()
    return url[0]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def make_calls(port, count):
    numbers = iter(range(count))

    async def client():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in numbers:
            call = {"name": "getThing", "arguments": {"id": number}}
            message = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}).encode()
            writer.write(
                b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                b"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (len(message), message)
            )
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            result = json.loads(await reader.readexactly(length))
            assert result["result"]["isError"] is False, result
        writer.close()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid, name):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def measure(title, folder, api, flags=(), variables=None):
    port = free_port()
    command = [BINARY, "serve", "--spec", f"{folder}/spec.json", "--base-url", api, "--transport", "http", "--bind", f"127.0.0.1:{port}"]
    process = subprocess.Popen(
        [*command, *flags], env={**os.environ, **(variables or {})}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        asyncio.run(make_calls(port, 2000))
        idle, before, started = memory(process.pid, "VmRSS:"), cpu_seconds(process.pid), time.monotonic()
        asyncio.run(make_calls(port, CALLS))
        spent, took = cpu_seconds(process.pid) - before, time.monotonic() - started
        print(
            f"{title:28} {1000 * spent / CALLS:6.3f} s of CPU for 1,000 calls, {memory(process.pid, 'VmHWM:'):5.0f} MiB at most"
            f" ({idle:.0f} before), {CALLS / took:.0f} calls/s",
            flush=True,
        )
    finally:
        process.kill()
        process.wait()


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    api = serve_api()
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "spec.json").write_text(json.dumps(DOCUMENT))
        everything = ["--metrics-bind", "127.0.0.1:0", "--audit-log", f"{folder}/all.jsonl"]
        traces = {"OTEL_EXPORTER_OTLP_ENDPOINT": api}
        measure("nothing", folder, api)
        measure("--metrics-bind", folder, api, everything[:2])
        measure("--audit-log", folder, api, ["--audit-log", f"{folder}/audit.jsonl"])
        measure("traces", folder, api, [], traces)
        measure("all of them", folder, api, everything, traces)
        if shutil.which("redis-server"):
            port = free_port()
            redis = subprocess.Popen(["redis-server", "--port", str(port), "--save", ""], stdout=subprocess.DEVNULL)
            shared = ["--shared-state", f"redis://127.0.0.1:{port}", "--state-key-env", "KEY", "--config", f"{folder}/limit.yaml"]
            pathlib.Path(folder, "limit.yaml").write_text("rate_limit: 100000\n")
            try:
                measure("--shared-state, a limit", folder, api, shared, {"KEY": "5f" * 32})
            finally:
                redis.kill()
                redis.wait()


main()
