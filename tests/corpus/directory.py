"""Lists the tools of every document in a folder, one after the other, and looks for operations that are lost in silence.

Every operation becomes a tool, or `check` names it; a document that is refused as a whole says why. No document may take
more than the limit of processor time, except the SLOW largest ones, and none may end the program in a panic.

Usage: directory.py BINARY FOLDER CACHE
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

from document import Document, Operation

binary, folder, cache = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])

# In seconds of processor time, because other work on the machine changes the time on the clock. A debug build is slower.
LIMIT = 2.0 if "release" in Path(binary).parts else 8.0
SLOW = 2
DEADLINE = 900  # seconds on the clock, after which a run is ended; the machine may be busy


class Run:
    """One run of the program: its exit code, what it wrote, and the processor time that it took, in seconds."""

    def __init__(self, verb: str, document: Path):
        command = [binary, verb, "--spec", str(document), "--format", "json"]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            before = os.times()
            try:
                self.code = subprocess.run(command, stdout=out, stderr=err, check=False, timeout=DEADLINE).returncode
            except subprocess.TimeoutExpired:
                self.code = -1
            after = os.times()
            out.seek(0)
            err.seek(0)
            self.output, self.words = out.read(), err.read().decode(errors="replace")
        used = after.children_user + after.children_system - before.children_user - before.children_system
        self.seconds = max(used, 0.0)

    def broke_off(self) -> bool:
        return self.code not in (0, 1, 2, 3) or "panicked at" in self.words

    def value(self, otherwise):
        try:
            return json.loads(self.output)
        except ValueError:
            return otherwise


def reason(words: str) -> str:
    """A message without what differs from one document to the next."""
    return re.sub(r"`[^`]*`", "`…`", words)[:200]


def errors_at(operation: Operation, findings: list[dict]) -> list[dict]:
    """The errors at the operation, or at its path item."""
    pointer = unquote(operation.pointer)
    item = pointer if operation.method == "*" else pointer.rpartition("/")[0]
    places = (pointer, item, item + "/$ref")
    return [finding for finding in findings if finding["level"] == "error" and unquote(finding["pointer"]) in places]


def main() -> int:
    documents = sorted(path for path in folder.rglob("*") if path.suffix in (".json", ".yaml", ".yml"))
    largest = sorted(documents, key=lambda path: path.stat().st_size)[-SLOW:]
    passed, failures, reasons, refused, times = 0, [], Counter(), Counter(), []
    operations = tools = left_out = without = 0
    details = ["document\toperations\ttools\tseconds"]

    for path in documents:
        name = str(path.relative_to(folder))
        listing = Run("tools", path)
        served = {(entry["method"], entry["path"]) for entry in listing.value([])}
        try:
            known = list(Document(path).operations())
        except Exception as error:  # whatever a document does to this reader must not end the run
            failures.append(f"{name}: this test cannot read it: {type(error).__name__}: {error}")
            continue
        missed = [operation for operation in known if (operation.method, operation.path) not in served]
        found = len(failures)
        if listing.broke_off():
            failures.append(f"{name}: the program broke off with {listing.code}: {listing.words[-300:].strip()}")
        for label in served - {(operation.method, operation.path) for operation in known}:
            failures.append(f"{name}: a tool for {' '.join(label)}, which is no operation")
        if listing.seconds > LIMIT and path not in largest:
            failures.append(f"{name}: {listing.seconds:.2f} s of processor time, more than {LIMIT} s")
        if not listing.broke_off() and (missed or listing.code != 0):
            report = Run("check", path)
            findings = report.value({}).get("findings", [])
            if report.broke_off():
                failures.append(f"{name}: `check` broke off with {report.code}: {report.words[-300:].strip()}")
            silent = []
            for operation in missed:
                named = errors_at(operation, findings)
                if named:
                    left_out += 1
                    reasons[reason(named[0]["message"])] += 1
                elif not served and report.code in (2, 3) and report.words.strip():
                    without += 1
                else:
                    silent.append(f"{operation.method} {operation.path}")
            if silent:
                failures.append(f"{name}: `check` does not say that {len(silent)} operations are not served: {silent[0]}…")
            if not served and known:
                refused[reason((listing.words or report.words).strip().split("\n")[0])] += 1
        passed += len(failures) == found
        operations += len(known)
        tools += len(served)
        times.append((listing.seconds, name))
        details.append(f"{name}\t{len(known)}\t{len(served)}\t{listing.seconds:.2f}")

    (cache / "directory.tsv").write_text("\n".join(details) + "\n")
    print(f"{len(documents)} documents, {operations} operations, {tools} tools")
    print(f"{left_out} operations left out with a reason, {without} in documents that are refused as a whole")
    for counts, label in ((reasons, "operations"), (refused, "refused documents")):
        for words, count in counts.most_common():
            print(f"{count:6} {label}: {words}")
    print("the most processor time, in seconds:")
    for seconds, name in sorted(times, reverse=True)[:5]:
        print(f"{seconds:7.2f}  {name}")
    for words in failures:
        print("FAILED", words)
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


sys.exit(main())
