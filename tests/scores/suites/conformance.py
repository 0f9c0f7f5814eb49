"""The official MCP conformance suite, as tests/conformance/run drives it: the checks of the scenarios that each revision scores."""

import json
import os
import re
import subprocess
from pathlib import Path

import yaml
from drive import Score

FOLDER = Path(__file__).parents[2] / "conformance"
REVISIONS = ("2025-11-25", "2026-07-28")
PACKAGE = "node_modules/@modelcontextprotocol/conformance"


def reasons(text):
    """The reason of each expected failure: the comment above it; `scenario:check` is an entry."""
    made, reason, fresh = {}, "", True
    for line in text.partition("\nserver:")[2].splitlines():
        if comment := re.match(r"\s*# (.*)", line):
            reason = f"{'' if fresh else reason} {comment[1]}".strip()
            fresh = False
        elif entry := re.match(r"\s*- (\S+)", line):
            own = re.search(r"# (?!as above)(.*)", line)
            made[entry[1]] = own[1] if own else reason
            fresh = True
    return {entry: reason.rstrip(".") for entry, reason in made.items()}


def judge(score, results, known, requirements):
    """Takes the checks of scored scenarios as passed or failed; the rest is apart."""
    unscored = {one["scenario"]: one["reason"] for one in requirements.get("not_scored") or []}
    for file in sorted(results.glob("*/checks.json")):
        scenario = re.sub(r"^server-|-\d{4}-\d{2}-\d{2}T[\d-]+Z$", "", file.parent.name)
        for number, check in enumerate(json.loads(file.read_text())):
            case = f"{scenario}:{check['id']} {number}"
            if scenario in unscored:
                if check["status"] != "INFO":
                    score.leave_out(case, f"scenarios that the revision runs and does not score ({unscored[scenario]})")
            elif f"{scenario}:{check['id']}" in known and check["status"] != "SUCCESS":
                score.leave_out(case, known[f"{scenario}:{check['id']}"])
            elif check["status"] == "SUCCESS":
                score.passed.append(case)
            elif check["status"] == "FAILURE":
                score.failed[case] = check.get("errorMessage", "")
            elif check["status"] != "INFO":
                score.leave_out(case, f"checks that the suite gives no verdict on ({check['status'].lower()})")


def run(options):
    folder = options.cache / "conformance"
    ran = subprocess.run(
        [FOLDER / "run", options.binary], env={**os.environ, "CONFORMANCE_DIR": str(folder)}, capture_output=True, text=True, check=False
    )
    if "skipped:" in ran.stdout:
        print(ran.stdout.splitlines()[0])
        return []
    scores = []
    for revision in REVISIONS:
        score = Score(f"conformance-{revision}")
        known = reasons((FOLDER / f"expected-{revision}.yml").read_text())
        judge(score, folder / f"results-{revision}", known, yaml.safe_load((folder / PACKAGE / "requirements" / f"{revision}.yaml").read_text()))
        package = json.loads((folder / PACKAGE / "package.json").read_text())
        score.facts = {
            "source": f"npm {package['name']}",
            "version": package["version"],
            "licence": package["license"],
            "driver": "conformance",
        }
        scores.append(score)
    if ran.returncode:
        scores[0].failed["tests/conformance/run"] = " | ".join((ran.stdout + ran.stderr).splitlines()[-8:])
    return scores
