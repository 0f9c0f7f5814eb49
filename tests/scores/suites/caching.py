"""The HTTP cache tests: what `--cache` keeps, sends again and asks about, as RFC 9111 has it; see cache-tests.fyi."""

import email.utils
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

from drive import Score, Session, Upstream, document, words

PAUSE = 3  # seconds, as in the suite
DATES = {"date", "expires", "last-modified", "if-modified-since", "if-unmodified-since"}
LOCATIONS = {"location", "content-location"}
# Headers that a call cannot choose or a result does not show.
OWN = {"content-type", "accept", "host", "connection", "content-length", "transfer-encoding", "cookie"}
SHOWN_NEVER = {
    "age",
    "content-encoding",
    "content-length",
    "content-type",
    "transfer-encoding",
    "set-cookie",
    "www-authenticate",
    "proxy-authenticate",
    "authentication-info",
}
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
SUCCESS = ("pass", "optimal", "yes")


def headers_of(listed):
    return [(header[0], header[1], header[2] if len(header) > 2 else True) for header in listed or []]


class Case:
    """One test: its own path, its own state at the upstream."""

    def __init__(self, number, test):
        self.key, self.test, self.steps = f"c{number}", test, test["requests"]
        self.body = str(uuid.uuid4())
        self.step, self.came = 0, []
        self.sent = {}

    def answer(self, request):
        step = self.steps[self.step]
        self.came.append((self.step, request))
        status = step.get("response_status") or [200, "OK"]
        if step.get("expected_type", "").endswith("validated"):
            # As the suite does: 304 only for a validator of the step before, and 999 as a sign for none.
            before = self.sent.get(self.step - 1, {})
            matches = [
                name
                for name, validator in (("if-none-match", "etag"), ("if-modified-since", "last-modified"))
                if validator in before and request.headers.get(name) == before[validator]
            ]
            status = [304, "Not Modified"] if matches else [599, "304 Not Generated"]
        now = time.time()
        made = []
        for name, value, kept in headers_of(step.get("response_headers")):
            if isinstance(value, (int, float)) and name.lower() in DATES:
                value = email.utils.formatdate(now + value, usegmt=True)
                if step.get("rfc850date") and name.lower() in step["rfc850date"]:
                    value = time.strftime("%A, %d-%b-%y %H:%M:%S GMT", time.gmtime(now + headers_value(step, name)))
            elif name.lower() in LOCATIONS and step.get("magic_locations"):
                value = f"/{self.key}" + (f"?{value}" if value else "")
            made.append((name, str(value)))
        self.sent[self.step] = {name.lower(): value for name, value in made}
        if not any(name.lower() == "content-type" for name, _ in made):
            made.append(("Content-Type", "text/plain"))
        if step.get("disconnect"):
            return None
        if step.get("response_pause"):
            time.sleep(step["response_pause"])
        body = step.get("response_body")
        return status, made, (self.body if body is None else body).encode()


def headers_value(step, wanted):
    return next(value for name, value, _ in headers_of(step["response_headers"]) if name.lower() == wanted.lower())


def left_out(suite, test):
    if test.get("browser_only"):
        return "tests for browsers only"
    if test["id"].endswith("-shared"):
        return "tests for shared caches: over stdio there is one client, with a cache of its own"
    if test.get("cdn_only") or suite["id"] == "cdn-cache-control":
        return "tests of CDN-Cache-Control, which is for content delivery networks"
    for step in test["requests"]:
        names = {name.lower() for name, *_ in headers_of(step.get("request_headers"))}
        if step.get("interim_responses"):
            return "interim replies (1xx), which a result does not show"
        if names & OWN:
            return "request headers that a call cannot choose"
        if step.get("cache") or step.get("filename") or step.get("query_arg"):
            return "several URLs in one test"
        if step.get("response_status", [200])[0] in range(300, 304) or step.get("response_status", [200])[0] in (307, 308):
            if step.get("redirect") == "manual":
                return "redirects that the client reads itself"
        if any(name.lower() in SHOWN_NEVER for name, *_ in headers_of(step.get("expected_response_headers"))):
            return "reply headers that a result never shows"
    return None


