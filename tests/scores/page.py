"""The page of the scores, from their figures."""

from pathlib import Path

FILE = Path(__file__).parents[2] / "docs" / "scores.md"
# Suite, title, what it judges, and how.
SUITES = {
    "rfc6570": (
        "RFC 6570: URI templates",
        "Each template is a path with parameters of the matching `style`; the upstream compares the whole target, byte by byte.",
    ),
    "openapi-examples": (
        "OpenAPI 3.2: its own examples",
        "The table of styles, and the examples of XML with the data that they are written from.",
    ),
    "openapi-documents": (
        "OpenAPI: documents of the Initiative",
        "Each different document with operations, from Swagger 2.0 to 3.2, is served with a tool for each operation.",
    ),
    "json-schema": (
        "JSON Schema: the test suite",
        "Each schema is that of a body, of 2020-12 in OpenAPI 3.1 and of draft 4 in 3.0. What it refuses must not reach the API; "
        "the rest must arrive unchanged.",
    ),
    "swagger-js": (
        "swagger-js: requests that it builds",
        "Its tests say which request an operation and its values make: method, target, headers and body are compared.",
    ),
    "autorest": (
        "AutoRest: its test server",
        "The server's own Swagger files are served, and each operation is called. The figure is that of its coverage keys "
        "(general, Azure's, optional) that a request reached.",
    ),
    **{
        f"typespec-{version}": (
            f"TypeSpec: http-specs, as OpenAPI {version}",
            "What TypeSpec's compiler emits is served, each operation is called with the values of each scenario, and the suite's "
            "mock server judges.",
        )
        for version in ("3.0.0", "3.1.0", "3.2.0")
    },
    "http-cache": (
        "HTTP cache tests (cache-tests.fyi)",
        "`--cache` on each test's replies; the figure is that of the required tests, those whose failure is a violation of RFC 9111.",
    ),
}
START = """# Scores

What test suites of others say about `openapi-mcp`. `tests/scores/run` drives each suite through the program, as a client would, and writes
this page; it fails if a figure falls. A case that OpenAPI cannot express, or that is left out on purpose, is counted apart and never as passed.

"""


def count(number):
    return f"{number:,}"


def table(rows):
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def section(suite, figures):
    title, how = SUITES[suite]
    text = f"\n## {title}\n\n{how}\n\n"
    text += f"{figures['source']}, {figures['version']}, {figures['licence']}.\n"
    if suite == "http-cache":
        text += caches(figures)
    failed = dict(figures["failed"])
    if figures["unexplained"]:
        failed["not explained yet"] = figures["unexplained"]
    if failed:
        text += f"\nThe {figures['of'] - figures['passed']} that do not pass:\n\n"
        text += table(
            [
                ("Cases", "Reason"),
                ("---:", "---"),
                *((count(number), reason) for reason, number in sorted(failed.items(), key=lambda item: -item[1])),
            ]
        )
    if figures["apart"]:
        text += "\nCounted apart:\n\n"
        text += table(
            [
                ("Cases", "Reason"),
                ("---:", "---"),
                *((count(number), reason) for reason, number in sorted(figures["apart"].items(), key=lambda item: -item[1])),
            ]
        )
    return text


def caches(figures):
    """Other caches on the same tests, with the results that the suite publishes."""
    others = sorted(figures["required failed by others"].items(), key=lambda item: item[1])
    own = figures["of"] - figures["passed"]
    rows = [("Cache", "Required tests failed"), ("---", "---:"), ("**openapi-mcp**", f"**{own}**")]
    rows += [(name, count(number)) for name, number in others]
    text = f"\n{figures['tests']} tests can be driven through a tool. Of the {figures['optimal of']} that say what an optimal cache also keeps, "
    text += f"{figures['optimal']} are met. The others' figures are the results in the suite's repository, on the same tests:\n\n"
    return text + table(rows)


def made(expected):
    rows = [("Suite", "Version", "Licence", "Command", "Passed"), ("---", "---", "---", "---", "---:")]
    known = [(suite, expected[suite]) for suite in SUITES if suite in expected]
    for suite, figures in known:
        name = SUITES[suite][0]
        short = figures["version"][:12] if len(figures["version"]) == 40 else figures["version"]
        licence = figures["licence"].split(",")[0].split(";")[0]
        rows.append(
            (
                name,
                short,
                licence,
                f"`tests/scores/run BINARY {figures.get('driver', suite)}`",
                f"{count(figures['passed'])} of {count(figures['of'])}",
            )
        )
    return START + table(rows) + "".join(section(suite, figures) for suite, figures in known)
