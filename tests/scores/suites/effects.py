"""Hints beside what operations really do: operations of public APIs that were labelled by reading them; `score.py` beside them judges."""

import collections
import os
import re
import subprocess
import sys

from drive import Score, digest

POLICIES = ("careful", "strict", "infer")
BASELINES = {"the method alone": "verb", "MCP's defaults": "mcp"}
# Kinds of `score.py`. The first that fits an operation counts: an unsafe hint before an over-careful one.
UNSAFE = {
    "de": "published as not destructive, but it destroys",
    "ro": "published as read-only, but it acts",
    "id": "published as idempotent, but it is not",
}
CAREFUL = {
    "de-": "published as destructive, but it only adds",
    "rd-": "published as destructive, but it reads",
    "ro-": "reads, but is not published as read-only",
}


def ran(options, *arguments):
    """The wrong hints, as `kind, document, method, path`, and for each kind how many are wrong of how many."""
    done = subprocess.run(
        [sys.executable, "-B", options.effects / "score.py", "--list", *arguments],
        env={**os.environ, "OPENAPI_MCP_BIN": options.binary},
        capture_output=True,
        text=True,
        check=True,
    )
    *cases, summary = done.stdout.splitlines()
    counts = {kind: [int(wrong), int(of)] for kind, wrong, of in re.findall(r"([a-z-]+) (\d+)/(\d+)", summary)}
    return [tuple(line.split("\t")[:4]) for line in cases], counts


def scored(options, policy, *arguments):
    score = Score(f"effects-{policy}" if policy in POLICIES else policy)
    cases, counts = ran(options, *arguments)
    wrong = collections.defaultdict(set)
    for kind, *operation in cases:
        wrong[" ".join(operation)].add(kind)
    for operation in operations(options):
        kind = next((kind for kind in [*UNSAFE, *CAREFUL] if kind in wrong[operation]), None)
        if kind is None:
            score.passed.append(operation)
        else:
            score.failed[operation] = f"{'unsafe' if kind in UNSAFE else 'too careful'}: {(UNSAFE | CAREFUL)[kind]}"
    score.explain([(re.escape(reason), reason) for reason in sorted(set(score.failed.values()), reverse=True)])
    score.facts = {"fewer": {kind: wrong for kind, (wrong, _) in counts.items()}, "of each": {kind: of for kind, (_, of) in counts.items()}}
    return score


def operations(options):
    lines = (options.effects / "effects.tsv").read_text().splitlines()
    return [" ".join(line.split("\t")[:3]) for line in lines if line and not line.startswith("#")]


def run(options):
    if not options.effects or not (options.effects / "score.py").is_file():
        print("skipped: effects, because OPENAPI_MCP_EFFECTS names no folder with score.py")
        return []
    # The default is measured as it is: `--no-destructive` and `--confirm` make it strict.
    flags = {policy: () if policy == "careful" else ("--annotation-policy", policy) for policy in POLICIES}
    scores = [scored(options, policy, *flags[policy]) for policy in POLICIES]
    for score in scores:
        score.facts |= {
            "source": "data of this project's development",
            "version": digest(options.effects / "effects.tsv"),
            "licence": "not published",
            "driver": "effects",
        }
    scores[0].facts["beside"] = {name: scored(options, name, "--baseline", of).figures() for name, of in BASELINES.items()}
    return scores
