"""Sends the spans of calls to Rotel (https://rotel.dev), a collector of OpenTelemetry, which passes them on to this program.

What arrives is read with the published definitions of OTLP (opentelemetry-proto). All names of attributes and metrics must be in the
published conventions (opentelemetry-semantic-conventions), but for those that begin with `openapi_mcp`.
"""

import gzip
import http.client
import http.server
import importlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import opentelemetry.semconv
import rotel
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

BINARY = sys.argv[1]
CALLS = 300
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
OTHER_TRACE = "0af7651916cd43dd8448eb211c80319c"
SPEC = {
    "openapi": "3.0.3",
    "info": {"title": "Things", "version": "1"},
    "paths": {
        "/things/{id}": {
            "get": {
                "operationId": "getThing",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
            }
        },
        "/broken": {"get": {"operationId": "breakIt"}},
    },
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(what, is_true, patience=60):
    end = time.monotonic() + patience
    while not is_true():
        if time.monotonic() > end:
            raise SystemExit(f"failed: {what}")
        time.sleep(0.05)


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    except OSError:
        return False


def serve(handle):
    """An HTTP server in a thread: `handle(request, body)` gives status and body. Gives its port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, answer = handle(self, body)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = answer

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


class Sink:
    """What the collector passes on."""

    def __init__(self):
        self.lock, self.requests = threading.Lock(), []
        self.port = serve(self.take)

    def take(self, head, body):
        if head.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        request = ExportTraceServiceRequest.FromString(body)
        with self.lock:
            self.requests.append(request)
        return 200, b""

    def resources(self):
        with self.lock:
            return [spans.resource for request in self.requests for spans in request.resource_spans]

    def spans(self):
        with self.lock:
            requests = list(self.requests)
        return [
            span
            for request in requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


def published_names():
    """All names of attributes and of metrics that the conventions publish."""
    folder, names = pathlib.Path(opentelemetry.semconv.__path__[0]), set()
    for path in [*folder.rglob("*_attributes.py"), *folder.rglob("*_metrics.py")]:
        module = ".".join(["opentelemetry.semconv", *path.relative_to(folder).with_suffix("").parts])
        values = vars(importlib.import_module(module))
        names.update(value for name, value in values.items() if name.isupper() and isinstance(value, str))
    return names


def attributes(owner):
    return {pair.key: pair.value.string_value or pair.value.int_value for pair in owner.attributes}


def post(port, body, headers=()):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    fixed = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request("POST", "/mcp", json.dumps(body), {**fixed, "MCP-Protocol-Version": "2025-11-25", **dict(headers)})
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status == 200, (answer.status, text)
    return json.loads(text)


def call(number, tool="getThing", arguments=None, meta=None):
    parameters = {"name": tool, "arguments": {"id": str(number)} if arguments is None else arguments}
    if meta:
        parameters["_meta"] = meta
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": parameters}


def run(folder, compression, names):
    sink, asked = Sink(), []

    def answer(request, _):
        asked.append({name.lower() for name in request.headers})
        return (500 if request.path == "/broken" else 200), b'{"ok":true}'

    api = serve(answer)
    otlp, grpc, port, metrics = free_port(), free_port(), free_port(), free_port()
    agent = pathlib.Path(rotel.__file__).parent / "rotel-agent"
    collector = subprocess.Popen(
        [agent, "start", "--otlp-http-endpoint", f"127.0.0.1:{otlp}", "--otlp-grpc-endpoint", f"127.0.0.1:{grpc}",
         "--exporter", "otlp", "--otlp-exporter-protocol", "http", "--otlp-exporter-endpoint", f"http://127.0.0.1:{sink.port}",
         "--batch-timeout", "100ms"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder,
    )  # fmt: skip
    server = None
    try:
        wait_until("the collector listens", lambda: listens(otlp))
        with open(f"{folder}/config.yaml", "w") as file:
            file.write("retries: 0\n")
        server = subprocess.Popen(
            [BINARY, "serve", "--spec", f"{folder}/spec.json", "--base-url", f"http://127.0.0.1:{api}", "--config", f"{folder}/config.yaml",
             "--transport", "http", "--bind", f"127.0.0.1:{port}", "--metrics-bind", f"127.0.0.1:{metrics}",
             "--auth-token-env", "A_TOKEN"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "A_TOKEN": "sixteen-letters-or-more", "OTEL_BSP_SCHEDULE_DELAY": "50",
                 "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{otlp}", "OTEL_EXPORTER_OTLP_COMPRESSION": compression,
                 "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test"},
        )  # fmt: skip
        wait_until("the server listens", lambda: listens(port))
        token = ("Authorization", "Bearer sixteen-letters-or-more")
        for number in range(CALLS):
            post(port, call(number), [token])
        parent = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "vendor=1"}
        header = ("traceparent", f"00-{OTHER_TRACE}-{SPAN}-01")
        post(port, call(1001, meta=parent), [token, header])
        post(port, call(1002), [token, header])
        post(port, call(1003, "breakIt", {}), [token])
        post(port, call(1004, "no_such_tool", {}), [token])
        post(port, {"jsonrpc": "2.0", "id": 1005, "method": "tools/list", "params": {}}, [token])
        # A span for each call and each request to the API, but for the tool that does not exist, and one for the list.
        expected = 2 * (CALLS + 3) + 2
        wait_until(f"{expected} spans arrive", lambda: len(sink.spans()) >= expected)
        page = urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics").read().decode()
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
        spans = sink.spans()
        assert len(spans) == expected, (len(spans), expected)
        check_spans(spans, names)
        check_metrics(page, names)
        resource = attributes(sink.resources()[0])
        assert resource["service.name"] == "openapi-mcp" and resource["deployment.environment.name"] == "test", resource
        unknown = {name for resource in sink.resources() for name in attributes(resource)} - names
        assert not unknown, f"names of the resource that the conventions do not have: {unknown}"
        sent = set().union(*asked) & {"traceparent", "tracestate", "baggage"}
        assert not sent, f"the API was told {sent}"
        print(f"ok: {len(spans)} spans came through the collector (compression {compression})")
    finally:
        for process in filter(None, [server, collector]):
            process.kill()
            process.wait()


def check_spans(spans, names):
    unknown = {name for span in spans for name in attributes(span)} - names
    assert all(name.startswith("openapi_mcp.") for name in unknown), f"names that the conventions do not have: {unknown}"
    by_id = {span.span_id: span for span in spans}
    assert len(by_id) == len(spans)
    servers = {attributes(span).get("jsonrpc.request.id"): span for span in spans if span.kind == span.SPAN_KIND_SERVER}
    clients = [span for span in spans if span.kind == span.SPAN_KIND_CLIENT]
    assert len(servers) == CALLS + 5 and len(clients) == CALLS + 3
    for client in clients:
        server, values = by_id[client.parent_span_id], attributes(client)
        assert client.trace_id == server.trace_id
        assert server.start_time_unix_nano <= client.start_time_unix_nano <= client.end_time_unix_nano <= server.end_time_unix_nano
        assert values["http.request.method"] == "GET" and values["server.address"] == "127.0.0.1", values
        assert client.name == f"GET {values['url.template']}"
    usual = attributes(servers["7"])
    assert servers["7"].name == "tools/call getThing" and not servers["7"].parent_span_id
    assert usual["mcp.method.name"] == "tools/call" and usual["gen_ai.tool.name"] == "getThing", usual
    assert usual["gen_ai.operation.name"] == "execute_tool" and usual["network.transport"] == "tcp", usual
    joined = servers["1001"]
    assert joined.trace_id.hex() == TRACE and joined.parent_span_id.hex() == SPAN and joined.trace_state == "vendor=1"
    assert [link.trace_id.hex() for link in joined.links] == [OTHER_TRACE]
    assert servers["1002"].trace_id.hex() == OTHER_TRACE and not servers["1002"].links
    assert servers["1003"].status.code == 2 and attributes(servers["1003"])["error.type"] == "tool_error"
    assert servers["1004"].name == "tools/call" and "gen_ai.tool.name" not in attributes(servers["1004"])
    assert servers["1005"].name == "tools/list"


def check_metrics(page, names):
    """The names of OpenTelemetry, as Prometheus writes them."""
    units = {"mcp.server.operation.duration": "seconds", "http.client.request.duration": "seconds"}
    for name, unit in units.items():
        assert name in names, name
        metric = f"{name.replace('.', '_')}_{unit}"
        samples = [line for line in page.splitlines() if line.startswith(metric + "_count")]
        assert samples, metric
        labels = {label for line in samples for label in re.findall(r'[{,](\w+)="', line)}
        unknown = {label for label in labels if not any(label == known.replace(".", "_") for known in names)}
        assert not unknown, f"labels of {metric} that the conventions do not have: {unknown}"


def main():
    names = published_names()
    assert {"mcp.method.name", "url.template", "server.address"} <= names
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "spec.json").write_text(json.dumps(SPEC))
        for compression in ["none", "gzip"]:
            run(folder, compression, names)


main()
