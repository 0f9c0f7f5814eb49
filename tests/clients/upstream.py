"""The API behind verbs.yaml: echoes what arrives, and gives one reply of every kind.

Standard library only. `python3 upstream.py` serves on a free port of 127.0.0.1 and prints the port.
"""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

TEXT = "Grüße aus der ersten Zeile\nand from the second\n"
THINGS = [{"id": 1, "name": "lamp"}, {"id": 2, "name": "vase"}]
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body are two writes; without this the second waits for the client's delayed ACK.
    disable_nagle_algorithm = True

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        sent = self.rfile.read(length)
        self.server.seen.append((self.command, self.path))
        url = urlsplit(self.path)
        route = (self.command, url.path)
        if route == ("GET", "/things"):
            self.reply(200, json.dumps(THINGS).encode(), "application/json")
        elif route == ("GET", "/text"):
            self.reply(200, TEXT.encode(), "text/plain; charset=utf-8")
        elif route == ("GET", "/image"):
            self.reply(200, PIXEL, "image/png")
        elif route == ("GET", "/missing"):
            self.reply(404, b'{"error":"there is no such thing"}', "application/json")
        elif self.command == "DELETE":
            self.reply(204)
        else:
            echo = {
                "method": self.command,
                "path": url.path,
                "query": parse_qs(url.query),
                "contentType": self.headers.get("Content-Type"),
                "body": json.loads(sent) if sent else None,
            }
            status = 201 if self.command == "POST" else 200
            self.reply(status, json.dumps(echo).encode(), "application/json")

    do_GET = do_HEAD = do_OPTIONS = do_POST = do_PUT = do_PATCH = do_DELETE = do_TRACE = answer

    def reply(self, status, body=None, media_type=None):
        self.send_response(status)
        if body is not None:
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if body is not None and self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        pass  # the checks read `seen` instead


class Upstream(ThreadingHTTPServer):
    """`seen` lists every request so far as (method, path with query), in order of arrival."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.seen = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


if __name__ == "__main__":
    server = Upstream()
    print(server.server_port, flush=True)
    server.serve_forever()
