"""Calls an API as users, with tokens of an authorization server that somebody else wrote. See README.md."""

import argparse
import base64
import http.server
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request

API = "https://api.example"
GATEWAY = "https://gateway.example"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ON_BEHALF_OF = "urn:ietf:params:oauth:grant-type:jwt-bearer"
# Client, grant of the settings, further settings, algorithm of its key.
CLIENTS = [
    ("basic", "token-exchange", {"audience": API, "operation_scopes": True}, None),
    ("post", "token-exchange", {"resource": API, "scopes": "read write"}, None),
    ("rs256", "token-exchange", {"audience": API, "scopes": "read"}, "RS256"),
    ("ps256", "token-exchange", {"audience": API}, "PS256"),
    ("es256", "on-behalf-of", {"scopes": "read"}, "ES256"),
    ("eddsa", "on-behalf-of", {"operation_scopes": True}, "EdDSA"),
]
# What goes wrong: client, what is set otherwise, words of the result.
FAILURES = [
    ("basic", {"audience": "https://other.example"}, "invalid_target"),
    ("basic", {"operation_scopes": None, "scopes": "admin"}, "invalid_scope"),
    ("basic", {"client_id": "nobody"}, "invalid_client"),
    ("basic", {"subject_token_type": "jwt"}, "sign in"),
    ("rs256", {"assertion_audience": "https://other.example/"}, "invalid_client"),
    ("basic", {"grant": "on-behalf-of", "audience": None}, "invalid_request"),
]
KEYS = {
    "RS256": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
    "PS256": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
    "ES256": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "EdDSA": ["-algorithm", "ED25519"],
}

passed = failed = 0


def check(name, is_right, shown=""):
    global passed, failed
    if is_right:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {name}: {shown}")


def claims(token):
    middle = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))