def operations(case):
    """The operations of the test's path: one for each method, with its request headers as parameters."""
    item = {}
    shown = {
        (header if isinstance(header, str) else header[0]): {"schema": {"type": "string"}}
        for step in case.steps
        for header in [*step.get("expected_response_headers", []), *step.get("expected_response_headers_missing", [])]
    }
    for step in case.steps:
        method = step.get("request_method", "GET").lower()
        names = sorted({name for other in case.steps for name, *_ in headers_of(other.get("request_headers"))})
        # Other methods than OpenAPI's own keep their case.
        place = item if method in METHODS else item.setdefault("additionalOperations", {})
        operation = place[method if method in METHODS else method.upper()] = {
            "operationId": f"{case.key}_{method}",
            "parameters": [{"name": name, "in": "header", "schema": {"type": "string"}} for name in names],
            "responses": {"default": {"description": "Reply", "headers": shown, "content": {"text/plain": {"schema": {"type": "string"}}}}},
        }
        if any(other.get("request_body") for other in case.steps) and method not in ("get", "head"):
            operation["requestBody"] = {"content": {"text/plain": {"schema": {"type": "string"}}}}
    return item


class Failed(Exception):
    """The first thing that is not as the test expects; `setup` if the test could not judge then."""

    def __init__(self, setup, why):
        super().__init__(why)
        self.setup = setup


def drive(session, case):
    for number, step in enumerate(case.steps):
        case.step = number
        before = len(case.came)
        arguments = {}
        for name, value, *_ in headers_of(step.get("request_headers")):
            if isinstance(value, (int, float)) and name.lower() in DATES:
                value = email.utils.formatdate(time.time() + value, usegmt=True)
                if step.get("magic_ims"):
                    value = case.sent.get(number - 1, {}).get("last-modified", value)
            arguments[name] = str(value)
        if step.get("request_body"):
            arguments["body"] = step["request_body"]
        result = session.call(f"{case.key}_{step.get('request_method', 'GET').lower()}", arguments)
        came = case.came[before:]
        judge(case, number, step, result, came)
        if step.get("pause_after"):
            time.sleep(PAUSE)


def judge(case, number, step, result, came):
    def expect(is_right, why, what):
        if not is_right:
            raise Failed(step.get("setup") or what in step.get("setup_tests", []), f"request {number + 1}: {why}")

    kind = step.get("expected_type")
    if kind == "cached":
        expect(not came, "was sent to the API", "expected_type")
    if kind == "not_cached":
        expect(came, "was answered from the cache", "expected_type")
    if kind in ("etag_validated", "lm_validated"):
        name = "If-None-Match" if kind == "etag_validated" else "If-Modified-Since"
        expect(came and came[-1][1].headers.get(name), f"was not sent with {name}", "expected_type")
    text = words(result)
    if "599" in text and "304 Not Generated" in text:
        raise Failed(False, f"request {number + 1} was not conditional")
    status = step.get("expected_status")
    if status is not None and status >= 400:
        expect(result.get("isError"), f"wanted {status}, got {text[:80]!r}", "expected_status")
    elif status == 200:
        expect(not result.get("isError"), f"wanted {status}, got {text[:80]!r}", "expected_status")
    shown = {name.lower(): value for name, value in (result.get("_meta", {}).get("openapi-mcp/headers") or {}).items()}
    for header in step.get("expected_response_headers", []):
        if isinstance(header, str):
            expect(header.lower() in shown, f"{header} is not shown", "expected_response_headers")
        elif len(header) == 2:
            value = header[1]
            if isinstance(value, (int, float)) and header[0].lower() in DATES:
                continue  # a date that was counted from a moment which only the upstream knows
            expect(
                shown.get(header[0].lower()) == str(value),
                f"{header[0]} is {shown.get(header[0].lower())!r}, wanted {value!r}",
                "expected_response_headers",
            )
        elif header[1] == "=":
            expect(
                shown.get(header[0].lower()) == shown.get(header[2].lower()),
                f"{header[0]} differs from {header[2]}",
                "expected_response_headers",
            )
        else:
            expect(
                float(shown.get(header[0].lower()) or -1) > header[2], f"{header[0]} is not above {header[2]}", "expected_response_headers"
            )
    for header in step.get("expected_response_headers_missing", []):
        name, forbidden = (header, None) if isinstance(header, str) else header
        got = shown.get(name.lower())
        expect(got is None or forbidden is not None and forbidden not in got, f"{name} is shown", "expected_response_headers_missing")
    for header in step.get("expected_request_headers", []):
        name, value = (header, None) if isinstance(header, str) else header
        got = came[-1][1].headers.get(name) if came else None
        expect(got is not None and (value is None or got == value), f"{name} was sent as {got!r}", "expected_request_headers")
    if step.get("expected_method"):
        expect(came and came[-1][1].method == step["expected_method"], "another method was sent", "expected_method")
    if step.get("expected_response_text") is not None:
        expect(step["expected_response_text"] in text, f"the text is {text[:80]!r}", "expected_response_text")
    elif (
        step.get("check_body", True)
        and not result.get("isError")
        and step.get("request_method") != "HEAD"
        and (step.get("response_status") or [200])[0] not in (204, 304)
    ):
        # A reply that was kept is that of any step before.
        bodies = [case.steps[sent].get("response_body") or case.body for sent, _ in (came or case.came)]
        expect(any(body in text for body in bodies), f"the body is {text[:80]!r}", "response_body")


