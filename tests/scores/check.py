"""Drives test suites of others through the real binary, and compares the scores with those of `expected.json`. See README.md."""

import argparse
import gzip
import json
import sys
import time
from pathlib import Path

import autorest
import built_requests
import caching
import examples
import page
import schemas
import styles
import typespec

HERE = Path(__file__).parent
# Drivers of the suites whose data is in files: name, driver, file.
FILES = [
    ("rfc6570", styles, "uritemplate"),
    ("json-schema", schemas, "jsonschema"),
    ("openapi", examples, "oas"),
    ("swagger-js", built_requests, "swaggerjs"),
    ("http-cache", caching, "cache-tests"),
]


def neutral(options, name, driver, file):
    path = options.neutral and options.neutral / f"{file}.json.gz"
    if not path or not path.is_file():
        print(f"skipped: {name}, because OPENAPI_MCP_NEUTRAL names no folder with {file}.json.gz")
        return []
    data = json.load(gzip.open(path))
    scores = driver.run(options, data)
    for score in scores:
        score.facts = {"source": data["source"], "version": data["commit"], "licence": data["licence"], **score.facts}
    return scores


def compare(expected, score):
    """What is worse than expected, and whether anything differs."""
    now, before = score.figures(), expected.get(score.suite)
    if before is None:
        return [], True
    worse = []
    if now["passed"] < before["passed"]:
        worse.append(f"{now['passed']} passed, {before['passed']} before")
    if now["unexplained"] > before["unexplained"]:
        worse.append(f"{now['unexplained']} failures without a known reason, {before['unexplained']} before")
    if sum(now["apart"].values()) > sum(before["apart"].values()):
        worse.append("more is counted apart than before")
    return worse, now != before


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--binary", required=True)
    options.add_argument("--cache", required=True, type=Path)
    options.add_argument("--neutral", type=Path)
    options.add_argument("--without-node", action="store_true")
    options.add_argument("--update", action="store_true")
    options.add_argument("suites", nargs="*")
    options = options.parse_args()
    drivers = [(name, lambda name=name, driver=driver, file=file: neutral(options, name, driver, file)) for name, driver, file in FILES]
    drivers += [
        (name, lambda driver=driver: [] if options.without_node else driver.run(options))
        for name, driver in (("autorest", autorest), ("typespec", typespec))
    ]
    if unknown := set(options.suites) - {name for name, _ in drivers}:
        sys.exit(f"there is no suite {', '.join(sorted(unknown))}; there are {', '.join(name for name, _ in drivers)}")
    figures = HERE / "expected.json"
    expected = json.loads(figures.read_text()) if figures.exists() else {}
    failed = False
    for name, drive in drivers:
        if options.suites and name not in options.suites:
            continue
        started = time.monotonic()
        for score in drive():
            score.write(options.cache)
            now = score.figures()
            worse, differs = compare(expected, score)
            print(f"{score.suite}: {now['passed']} of {now['of']} passed, in {time.monotonic() - started:.0f} s", flush=True)
            if options.update:
                expected[score.suite] = now
            elif worse:
                failed = True
                print(f"FAILED {score.suite}: {'; '.join(worse)}; details in {options.cache / score.suite}.txt")
            elif differs:
                print(f"  differs from {figures.name}, and is no worse: UPDATE=1 takes it over")
    text = page.made(expected)
    if options.update:
        figures.write_text(json.dumps(expected, indent=2, ensure_ascii=False) + "\n")
        page.FILE.write_text(text)
    elif page.FILE.read_text() != text:
        failed = True
        print(f"FAILED {page.FILE.name} is not what {figures.name} says: UPDATE=1 writes it")
    return failed


if __name__ == "__main__":
    sys.exit(main())
