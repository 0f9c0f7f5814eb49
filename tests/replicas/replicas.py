"""Three replicas behind haproxy, with Redis between them, under the load of 64 clients.

The first run keeps all clients waiting for the limit while a replica is killed, another is drained, and Redis goes away and comes
back. It counts lost and crossed calls, requests per second at the API, and how often the refresh token was used. The second run
restarts one replica after the other without a limit, and measures how long calls take.
"""

import http.client
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

CLIENTS = 64
RATE = 150
BINARY = sys.argv[1]
STATE_KEY = "5f" * 32
# Or another server that speaks its protocol.
REDIS_SERVER = os.environ.get("OPENAPI_MCP_REDIS_SERVER", "redis-server")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Authority:
    """A token endpoint that revokes everything if a refresh token comes twice, and an API that answers with what it was asked for."""

    def __init__(self):
        self.lock = threading.Lock()
        self.given = self.asked = self.ended = 0
        self.is_revoked = False
        self.times = []
        authority = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, body):
                text = json.dumps(body).encode()
                head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
                self.wfile.write(head.encode() + text)

            def do_POST(self):
                form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                with authority.lock:
                    authority.asked += 1
                    if form["refresh_token"] != [f"refresh-{authority.given}"]:
                        authority.is_revoked = True
                        return self.answer(400, {"error": "invalid_grant"})
                    authority.given += 1
                    number = authority.given
                self.answer(200, {"access_token": f"access-{number}", "refresh_token": f"refresh-{number}", "expires_in": 3600})

            def do_GET(self):
                token = self.headers.get("Authorization", "").rpartition("-")[2]
                with authority.lock:
                    authority.times.append(time.monotonic())
                    is_good = token.isdigit() and int(token) > authority.ended and not authority.is_revoked
                self.answer(200 if is_good else 401, {"asked": self.path.rpartition("/")[2]})

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def end_tokens(self):
        with self.lock:
            self.ended = self.given

    def requests(self, start, end):
        with self.lock:
            return sum(start <= at < end for at in self.times)


class Redis:
    def __init__(self):
        self.port = free_port()
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [REDIS_SERVER, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
            stdout=subprocess.DEVNULL,
        )
        wait_for_port(self.port)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Replica:
    def __init__(self, number, folder, authority, redis, more):
        self.port, self.log = free_port(), open(f"{folder}/replica-{number}.log", "ab")
        self.command = [
            BINARY, "serve", "--spec", f"{folder}/spec.json", "--base-url", authority.url,
            "--transport", "http", "--bind", f"127.0.0.1:{self.port}", "--drain-delay", "2",
            "--shared-state", f"redis://127.0.0.1:{redis.port}", "--state-key-env", "STATE_KEY", *more,
        ]  # fmt: skip
        self.start()

    def start(self):
        variables = {
            **os.environ,
            "STATE_KEY": STATE_KEY,
            "OPENAPI_MCP_AUTH_THINGS_CLIENT_ID": "app",
            "OPENAPI_MCP_AUTH_THINGS_REFRESH_TOKEN": "refresh-0",
        }
        self.process = subprocess.Popen(self.command, env=variables, stderr=self.log, stdout=self.log)
        wait_for_port(self.port)

    def end(self, how):
        self.process.send_signal(how)
        self.process.wait()


def wait_for_port(port):
    for _ in range(600):
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nothing listens on port {port}")


def start_haproxy(folder, replicas):
    port = free_port()
    servers = "\n".join(f"  server r{number} 127.0.0.1:{replica.port} check" for number, replica in enumerate(replicas))
    with open(f"{folder}/haproxy.cfg", "w") as file:
        file.write(f"""
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  option redispatch
  retries 3
  default-server inter 200ms fall 1 rise 1
frontend clients
  bind 127.0.0.1:{port}
  default_backend replicas
backend replicas
  balance leastconn
  option httpchk GET /readyz
  http-check expect status 200
  http-after-response set-header x-replica %s
{servers}
""")
    process = subprocess.Popen(["haproxy", "-db", "-f", f"{folder}/haproxy.cfg"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for_port(port)
    return process, port


class Load:
    """Clients that call one after the other, each over its own connection."""

    def __init__(self, port):
        self.port, self.stopped, self.calls = port, threading.Event(), []
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self, client):
        connection, number = None, 0
        while not self.stopped.is_set():
            number += 1
            word = f"c{client}n{number}"
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "thing", "arguments": {"word": word}}}
            headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
            started, outcome, replica = time.monotonic(), "", ""
            try:
                connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                connection.request("POST", "/mcp", json.dumps(message), headers)
                response = connection.getresponse()
                body, replica = response.read(), response.getheader("x-replica", "")
                outcome = judge(response.status, body, number, word)
            except (OSError, http.client.HTTPException) as error:
                outcome, connection = f"lost: {error!r}", None
            self.calls.append((started, time.monotonic(), outcome, replica))

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join()
        return self.calls


def judge(status, body, number, word):
    if status != 200:
        return f"told: {status}"
    answer = json.loads(body)
    result = answer.get("result", {})
    if answer.get("id") != number:
        return f"crossed: {answer}"
    if result.get("isError"):
        return f"failed: {result['content'][0]['text']}"
    return "ok" if result.get("structuredContent", {}).get("asked") == word else f"crossed: {result}"


failures = []


