"""Drives APIs that people run, made with FastAPI and Express, through the tools of the real binary, and checks what they received."""

import argparse
import json
import subprocess
import sys

HARD = ["100%", "a b", "a&b=c", "ä/ö", "..x", "x;y,z", "#?", "+", "{y}", '"q"', "日本"]


class Session:
    """One stdio session with the server."""

    def __init__(self, binary, *options):
        self.child = subprocess.Popen(
            [binary, "serve", *options, "--log-level", "error"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.next = 0
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "servers", "version": "1"}}
        self.request("initialize", hello)

    def request(self, method, params):
        self.next += 1
        message = {"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}
        self.child.stdin.write(json.dumps(message) + "\n")
        self.child.stdin.flush()
        for line in self.child.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.next:
                return answer
        raise RuntimeError("the server ended")

    def call(self, tool, arguments):
        answer = self.request("tools/call", {"name": tool, "arguments": arguments})
        return answer.get("result") or {"isError": True, "content": [{"text": json.dumps(answer)}]}

    def end(self):
        self.child.stdin.close()
        self.child.wait(10)


class Report:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, what, got, wanted):
        if got == wanted:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {what}\n  got    {got!r}\n  wanted {wanted!r}")


def start(command):
    app = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    port = app.stdout.readline().strip()
    if not port:
        raise RuntimeError(f"{command} did not start")
    return app, f"http://127.0.0.1:{port}"


def fastapi(report, session):
    def got(tool, arguments, wanted, part=None):
        result = session.call(tool, arguments)
        # Notes of the server are not what the API answered.
        data = {key: value for key, value in (result.get("structuredContent") or {}).items() if key != "_notes"} or None
        report.check(f"FastAPI {tool} {arguments}", data if part is None or not data else {key: data.get(key) for key in part}, wanted)

    for value in HARD:
        if "/" not in value:  # the framework ends a path parameter at an encoded slash as well
            got("get_item", {"item_id": value}, {"item_id": value}, ["item_id"])
        got("get_item", {"item_id": "1", "tag": [value, "b"]}, {"tag": [value, "b"]}, ["tag"])
        got("login", {"body": {"name": value, "remember": True}}, {"name": value, "remember": True})
    got(
        "get_item",
        {"item_id": "7", "status": "sold", "since": "2026-01-31", "page-size": 100, "x-trace": "t-1", "session": "s; a=b"},
        {"item_id": "7", "tag": [], "status": "sold", "since": "2026-01-31", "page_size": 100, "x_trace": "t-1"},
        ["item_id", "tag", "status", "since", "page_size", "x_trace"],
    )
    item = {"name": "Lamp", "price": 9.5, "big": 9007199254740993, "parts": [{"name": "bulb", "weight": None}], "labels": {"a": "ü"}, "replaces": None}
    got("create_item", {"body": item}, item)
    got("create_item", {"body": json.dumps(item)}, item)
    got("replace_item", {"item_id": 3, "body": {"item": item, "note": "n"}}, {"item_id": 3, "item": item, "note": "n"})
    wrong = session.call("create_item", {"body": {"name": "x", "price": 0}})
    report.check("FastAPI: a wrong price is told before anything is sent", wrong["isError"] and "nothing was sent" in wrong["content"][0]["text"], True)
    gone = session.call("delete_item", {"item_id": 1})
    report.check("FastAPI delete_item", (gone["isError"], gone["content"][0]["text"].splitlines()[0]), (False, "204 No Content"))
    got(
        "upload",
        {"body": {"file": {"data": "AP8B", "filename": "ä b.bin", "mediaType": "image/png"}, "more": ["aGk=", "data:text/plain,x"], "title": "T"}},
        {"filename": "ä b.bin", "type": "image/png", "hex": "00ff01", "more": [["more", "6869"], ["more", "78"]], "title": "T"},
    )


def express(report, session):
    def got(tool, arguments, **wanted):
        data = session.call(tool, arguments).get("structuredContent") or {}
        report.check(f"Express {tool} {arguments}", {key: data.get(key) for key in wanted}, wanted)

    for value in HARD:
        got("getOrder", {"id": value}, params={"id": value})
        got("getOrder", {"id": "1", "filter": {"name": value}}, query={"filter": {"name": value}})
        got("sendForm", {"body": {"name": value, "tags": ["x", value]}}, body={"name": value, "tags": ["x", value]})
        got("sendText", {"body": value}, body=value, type="text/plain")
    got(
        "getOrder",
        {"id": "1", "filter": {"a": {"b": "1"}}, "ids": [1, 2], "X-Request-Id": "r"},
        path="/orders/1",
        query={"filter": {"a": {"b": "1"}}, "ids": "1,2"},
        header="r",
    )
    got("patchOrder", {"id": "1", "body": {"note": None}}, method="PATCH", body={"note": None}, type="application/merge-patch+json")
    got("sendBytes", {"body": "AP8B"}, method="PUT", body="00ff01", type="application/octet-stream")
    data = session.call("sendXml", {"body": {"id": 7, "note": "<&>"}}).get("structuredContent") or {}
    report.check("Express sendXml", '<order id="7"><note>&lt;&amp;&gt;</note></order>' in (data.get("body") or ""), True)


def closed(report, session):
    """No value reaches an operation that is left out or asked about, however the framework reads a path; its neighbours are reached."""
    for tool, values in [
        ("get_user", ["7/keys", "7/keys/", "7/keys.json", "7%2Fkeys"]),
        ("get_report", ["payroll", "payroll.json", "payroll/"]),
        ("start_box", ["7/kill", "7/kill.json"]),
    ]:
        for value in values:
            text = session.call(tool, {"id": value})["content"][0]["text"]
            report.check(f"{tool} {value}", "another operation" in text, True)
    for tool, value in [("get_user", "7"), ("get_report", "8"), ("start_box", "7"), ("get_project", "group/project"), ("get_file", "a/keys")]:
        data = session.call(tool, {"id": value}).get("structuredContent") or {}
        report.check(f"{tool} {value}", data.get("ran"), tool)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--binary", required=True)
    options.add_argument("--python")
    options.add_argument("--express")
    options = options.parse_args()
    report = Report()
    from pathlib import Path

    here = Path(__file__).parent
    runs = []
    if options.python:
        runs.append(([options.python, str(here / "fastapi_app.py")], fastapi))
    if options.express:
        runs.append((["node", options.express], express))
    if options.python:
        app = str(here / "closed_app.py")
        runs += [([options.python, app, name], closed) for name in ("fastapi", "flask", "django", "rest_framework")]
    for command, drive in runs:
        app, url = start(command)
        try:
            spec, more = f"{url}/openapi.json", [] if drive is express else ["--base-url", url]
            if drive is closed:
                spec, more = str(here / "closed.yaml"), [*more, "--confirm", "destructive"]
            session = Session(options.binary, "--spec", spec, *more)
            drive(report, session)
            session.end()
        finally:
            app.kill()
            app.wait()
    print(f"{report.passed} passed, {report.failed} failed")
    sys.exit(1 if report.failed else 0)


main()
