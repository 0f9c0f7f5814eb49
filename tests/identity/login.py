"""Signs in to an authorization server that somebody else wrote, and calls an API as that person. See README.md."""

import argparse
import concurrent.futures
import http.cookiejar
import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request

import check
from check import API

# Client, how it authenticates, further settings.
CLIENTS = [
    ("public", "none", {}),
    ("basic", "client_secret_basic", {"scopes": "openid read"}),
    ("post", "client_secret_post", {}),
    ("es256", "private_key_jwt", {"client_key_id": "key-1"}),
]
DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"


def registered(public):
    clients = []
    for name, method, _ in CLIENTS:
        client = {
            "client_id": name,
            "application_type": "native",
            "grant_types": ["authorization_code", "refresh_token", DEVICE_CODE],
            "response_types": ["code"],
            "redirect_uris": ["http://127.0.0.1/callback", "http://localhost/cb"],
            "token_endpoint_auth_method": method,
        }
        if method == "private_key_jwt":
            client |= {"token_endpoint_auth_signing_alg": "ES256", "public_key": public["ES256"]}
        elif method != "none":
            client["client_secret"] = f"secret of {name}"
        clients.append(client)
    return clients


class Person:
    """A browser with cookies."""

    def __init__(self):
        cookies = http.cookiejar.CookieJar(http.cookiejar.DefaultCookiePolicy(rfc2965=True))
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(cookies), urllib.request.ProxyHandler({}))

    def open(self, url, form=None):
        """The status, the text, and where redirects have led."""
        data = urllib.parse.urlencode(form).encode() if form else None
        try:
            with self.opener.open(urllib.request.Request(url, data)) as reply:
                return reply.status, reply.read().decode(), reply.url
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.url

    def enter_code(self, page):
        """Confirms a device code on the pages that the server shows."""
        status, text, url = self.open(page)
        for _ in range(3):
            token = re.search(r'name="xsrf" value="([^"]+)"', text)
            if not token:
                break
            code = re.search(r'name="user_code" value="([^"]+)"', text)
            action = re.search(r'action="([^"]+)"', text)
            form = {"xsrf": token[1], "confirm": "yes"}
            if code:
                form["user_code"] = code[1]
            status, text, url = self.open(urllib.parse.urljoin(url, action[1]) if action else url, form)
        return status, text


