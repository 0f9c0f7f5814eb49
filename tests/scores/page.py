"""The page of the scores and its picture, from the figures."""

from pathlib import Path

import picture

FOLDER = Path(__file__).parents[2] / "docs"
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
    "prism": (
        "Prism: a mock that checks requests",
        "Each of 30 real documents is served, with Prism as its API, and each of its first 40 tools is called once, with all arguments made "
        "from the schema of the tool. Prism says whether the request is what the document means. The reasons begin with whose they are.",
    ),
    **{
        f"conformance-{revision}": (
            f"MCP conformance, {revision}",
            "The checks of the scenarios that the revision scores for servers. A check that only a server with resources, prompts or questions of "
            "its own could pass is counted apart.",
        )
        for revision in ("2025-11-25", "2026-07-28")
    },
    **{
        f"effects-{policy}": (
            f"Effects of operations, policy `{policy}`",
            "603 operations of 158 public APIs, drawn to be hard and labelled by reading them. The set was at hand when the words of the policies "
            "were chosen. An operation passes if none of its hints is wrong, be it unsafe or too careful.",
        )
        for policy in ("careful", "strict", "infer")
    },
    "search": (
        "Search: questions of people",
        "Questions about GitHub's, Stripe's and DigitalOcean's APIs; one passes if an operation that does the job is among the first five. The set was "
        "at hand when the search was written.",
    ),
    "speed": ("Speed", "In each round, one harness starts every server and calls it. Lower is better."),
}
START = """# Scores

What test suites of others say about `openapi-mcp`. `tests/scores/run` drives each suite through the program, as a client would, and writes
this page; it fails if a figure falls. A case that OpenAPI cannot express, or that is left out on purpose, is counted apart and never as passed.

The last rows, effects, search and speed, are measured on data of this project: no suite of others judges them.
"""
SERVERS = {
    "openapi-mcp": "**openapi-mcp**",
    "floor-rmcp": "the bare SDK (rmcp), which forwards and checks nothing",
    "floor-raw": "a proxy written by hand",
    "rmcp-openapi-quiet": "rmcp-openapi",
    "fastmcp": "FastMCP",
    "ivotoby": "ivotoby/openapi-mcp-server",
}


def count(number):
    return f"{number:,}"


def table(head, rows, align=""):
    """A table; `align` has an r for each column of numbers."""
    marks = ["---:" if side == "r" else "---" for side in align.ljust(len(head), "l")]
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, marks, *rows])


def own(figures):
    """The figure of a suite, in short."""
    if "ratios" in figures:
        return "see below"
    return f"{count(figures['passed'])} of {count(figures['of'])}"


def peers(suite, figures):
    """The figures of others on the same suite, in short."""
    if "beside" in figures:
        return ", ".join(f"{name}: {count(other['passed'])}" for name, other in figures["beside"].items())
    return "see below" if "ratios" in figures else "–"


def section(suite, figures):
    title, how = SUITES[suite]
    text = f"\n## {title}\n\n{how}\n\n"
    text += f"Source: {figures['source']}, {figures['version']}, {figures['licence']}.\n"
    text += {"search": searches, "speed": speeds, "effects-careful": hints}.get(suite, lambda _: "")(figures)
    failed = dict(figures["failed"])
    if figures["unexplained"]:
        failed["not explained yet"] = figures["unexplained"]
    for title, cases in ((f"The {count(figures['of'] - figures['passed'])} that do not pass:", failed), ("Counted apart:", figures["apart"])):
        if cases:
            rows = [(count(number), reason) for reason, number in sorted(cases.items(), key=lambda item: -item[1])]
            text += f"\n{title}\n\n" + table(("Cases", "Reason"), rows, "r")
    return text


