"""Many calls in flight over HTTP, with an API behind that is fast, slow and failing: no answer may be lost or be another's, and
memory must stay where it is. Usage: load.py BINARY [SECONDS] [IN_FLIGHT …]; needs nothing but Python."""

import asyncio
import json
import subprocess
import sys
import tempfile
import time

DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Load", "version": "1"},
    "paths": {
        f"/{kind}/{{id}}": {
            "get": {
                "operationId": kind,
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
            }
        }
        for kind in ("fast", "slow", "failing", "broken")
    },
}
KINDS = ["fast"] * 7 + ["slow", "failing", "broken"]


async def upstream(reader, writer):
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            kind, number = head.split(b" ", 2)[1].decode().strip("/").split("/")
            if kind == "broken" and int(number) % 2:
                break  # No answer at all.
            if kind == "slow":
                await asyncio.sleep(0.05 + int(number) % 10 * 0.02)
            status = "500 Internal Server Error" if kind == "failing" else "200 OK"
            body = json.dumps({"id": int(number), "kind": kind, "pad": "x" * 200}).encode()
            writer.write(f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
        pass
    writer.close()


class Tally:
    def __init__(self):
        self.calls = self.crossed = self.lost = 0
        self.times = []


async def client(address, number, step, until, tally):
    reader, writer = await asyncio.open_connection(*address)
    while time.monotonic() < until:
        kind = KINDS[number % len(KINDS)]
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": kind, "arguments": {"id": number}}}
        body = json.dumps(message).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        begun = time.monotonic()
        writer.write(head.encode() + body)
        try:
            answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
            length = next(int(line.split(b":")[1]) for line in answer.split(b"\r\n") if line.lower().startswith(b"content-length"))
            text = await reader.readexactly(length)
        except (asyncio.IncompleteReadError, asyncio.TimeoutError, ConnectionError, StopIteration):
            tally.lost += 1
            return
        tally.calls += 1
        tally.times.append(time.monotonic() - begun)
        answer = json.loads(text)
        result = answer.get("result", {})
        told = json.dumps(result)
        whose = (result.get("structuredContent") or {}).get("id")
        good = answer.get("id") == number and (
            (kind in ("fast", "slow") and whose == number and not result.get("isError"))
            or (kind == "failing" and result.get("isError") and f'\\"id\\":{number},' in told)
            or (kind == "broken" and (whose == number or result.get("isError")))
        )
        tally.crossed += not good
        if not good and tally.crossed < 4:
            print("CROSSED", kind, number, told[:300])
        number += step
    writer.close()


def memory(process):
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


async def run(binary, seconds, in_flight):
    server = await asyncio.start_server(upstream, "127.0.0.1", 0, backlog=1024)
    port = server.sockets[0].getsockname()[1]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as spec, tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump(DOCUMENT, spec)
        spec.flush()
        json.dump({"breaker_failures": 0}, config)
        config.flush()
        options = ["--transport", "http", "--bind", "127.0.0.1:0", "--base-url", f"http://127.0.0.1:{port}", "--config", config.name]
        process = subprocess.Popen([binary, "serve", "--spec", spec.name, *options], stderr=subprocess.PIPE, text=True)
        for line in process.stderr:
            if "listening on http://" in line:
                address = line.split("listening on http://")[1].split("/")[0].split(":")
                break
        # The log of failing calls is read, so that it never stands in the way.
        asyncio.get_running_loop().run_in_executor(None, lambda: [None for _ in process.stderr])
        tally, until = Tally(), time.monotonic() + seconds
        clients = [client((address[0], int(address[1])), first, in_flight, until, tally) for first in range(in_flight)]
        running = asyncio.gather(*clients)
        await asyncio.sleep(seconds / 6)
        early = memory(process)
        await running
        late = memory(process)
        process.terminate()
        process.wait(20)
    server.close()
    times = sorted(tally.times)
    print(
        f"{in_flight} in flight for {seconds} s: {tally.calls} calls ({tally.calls / seconds:.0f} a second), {tally.lost} lost, "
        f"{tally.crossed} crossed, p50 {times[len(times) // 2] * 1000:.1f} ms, p99 {times[len(times) * 99 // 100] * 1000:.1f} ms, "
        f"memory {early:.1f} MiB after a sixth of the time, {late:.1f} MiB at the end"
    )
    return tally.lost + tally.crossed == 0 and late < early * 1.5 + 16


async def main():
    binary, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 60
    fine = [await run(binary, seconds, int(count)) for count in sys.argv[3:] or ["64", "256"]]
    sys.exit(0 if all(fine) else 1)


asyncio.run(main())
