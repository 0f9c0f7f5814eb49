"""Counts the operations of every document and finds the tool of each, collects examples for clients.mjs, weighs lists.

Usage: count.py BINARY CORPUS CACHE
"""

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

from document import Document, Operation
from examples import Judge, cases

# The most bytes of all tools of these documents, as `tools/list` with `--tools all` lists them.
LIMITS = {
    "github/api.github.com.json": 2_000_000,
    "stripe/spec3.2022-04.json": 2_500_000,
    "kubernetes/swagger-1.20.json": 9_500_000,
}
SERVED = 0.999  # the least share of all operations that must become tools

binary, corpus, cache = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
passed, failures = 0, []


def check(good: bool, words: str) -> None:
    global passed
    if good:
        passed += 1
    else:
        failures.append(words)


def run(verb: str, name: str) -> str:
    command = [binary, verb, "--spec", str(corpus / name), "--format", "json"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def is_named(operation: Operation, findings: list[dict]) -> bool:
    """Whether an error stands at the operation, or at its path item's reference."""
    item = operation.pointer if operation.method == "*" else "/".join(operation.pointer.split("/")[:3])
    for finding in findings:
        pointer = unquote(finding["pointer"])
        if finding["level"] == "error" and pointer in (unquote(operation.pointer), unquote(item), unquote(item) + "/$ref"):
            return True
    return False


documents, collected = {}, {}
for name in (cache / "work/documents").read_text().splitlines():
    row = documents[name] = {"operations": 0, "tools": 0, "missed": []}
    try:
        document = Document(corpus / name)
        operations = list(document.operations())
    except Exception as error:  # whatever a document does to this reader must not end the run
        check(False, f"{name}: this test cannot read it: {type(error).__name__}: {error}")
        continue
    try:
        listed = json.loads((cache / "lists" / (name.replace("/", "_") + ".json")).read_text())
    except (OSError, ValueError) as error:
        check(False, f"{name}: no list of tools: {error}")
        listed = []
    tools = {(entry["method"], entry["path"]): entry["tool"] for entry in listed}
    check(len(tools) == len(listed), f"{name}: two tools for one operation")
    missed = [operation for operation in operations if (operation.method, operation.path) not in tools]
    known = {(operation.method, operation.path) for operation in operations}
    for label in tools.keys() - known:
        check(False, f"{name}: a tool for {' '.join(label)}, which is no operation")
    findings = json.loads(run("check", name) or "{}").get("findings", []) if missed else []
    for operation in missed:
        label = f"{operation.method} {operation.path}"
        row["missed"].append(label)
        check(is_named(operation, findings), f"{name}: {label} is not served, and `check` does not say so")
    row.update(operations=len(operations), tools=len(listed))
    judge = Judge(document)
    collected[name] = [
        {"tool": tool["name"], **case}
        for operation in operations
        if (tool := tools.get((operation.method, operation.path)))
        for case in cases(document, judge, operation, tool)
    ]

total = sum(row["operations"] for row in documents.values())
missing = sum(len(row["missed"]) for row in documents.values())
share = 1 - missing / max(total, 1)
check(share >= SERVED, f"only {share:.3%} of the operations became tools")
print(f"{len(documents)} documents, {total} operations, {missing} without a tool ({share:.3%} served)")

for name, limit in LIMITS.items():
    if name not in documents:
        continue
    tools = [entry["tool"] for entry in json.loads(run("tools", name) or "[]")]
    size = len(json.dumps(tools, ensure_ascii=False, separators=(",", ":")).encode())
    print(f"{name}: {len(tools)} tools in {size} bytes, at most {limit}")
    check(bool(tools) and size <= limit, f"{name}: its tools take {size} bytes, more than {limit}")

(cache / "work/documents.json").write_text(json.dumps(documents))
(cache / "work/cases.json").write_text(json.dumps(collected, default=str))
for words in failures:
    print("FAILED", words)
print(f"{passed} passed, {len(failures)} failed")