def check(sentence, holds):
    print(f"{'ok   ' if holds else 'FAIL '} {sentence}")
    if not holds:
        failures.append(sentence)


def percentile(calls, share):
    times = sorted(end - start for start, end, _, _ in calls)
    return 1000 * times[int(share * (len(times) - 1))]


def with_setup(folder, more, run):
    authority, redis = Authority(), Redis()
    replicas = [Replica(number, folder, authority, redis, more) for number in range(3)]
    haproxy, port = start_haproxy(folder, replicas)
    try:
        run(authority, redis, replicas, port)
    finally:
        haproxy.kill()
        for replica in replicas:
            replica.process.kill()
        redis.stop()


def under_limits(authority, redis, replicas, port):
    load = Load(port)
    # The first refresh waits for tokens that other replicas might have.
    time.sleep(4)
    authority.end_tokens()
    measured = time.monotonic()
    time.sleep(3)
    killed = time.monotonic()
    replicas[0].end(signal.SIGKILL)
    dead = time.monotonic()
    time.sleep(1)
    authority.end_tokens()
    time.sleep(1)
    replicas[0].start()
    time.sleep(2)
    replicas[1].end(signal.SIGTERM)
    replicas[1].start()
    authority.end_tokens()
    time.sleep(2)
    gone = time.monotonic()
    redis.stop()
    time.sleep(3)
    redis.start()
    back = time.monotonic()
    time.sleep(3)
    authority.end_tokens()
    time.sleep(3)
    ended = time.monotonic()
    calls = load.stop()

    others = [call for call in calls if call[2] != "ok"]
    # haproxy tells by 502, or by closing the connection where it had been used before.
    lost = [call for call in others if call[0] <= dead and killed - 0.1 <= call[1] <= killed + 1]
    unexplained = [call for call in others if call not in lost]
    check(f"{len(calls)} calls; {len(lost)} were in flight on the killed replica and told so, {len(unexplained)} others lost", not unexplained)
    # A process takes a moment to die, in which connections to it are still made: those calls do not count here.
    in_flight = [call for call in lost if call[0] <= killed]
    check("no more than a replica's share was in flight", len(in_flight) <= CLIENTS / 2)
    for call in unexplained[:5]:
        print(f"      {call[0] - killed:+.2f} s to {call[1] - killed:+.2f} s: {call[2]} {call[3]}")
    check("no call got the answer of another", not any(call[2].startswith("crossed") for call in calls))
    rate = authority.requests(measured, gone) / (gone - measured)
    check(f"with Redis {rate:.0f} requests/s of {RATE}", 0.9 * RATE <= rate <= 1.1 * RATE)
    rate = authority.requests(gone + 0.5, back) / (back - gone - 0.5)
    check(f"without Redis {rate:.0f} requests/s, at most {RATE} of each replica", rate <= 3.3 * RATE)
    rate = authority.requests(back + 2, ended) / (ended - back - 2)
    check(f"with Redis again {rate:.0f} requests/s of {RATE}", rate <= 1.1 * RATE)
    check(f"{authority.asked} refreshes for 5 tokens, none of them twice", authority.asked == 5 and not authority.is_revoked)


def rolling_restart(authority, redis, replicas, port):
    load = Load(port)
    time.sleep(4)
    quiet = time.monotonic()
    time.sleep(3)
    restarted = time.monotonic()
    for replica in replicas:
        replica.end(signal.SIGTERM)
        replica.start()
        time.sleep(0.5)
    ended = time.monotonic()
    calls = load.stop()
    before = [call for call in calls if quiet <= call[0] < restarted]
    during = [call for call in calls if restarted <= call[0] < ended]
    others = [call for call in calls if call[2] != "ok"]
    check(f"{len(calls)} calls during a rolling restart, none lost", not others)
    for call in others[:5]:
        print(f"      {call[0] - restarted:+.2f} s to {call[1] - restarted:+.2f} s: {call[2]} {call[3]}")
    for name, part, span in [("before", before, restarted - quiet), ("during", during, ended - restarted)]:
        p50, p99 = percentile(part, 0.5), percentile(part, 0.99)
        print(f"      {name} the restart: {len(part) / span:.0f} calls/s, p50 {p50:.0f} ms, p99 {p99:.0f} ms")


def main():
    with tempfile.TemporaryDirectory() as folder:
        operation = {
            "operationId": "thing",
            "security": [{"things": []}],
            "parameters": [{"name": "word", "in": "path", "required": True, "schema": {"type": "string"}}],
        }
        flows = {"clientCredentials": {"tokenUrl": "/token", "scopes": {}}}
        document = {
            "openapi": "3.1.0",
            "info": {"title": "T", "version": "1"},
            "components": {"securitySchemes": {"things": {"type": "oauth2", "flows": flows}}},
            "paths": {"/things/{word}": {"get": operation}},
        }
        with open(f"{folder}/spec.json", "w") as file:
            json.dump(document, file)
        with open(f"{folder}/limit.yaml", "w") as file:
            file.write(f"rate_limit: {RATE}\n")
        with_setup(folder, ["--config", f"{folder}/limit.yaml"], under_limits)
        with_setup(folder, [], rolling_restart)
        if failures:
            for number in range(3):
                with open(f"{folder}/replica-{number}.log") as log:
                    print(f"--- replica {number}\n{log.read()[-3000:]}")
    sys.exit(1 if failures else 0)


main()