class Installation:
    """The settings of one client, and the binary with a state folder of its own."""

    def __init__(self, options, folder, issuer, api, client, method, more):
        self.options, self.folder = options, folder / client
        self.folder.mkdir()
        security = lambda scopes: {"security": [{"accounts": scopes}], "responses": {"200": {"description": "OK"}}}
        flow = {"authorizationUrl": "https://document.example/a", "tokenUrl": "https://document.example/t", "scopes": {}}
        document = {
            "openapi": "3.1.0",
            "info": {"title": "T", "version": "1"},
            "servers": [{"url": api}],
            "components": {"securitySchemes": {"accounts": {"type": "oauth2", "flows": {"authorizationCode": flow}}}},
            "paths": {"/me": {"get": {"operationId": "me"} | security(["read"])}},
        }
        scheme = {"client_id": client, "issuer": issuer} | more
        if method == "private_key_jwt":
            scheme["client_key"] = {"file": str(folder / "ES256.pem")}
        elif method != "none":
            (self.folder / "secret").write_text(f"secret of {client}")
            scheme["client_secret"] = {"file": "secret"}
        (self.folder / "document.json").write_text(json.dumps(document))
        (self.folder / "config.json").write_text(json.dumps({"spec": "document.json", "auth": {"accounts": scheme}}))
        self.environment = os.environ | {"HOME": str(self.folder), "XDG_STATE_HOME": str(self.folder / "state")}

    def command(self, name, *more):
        return [self.options.binary, name, "--config", str(self.folder / "config.json"), *more]

    def run(self, name, *more):
        return subprocess.run(self.command(name, *more), capture_output=True, text=True, env=self.environment)

    def begin(self, *more):
        """A login that waits, and the line that holds the address to open."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(self.command("login", *more), env=self.environment, **pipes)
        for line in process.stdout:
            found = re.search(r"https?://\S*[?]\S+", line)
            if found:
                return process, found[0]
        raise SystemExit(process.stderr.read())

    def store(self):
        return next(self.folder.rglob("tokens.json"))

    def stored(self):
        return json.loads(self.store().read_text())["tokens"][0]["refresh_token"]

    def end_access_token(self):
        """Lets the stored access token be one that has ended, so that the next call renews it."""
        kept = json.loads(self.store().read_text())
        kept["tokens"][0]["expires"] = 0
        self.store().write_text(json.dumps(kept))

    def refuses_refresh(self, issuer, client, token):
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": client}
        status, text, _ = Person().open(f"{issuer}/token", form)
        return status == 400 and "invalid_grant" in text


def check_client(at, issuer, client):
    process, address = at.begin()
    callback = urllib.parse.parse_qs(urllib.parse.urlsplit(address).query)["redirect_uri"][0]
    status, _, _ = Person().open(f"{callback}?code=stolen&state=guessed")
    check.check(f"{client}: a callback of somebody else", status == 400, status)
    status, text, _ = Person().open(address)
    out, err = process.communicate()
    check.check(f"{client}: the browser comes back", status == 200 and "close this window" in text, (status, text))
    check.check(f"{client}: signed in", process.returncode == 0 and "Signed in" in out, (out, err))
    for number in range(3):
        first = at.stored()
        at.end_access_token()
        made = at.run("call", "me")
        got = json.loads(made.stdout) if made.returncode == 0 else {}
        expected = ("alice", "read", API, client)
        who = (got.get("sub"), got.get("scope"), got.get("aud"), got.get("client_id"))
        check.check(f"{client}: call {number}", who == expected, (made.stdout, made.stderr))
        check.check(f"{client}: the refresh token is replaced", at.stored() != first)
    # Each refresh token is good for one use, and a second one revokes all of them.
    at.end_access_token()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        several = list(pool.map(lambda _: at.run("call", "me"), range(4)))
    check.check(f"{client}: calls at a time", all(made.returncode == 0 for made in several), [made.stdout for made in several])
    status = at.run("login", "--status")
    check.check(f"{client}: status", status.returncode == 0 and at.stored() not in status.stdout, status.stdout)
    kept = at.stored()
    ended = at.run("logout")
    check.check(f"{client}: signed out", ended.returncode == 0 and "revoked" in ended.stdout, (ended.stdout, ended.stderr))
    if client == "public":
        check.check("the token is revoked at the server", at.refuses_refresh(issuer, client, kept))
    if client == "public":
        after = at.run("call", "me")
        check.check(f"{client}: after the end", "openapi-mcp login accounts" in after.stdout, (after.stdout, after.stderr))


def check_device(at, issuer, client):
    process, address = at.begin("--device")
    status, text = Person().enter_code(address)
    out, err = process.communicate()
    check.check(f"{client}: device", process.returncode == 0 and "Signed in" in out, (status, text, out, err))
    made = at.run("call", "me")
    check.check(f"{client}: call after the device", made.returncode == 0 and "alice" in made.stdout, (made.stdout, made.stderr))
    if client == "public":
        # Somebody who has a copy uses it: the server revokes all, and the next call says what to do.
        old = at.stored()
        at.end_access_token()
        at.run("call", "me")
        check.check("a second use is refused", at.refuses_refresh(issuer, client, old))
        at.end_access_token()
        made = at.run("call", "me")
        check.check("sign in again", "sign in again: `openapi-mcp login accounts`" in made.stdout, (made.stdout, made.stderr))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--cache", type=pathlib.Path, required=True)
    options = parser.parse_args()
    for name in [name for name in os.environ if name.startswith("OPENAPI_MCP_")]:
        del os.environ[name]
    api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), check.Api)
    threading.Thread(target=api.serve_forever, daemon=True).start()
    api_url = f"http://127.0.0.1:{api.server_address[1]}"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        public = check.make_keys(folder)
        command = ["node", options.cache / "provider.mjs"]
        provider = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        provider.stdin.write(json.dumps({"clients": registered(public)}))
        provider.stdin.close()
        issuer = provider.stdout.readline().strip()
        try:
            for client, method, more in CLIENTS:
                at = Installation(options, folder, issuer, api_url, client, method, more)
                check_client(at, issuer, client)
                check_device(at, issuer, client)
        finally:
            provider.kill()
    print(f"{check.passed} passed, {check.failed} failed")
    raise SystemExit(1 if check.failed or not check.passed else 0)


if __name__ == "__main__":
    main()
