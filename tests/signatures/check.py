"""Recomputes the signatures of random requests with botocore. See README.md."""

import argparse
import base64
import hashlib
import http.server
import json
import os
import pathlib
import random
import subprocess
import tempfile
import threading
import urllib.parse

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

REQUESTS = 200
REGION = "eu-central-1"
KEY, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "session/token+of==a/role"
CHARACTERS = [chr(byte) for byte in range(0x20, 0x7F)] + list("éßΩ漢字😀\u00a0\u0301")
SIGNERS = {"execute-api": SigV4Auth, "s3": S3SigV4Auth}

problems = []
judged = []
lock = threading.Lock()


class Api(http.server.BaseHTTPRequestHandler):
    """Judges the signature of each request, and refuses each fourth one the first time."""

    protocol_version = "HTTP/1.1"

    def judge(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with lock:
            judged.append(self.path)
            is_busy = len(judged) % 5 == 4
        try:
            problem = self.problem(body)
        except (KeyError, ValueError) as error:
            problem = repr(error)
        if problem:
            with lock:
                problems.append((self.command, self.path, dict(self.headers), body[:200], problem))
        text = b"{}"
        self.send_response(503 if is_busy and self.command in ("GET", "PUT", "DELETE") else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PUT = do_POST = do_DELETE = judge

    def problem(self, body):
        authorization = self.headers.get("Authorization", "")
        algorithm, _, rest = authorization.partition(" ")
        parts = dict(part.split("=", 1) for part in rest.split(", "))
        key, _, region, service, _ = parts["Credential"].split("/")
        if (algorithm, key, region, service) != ("AWS4-HMAC-SHA256", KEY, REGION, self.server.service):
            return authorization
        path, _, query = self.path.partition("?")
        signed = {name: self.headers[name] for name in parts["SignedHeaders"].split(";")}
        if signed.get("host") != self.headers["Host"] or signed.get("x-amz-security-token") != TOKEN:
            return "the host or the session token is not signed"
        if service == "s3" and "x-amz-content-sha256" not in signed:
            return "the hash of the body is not signed"
        request = AWSRequest(
            method=self.command,
            url=f"http://{self.headers['Host']}{path}",
            headers=signed,
            params=urllib.parse.parse_qsl(query, keep_blank_values=True),
            data=body,
        )
        signer = SIGNERS[service](Credentials(KEY, SECRET, TOKEN), service, region)
        request.context["timestamp"] = signed["x-amz-date"]
        # Where this is declared, botocore takes it as it is.
        if signed.get("x-amz-content-sha256", hashlib.sha256(body).hexdigest()) != hashlib.sha256(body).hexdigest():
            return "the hash of the body is another one"
        canonical = signer.canonical_request(request)
        signature = signer.signature(signer.string_to_sign(request, canonical), request)
        return None if signature == parts["Signature"] else f"{signature} is expected:\n{canonical}"

    def log_message(self, *_):
        pass


def document():
    text = {"type": "string"}
    texts = {"type": "array", "items": text}
    parameter = lambda place, name, schema, **more: {"in": place, "name": name, "schema": schema, "required": place == "path"} | more
    shared = [
        parameter("path", "key", text),
        parameter("query", "tag", texts),
        parameter("query", "a b&", text),
        parameter("query", "raw", text, allowReserved=True),
        parameter("query", "filter", {"type": "object", "additionalProperties": text}, style="deepObject"),
        parameter("header", "X-Amz-Meta-Note", text),
    ]
    file = {"type": "string", "format": "binary"}
    form = {"type": "object", "properties": {"note": text, "files": {"type": "array", "items": file}}}
    fields = {"type": "object", "properties": {"note": text, "tags": texts}}
    content = lambda media_type, schema: {"requestBody": {"content": {media_type: {"schema": schema}}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "T", "version": "1"},
        "components": {"securitySchemes": {"hmac": {"type": "apiKey", "in": "header", "name": "Authorization", "x-amazon-apigateway-authtype": "awsSigv4"}}},
        "security": [{"hmac": []}],
        "paths": {
            "/v1:batch/{key}": {
                "parameters": shared,
                "get": {"operationId": "read"},
                "delete": {"operationId": "remove"},
                "put": {"operationId": "put_file"} | content("application/octet-stream", file),
                "post": {"operationId": "send_form"} | content("multipart/form-data", form),
            },
            "/fields/{key}/": {
                "parameters": shared,
                "put": {"operationId": "put_json"} | content("application/json", {}),
                "post": {"operationId": "send_fields"} | content("application/x-www-form-urlencoded", fields),
            },
        },
    }


def word(chance, least=0, most=12):
    return "".join(chance.choice(CHARACTERS) for _ in range(chance.randint(least, most)))


def key(chance, number):
    # Each character comes first in one of the keys. Dot segments and empty ones are refused.
    found = (CHARACTERS[number % len(CHARACTERS)] + word(chance)).replace(".", "_")
    return "/".join(segment or "-" for segment in found.split("/"))


def arguments(chance, number, folder):
    """A tool and its arguments."""
    given = {"key": key(chance, number)}
    if chance.random() < 0.7:
        given["tag"] = [word(chance) for _ in range(chance.randint(1, 4))] + [""]
    if chance.random() < 0.5:
        given["a b&"] = word(chance)
    if chance.random() < 0.5:
        # What would end the query, or a pair of it, is no part of a raw value.
        given["raw"] = word(chance, 1).translate(str.maketrans("", "", "#&%=[]"))
    if chance.random() < 0.5:
        given["filter"] = {word(chance, 1).replace("[", "").replace("]", "") or "f": word(chance)}
    if chance.random() < 0.5:
        given["X-Amz-Meta-Note"] = "a  note" + str(chance.randint(0, 99)) + " "
    tool = chance.choice(["read", "remove", "put_file", "send_form", "put_json", "send_fields"])

    def file():
        if chance.random() < 0.3:
            return {"data": base64.b64encode(word(chance).encode()).decode()}
        name = f"file-{chance.randint(0, 9)}"
        (folder / name).write_bytes(chance.randbytes(chance.choice([0, 1, 1000, 200_000])))
        return {"path": name}

    if tool == "put_file":
        given["body"] = file()
    elif tool == "send_form":
        given["body"] = {"note": word(chance), "files": [file() for _ in range(chance.randint(0, 2))]}
    elif tool == "put_json":
        given["body"] = {word(chance, 1): [word(chance), chance.random()]}
    elif tool == "send_fields":
        given["body"] = {"note": word(chance), "tags": [word(chance)]}
    return tool, given


class Session:
    """The binary over stdio."""

    def __init__(self, binary, config, variables):
        self.process = subprocess.Popen(
            [binary, "serve", "--config", config], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables
        )
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "check", "version": "1"}}
        self.request("initialize", client)

    def request(self, method, parameters):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(self.process.stderr.read())
        return json.loads(line)["result"]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    options = parser.parse_args()
    seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    chance = random.Random(seed)
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "OPENAPI_MCP_"))}
    variables = mine | {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": TOKEN}
    answered = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "files").mkdir()
        (folder / "document.json").write_text(json.dumps(document()))
        for service in SIGNERS:
            api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
            api.service = service
            threading.Thread(target=api.serve_forever, daemon=True).start()
            base = f"http://127.0.0.1:{api.server_address[1]}" + ("/stage" if service == "execute-api" else "")
            settings = {
                "spec": "document.json",
                "base_url": base,
                "allow_file_args": "files",
                "auth": {"hmac": {"sigv4": {"region": REGION, "service": service, "credentials": "environment"}}},
                "overrides": [{"match": {"path": "/**"}, "arguments": {"path:key": {"slashes": service == "s3"}}}],
            }
            config = folder / f"{service}.json"
            config.write_text(json.dumps(settings))
            session = Session(options.binary, config, variables)
            for number in range(REQUESTS // len(SIGNERS)):
                tool, given = arguments(chance, number, folder / "files")
                result = session.request("tools/call", {"name": tool, "arguments": given})
                if result["isError"] and "503" not in json.dumps(result):
                    with lock:
                        problems.append((tool, given, result))
                else:
                    answered += 1
            session.end()
            api.shutdown()
    for problem in problems[:5]:
        print("FAILED", *problem, sep="\n  ")
    print(f"{answered} calls answered, {len(judged)} signatures compared with botocore, {len(problems)} problems")
    raise SystemExit(1 if problems or answered < REQUESTS else 0)


if __name__ == "__main__":
    main()