def hints(figures):
    """The rates of wrong hints stand in docs/concepts/hints.md; here is the sum beside the two baselines."""
    rows = [("**`careful`**", *picture.shares(figures))] + [(name, *picture.shares(other)) for name, other in figures["beside"].items()]
    rows = [(name, *map(count, numbers)) for name, *numbers in rows]
    text = "\nThe worst hint of each operation decides. Kind by kind, [hints](concepts/hints.md#how-often-words-are-wrong) has the rates.\n\n"
    return text + table(("Hints", "Right", "Too careful", "Unsafe"), rows, "lrrr")


def searches(figures):
    tokens, (own_chains, own_found), (bench, bench_found) = figures["fewer"], figures["chains"]["own"], figures["chains"]["RestBench"]
    by = figures["recall at 5 by overlap"]
    return (
        f"\nRecall@5 is {figures['recall at 5']}: {by['lexical']} for questions that share words with the operation, {by['paraphrase']} for those "
        f"that do not. {own_found} of the operations of a chain are among the first ten ({own_chains} questions), and {bench_found} in RestBench's "
        f"TMDB ({bench} questions).\n\nOn GitHub's API, the list of tools takes {count(tokens['list'])} tokens, and a whole task (the list, one "
        f"search, and the description of the operation that does it) {count(tokens['mean'])} on average and {count(tokens['most'])} at the most, "
        f"over {figures['tasks']} tasks, at four bytes for a token.\n"
    )


def ratio(median, least, most):
    digits = 0 if median >= 100 else 1 if median >= 10 else 2
    return f"{median:,.{digits}f} ({least:,.{digits}f}–{most:,.{digits}f})"


def speeds(figures):
    text = f"\nMultiples of the bare SDK's value in the same round: the median of {figures['rounds']} rounds, and the least and the most. CPU time "
    text += f"is that of the server's own process. The binary is of the profile `{figures['profile']}`, and the load average was "
    text += f"{figures['load']}: a ratio with a wide range says little. No run compares these figures with earlier ones: `tests/perf` counts "
    text += "instructions.\n"
    for workload, columns in figures["ratios"].items():
        title = {"petstore": "A small document (19 operations)", "github": "GitHub's document (1,223 operations)"}[workload]
        rows = []
        for server, name in SERVERS.items():
            version = figures["versions"].get(server)
            cells = [columns[column].get(server) for column in columns]
            cells = ["–" if cell is None else "1" if server == "floor-rmcp" else ratio(*cell) for cell in cells]
            rows.append((f"{name} {version}" if version else name, *cells))
        text += f"\n{title}:\n\n" + table(("Server", *columns), rows, "lrrrr")
    text += "\n– is a transport that the server does not have, or a call that failed. "
    text += "rmcp-openapi resolves no reference to a parameter, so its call on GitHub's document is another one (`emojis/get`).\n"
    if figures["failures"]:
        text += "\nFailed in the harness:\n\n"
        text += "".join(f"- {failure} (in {rounds} of {figures['rounds']} rounds)\n" for failure, rounds in figures["failures"].items())
    return text


def row(suite, figures):
    name = SUITES[suite][0]
    if figures is None:
        return name, "–", "–", f"`tests/scores/run BINARY {suite}`", "not tried", "–", "–"
    version = figures["version"][:12] if len(figures["version"]) == 40 else figures["version"]
    licence = figures["licence"].split(",")[0].split(";")[0]
    command = f"`tests/scores/run BINARY {figures.get('driver', suite)}`"
    return name, version, licence, command, own(figures), count(sum(figures["apart"].values())), peers(suite, figures)


def files(expected):
    """The text of each file that the figures make."""
    text = START
    made = {}
    if "effects-careful" in expected:
        made[FOLDER / "pictures" / "scores.svg"] = picture.drawn(expected)
        text += f"\n![{picture.words(expected)}](pictures/scores.svg)\n"
    rows = [row(suite, expected.get(suite)) for suite in SUITES]
    text += "\n" + table(("Suite", "Version", "Licence", "Command", "Passed", "Apart", "Peers"), rows, "llllrr")
    text += "".join(section(suite, expected[suite]) for suite in SUITES if suite in expected)
    return {**made, FOLDER / "scores.md": text}
