"""A recording upstream, a session with the binary, and the score of one suite."""

import hashlib
import http.server
import itertools
import json
import re
import subprocess
import tempfile
import threading
from pathlib import Path


class Request:
    """One request as it arrived: the target is not decoded."""

    def __init__(self, method, target, headers, body):
        self.method, self.target, self.headers, self.body = method, target, headers, body


class Upstream:
    """An HTTP server that records each request, and answers what `answer(request)` returns: status, headers, body."""

    def __init__(self, answer=None):
        self.answer = answer or (lambda _: (200, [("Content-Type", "application/json")], b"{}"))
        self.requests = []
        upstream = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_any(self):
                if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
                    body = b""
                    while size := int(self.rfile.readline().split(b";")[0], 16):
                        body += self.rfile.read(size)
                        self.rfile.readline()
                    self.rfile.readline()
                else:
                    body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                request = Request(self.command, self.path, self.headers, body)
                upstream.requests.append(request)
                answered = upstream.answer(request)
                if answered is None:
                    self.close_connection = True
                    return
                status, headers, content = answered
                reason = None
                if isinstance(status, (list, tuple)):
                    status, reason = status
                self.send_response_only(status, reason)
                for name, value in headers:
                    self.send_header(name, value)
                named = {name.lower() for name, _ in headers}
                if status not in (204, 304) and not named & {"content-length", "transfer-encoding"}:
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD" and status not in (204, 304):
                    self.wfile.write(content)

            def __getattr__(self, name):
                if name.startswith("do_"):
                    return self.handle_any
                raise AttributeError(name)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def take(self):
        """The requests since the last time."""
        taken, self.requests = self.requests, []
        return taken


class Session:
    """One session with the binary over stdio; calls may overlap."""

    def __init__(self, binary, document, *options, env=None, tools="all", **keys):
        """`keys` are those of the configuration file."""
        self.file = None
        if not isinstance(document, (str, Path)):
            self.file = tempfile.NamedTemporaryFile("w", suffix=".json")
            json.dump(document, self.file)
            self.file.flush()
            document = self.file.name
        if keys:
            self.config = tempfile.NamedTemporaryFile("w", suffix=".json")
            json.dump(keys, self.config)
            self.config.flush()
            options = (*options, "--config", self.config.name)
        self.log = tempfile.TemporaryFile("w+")
        command = [binary, "serve", "--spec", str(document), "--tools", tools, "--log-level", "error"]
        self.child = subprocess.Popen(
            [*command, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=env
        )
        self.ids = itertools.count(1)
        self.lock = threading.Lock()
        self.waiting = {}
        self.ended = False
        threading.Thread(target=self.read, daemon=True).start()
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "scores", "version": "1"}}
        self.started = self.request("initialize", hello) is not None
        self.tools = {tool["name"]: tool for tool in self.list()} if self.started else {}

    def read(self):
        for line in self.child.stdout:
            answer = json.loads(line)
            with self.lock:
                waiting = self.waiting.pop(answer.get("id"), None)
            if waiting:
                waiting.append(answer)
                waiting[0].set()
        with self.lock:
            self.ended = True
            for waiting in self.waiting.values():
                waiting[0].set()

    def request(self, method, params):
        waiting = [threading.Event()]
        with self.lock:
            if self.ended:
                return None
            number = next(self.ids)
            self.waiting[number] = waiting
            try:
                self.child.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
                self.child.stdin.flush()
            except BrokenPipeError:
                return None
        waiting[0].wait(60)
        return waiting[1] if len(waiting) > 1 else None

    def list(self):
        cursor = {}
        while True:
            page = self.request("tools/list", cursor)["result"]
            yield from page["tools"]
            if not page.get("nextCursor"):
                return
            cursor = {"cursor": page["nextCursor"]}

    def call(self, tool, arguments):
        """The result of a call; one without an answer reads as an error."""
        answer = self.request("tools/call", {"name": tool, "arguments": arguments}) or {}
        return answer.get("result") or {"isError": True, "content": [{"type": "text", "text": json.dumps(answer)}]}

    def why(self):
        """The log: why the binary did not start."""
        self.log.seek(0)
        return self.log.read().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.child.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
        self.log.close()
        if self.file:
            self.file.close()


def words(result):
    """The text of a result."""
    return "\n".join(part.get("text", "") for part in result.get("content", []))


class Score:
    """What passed, what failed and why, and what is counted apart: cases that OpenAPI cannot express, or that are left out on purpose."""

    def __init__(self, suite):
        self.suite, self.passed, self.failed, self.apart, self.reasons, self.facts = suite, [], {}, {}, {}, {}

    def check(self, case, got, wanted):
        """Passed if `got` is one of the list `wanted`."""
        if got in wanted:
            self.passed.append(case)
        else:
            self.failed[case] = f"got {got!r}, wanted {wanted[0]!r}"

    def leave_out(self, case, reason):
        self.apart.setdefault(reason, []).append(case)

    def explain(self, known):
        """Gives each failed case the reason of the first pattern that its line matches."""
        for case, why in self.failed.items():
            reason = next((reason for pattern, reason in known if re.search(pattern, f"{case}\t{why}")), None)
            if reason:
                self.reasons.setdefault(reason, []).append(case)

    def figures(self):
        explained = sum(len(cases) for cases in self.reasons.values())
        return {
            "passed": len(self.passed),
            "of": len(self.passed) + len(self.failed),
            "unexplained": len(self.failed) - explained,
            "failed": {reason: len(cases) for reason, cases in sorted(self.reasons.items())},
            "apart": {reason: len(cases) for reason, cases in sorted(self.apart.items())},
            **self.facts,
        }

    def write(self, folder):
        """All cases that did not pass, for reading."""
        reasons = {case: reason for reason, cases in self.reasons.items() for case in cases}
        lines = sorted(f"{'' if case in reasons else 'UNEXPLAINED '}{case}\t{why}" for case, why in self.failed.items())
        lines += [f"{case}\tapart: {reason}" for reason, cases in self.apart.items() for case in cases]
        (folder / f"{self.suite}.txt").write_text("\n".join(lines) + "\n")


def digest(path):
    """A version for data that has none."""
    return f"sha256 {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"


def document(paths, version="3.1.0", **more):
    return {"openapi": version, "info": {"title": "Scores", "version": "1"}, "paths": paths, **more}


def schema_of(value):
    """The schema of a value that a suite gives without one."""
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int):
        return {"type": "integer"}
    if isinstance(value, float):
        return {"type": "number"}
    if isinstance(value, list):
        return {"type": "array", "items": {}}
    if isinstance(value, dict):
        return {"type": "object", "additionalProperties": True}
    return {"type": "string"}