class Api(http.server.BaseHTTPRequestHandler):
    """Answers with the claims of the token that it got."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        got = claims(token)
        body = json.dumps({key: got.get(key) for key in ["sub", "scope", "aud", "iss", "client_id"]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def make_keys(folder):
    """A key in PEM for each algorithm; its public part."""
    public = {}
    for name, options in KEYS.items():
        path = folder / f"{name}.pem"
        subprocess.run(["openssl", "genpkey", *options, "-out", path], check=True, capture_output=True)
        path.chmod(0o600)
        made = subprocess.run(["openssl", "pkey", "-in", path, "-pubout"], check=True, capture_output=True, text=True)
        public[name] = made.stdout
    subject = ["-subj", "/CN=gateway", "-days", "1"]
    command = ["openssl", "req", "-x509", "-new", "-key", folder / "PS256.pem", "-out", folder / "PS256.crt", *subject]
    subprocess.run(command, check=True, capture_output=True)
    return public


def registered(public):
    """The clients as the authorization server knows them."""
    grants = {"token-exchange": EXCHANGE, "on-behalf-of": ON_BEHALF_OF}
    clients = [{"client_id": "app", "client_secret": "app-secret", "grant_types": ["sign-in"]}]
    for name, grant, _, algorithm in CLIENTS:
        client = {"client_id": name, "grant_types": [grants[grant], "client_credentials"]}
        if algorithm:
            method = {"token_endpoint_auth_method": "private_key_jwt", "token_endpoint_auth_signing_alg": algorithm}
            client |= method | {"public_key": public[algorithm]}
        else:
            client |= {"client_secret": f"secret of {name} + %", "token_endpoint_auth_method": f"client_secret_{name}"}
        clients.append(client)
    return clients


class Server:
    """The binary over HTTP, with one security scheme that is called as the user."""

    started = []

    def __init__(self, options, folder, issuer, api, scheme):
        security = lambda scopes: {"security": [{"accounts": scopes}], "responses": {"200": {"description": "OK"}}}
        flow = {"tokenUrl": "https://document.example/token", "scopes": {"read": "", "write": ""}}
        document = {
            "openapi": "3.1.0",
            "info": {"title": "T", "version": "1"},
            "servers": [{"url": api}],
            "components": {"securitySchemes": {"accounts": {"type": "oauth2", "flows": {"clientCredentials": flow}}}},
            "paths": {
                "/me": {"get": {"operationId": "me"} | security(["read"])},
                "/all": {"get": {"operationId": "all"} | security(["write", "read"])},
            },
        }
        settings = {
            "spec": "document.json",
            "transport": "http",
            "bind": "127.0.0.1:0",
            "oauth_issuer": issuer,
            "oauth_audience": [GATEWAY],
            "auth": {"accounts": scheme},
        }
        (folder / "document.json").write_text(json.dumps(document))
        (folder / "config.json").write_text(json.dumps(settings))
        command = [options.binary, "serve", "--config", folder / "config.json"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.started.append(self.process)
        self.address = None
        self.log = []
        for line in self.process.stderr:
            self.log.append(line)
            if "listening on " in line:
                self.address = line.split("listening on ")[1].strip()
                break
        if not self.address:
            raise SystemExit("".join(self.log))
        self.reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True)
        self.reader.start()

    def call(self, token, tool):
        """The status and the result of a call, or the challenge."""
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {token}",
        }
        request = urllib.request.Request(self.address, json.dumps(message).encode(), headers)
        try:
            with urllib.request.urlopen(request) as reply:
                return reply.status, json.load(reply)["result"]
        except urllib.error.HTTPError as error:
            return error.code, error.headers.get("WWW-Authenticate", "")

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.reader.join()
        return "".join(self.log)


def sign_in(issuer, user):
    form = urllib.parse.urlencode({"grant_type": "sign-in", "login": user}).encode()
    basic = base64.b64encode(b"app:app-secret").decode()
    request = urllib.request.Request(f"{issuer}/token", form, {"Authorization": f"Basic {basic}"})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["access_token"]


def settings_of(folder, issuer, client, grant, more, algorithm):
    scheme = {"grant": grant, "client_id": client, "issuer": issuer} | more
    if algorithm:
        scheme |= {"client_key": {"file": f"{algorithm}.pem"}, "client_key_id": "key-1"}
        if algorithm == "PS256":
            scheme["client_certificate"] = "PS256.crt"
    else:
        (folder / f"{client}.secret").write_text(f"secret of {client} + %")
        scheme["client_secret"] = {"file": f"{client}.secret"}
    return scheme


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--cache", type=pathlib.Path, required=True)
    options = parser.parse_args()
    for name in [name for name in os.environ if name.startswith("OPENAPI_MCP_")]:
        del os.environ[name]
    api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=api.serve_forever, daemon=True).start()
    api_url = f"http://127.0.0.1:{api.server_address[1]}"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        public = make_keys(folder)
        command = ["node", options.cache / "provider.mjs"]
        provider = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        provider.stdin.write(json.dumps({"clients": registered(public)}))
        provider.stdin.close()
        issuer = provider.stdout.readline().strip()
        try:
            tokens = {user: sign_in(issuer, user) for user in ["alice", "bob"]}
            by_name = {}
            for client, grant, more, algorithm in CLIENTS:
                scheme = settings_of(folder, issuer, client, grant, more, algorithm)
                by_name[client] = scheme
                server = Server(options, folder, issuer, api_url, scheme)
                for user, token in tokens.items():
                    for tool, wanted in [("me", "read"), ("all", "read write")]:
                        scope = wanted if more.get("operation_scopes") else more.get("scopes", "read")
                        expected = {"sub": user, "scope": scope, "aud": API, "iss": issuer, "client_id": client}
                        status, result = server.call(token, tool)
                        got = result.get("structuredContent") if status == 200 else None
                        check(f"{client}: {tool} of {user}", got == expected, (status, result))
                status, challenge = server.call(tokens["alice"][:-8] + "AAAAAAAA", "me")
                check(f"{client}: a forged token", status == 401 and "invalid_token" in challenge, challenge)
                log = server.end()
                check(f"{client}: the log", not any(token in log for token in tokens.values()) and "secret of" not in log, log)
            for client, changes, words in FAILURES:
                scheme = {key: value for key, value in (by_name[client] | changes).items() if value is not None}
                if scheme["grant"] == "on-behalf-of":
                    scheme |= {"scopes": "read"}
                    scheme.pop("operation_scopes", None)
                server = Server(options, folder, issuer, api_url, scheme)
                status, result = server.call(tokens["alice"], "me")
                said = json.dumps(result)
                check(f"{client} with {changes}", status == 200 and result["isError"] and words in said, (status, said, server.end()))
                server.end()
            # A key in place of a secret, for the client itself.
            for client, algorithm in [("rs256", "RS256"), ("es256", "ES256"), ("eddsa", "EdDSA")]:
                scheme = settings_of(folder, issuer, client, "token-exchange", {}, algorithm)
                scheme.pop("grant")
                server = Server(options, folder, issuer, api_url, scheme | {"scopes": "read"})
                status, result = server.call(tokens["alice"], "me")
                got = result["structuredContent"] if status == 200 and not result["isError"] else result
                check(f"{client}: client credentials", got.get("client_id") == client and got.get("scope") == "read", (got, server.end()))
                server.end()
        finally:
            for process in [provider, *Server.started]:
                process.kill()
    print(f"{passed} passed, {failed} failed")
    raise SystemExit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