def verdicts(tests, results):
    """The verdict of each test as cache-tests.fyi shows it: a test says nothing if one that it depends on does not pass."""
    made = {}

    def verdict(name):
        if name not in made:
            made[name] = "untested"  # against circles
            test, result = tests.get(name), results.get(name)
            if test is None or result is None:
                pass
            elif any(verdict(other) not in SUCCESS for other in test.get("depends_on", [])):
                made[name] = "depends"
            elif result is True:
                made[name] = {"optimal": "optimal", "check": "yes"}.get(test.get("kind"), "pass")
            elif result[0] == "Setup":
                made[name] = "setup"
            else:
                made[name] = {"optimal": "not optimal", "check": "no"}.get(test.get("kind"), "fail")
        return made[name]

    return {name: verdict(name) for name in tests}


def run(options, data):
    score = Score("http-cache")
    cases, paths, tests = {}, {}, {}
    for suite in data["tests"]:
        for test in suite["tests"]:
            tests[test["id"]] = test
            reason = left_out(suite, test)
            if reason:
                score.leave_out(test["id"], reason)
                continue
            case = Case(len(cases), test)
            cases[test["id"]] = case
            paths[f"/{case.key}"] = operations(case)
    by_path = {f"/{case.key}": case for case in cases.values()}
    upstream = Upstream(lambda request: by_path[request.target.split("?")[0]].answer(request))
    results = {}
    with Session(
        options.binary,
        document(paths, "3.2.0"),
        "--base-url",
        upstream.url,
        "--cache",
        "50000000",
        "--retries",
        "0",
        "--breaker-failures",
        "0",
    ) as session:

        def one(item):
            name, case = item
            try:
                drive(session, case)
                results[name] = True
            except Failed as failed:
                results[name] = ["Setup" if failed.setup else "Assertion", str(failed)]

        with ThreadPoolExecutor(64) as pool:
            list(pool.map(one, cases.items()))
    made = verdicts(tests, results)
    required = [name for name in cases if tests[name].get("kind", "required") == "required"]
    for name in required:
        if made[name] == "pass":
            score.passed.append(name)
        elif made[name] == "fail":
            score.failed[name] = results[name][1]
        else:
            score.leave_out(name, "required tests that depend on something the cache does not do")
    optimal = [name for name in cases if tests[name].get("kind") == "optimal"]
    score.facts["tests"] = len(cases)
    score.facts["optimal"] = sum(made[name] == "optimal" for name in optimal)
    score.facts["optimal of"] = len(optimal)
    judged = {*score.passed, *score.failed}
    score.facts["required failed by others"] = {
        other: sum(verdict == "fail" for name, verdict in verdicts(tests, others).items() if name in judged)
        for other, others in data["results"].items()
    }
    lines = [
        f"{name}\t{tests[name].get('kind', 'required')}\t{made[name]}\t{'' if results[name] is True else results[name]}" for name in cases
    ]
    (options.cache / "http-cache-all.txt").write_text("\n".join(lines) + "\n")
    return [score]
