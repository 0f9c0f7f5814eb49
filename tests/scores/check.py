"""Drives test suites of others through the real binary, and compares the scores with those of `expected.json`. See README.md."""

import argparse
import gzip
import json
import sys
import time
from pathlib import Path

import autorest
import built_requests
import conformance
import effects
import examples
import page
import prism
import schemas
import search
import speed
import styles
import typespec

HERE = Path(__file__).parent
# Drivers of the suites whose data is in files: name, driver, file.
FILES = [
    ("rfc6570", styles, "uritemplate"),
    ("json-schema", schemas, "jsonschema"),
    ("openapi", examples, "oas"),
    ("swagger-js", built_requests, "swaggerjs"),
]
# Drivers of suites that npm has.
NODE = [("autorest", autorest), ("typespec", typespec), ("prism", prism), ("conformance", conformance)]
# Drivers of what was made for this project.
OWN = [("effects", effects), ("search", search), ("speed", speed)]


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
    for figure, number in now.get("fewer", {}).items():
        if number > before.get("fewer", {}).get(figure, number):
            worse.append(f"{figure}: {number}, {before['fewer'][figure]} before")
    return worse, now != before


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--binary", required=True)
    options.add_argument("--cache", required=True, type=Path)
    for folder in ("neutral", "corpus", "effects", "search", "bench"):
        options.add_argument(f"--{folder}", type=Path)
    options.add_argument("--without-node", action="store_true")
    options.add_argument("--update", action="store_true")
    options.add_argument("suites", nargs="*")
    options = options.parse_args()
    drivers = [(name, lambda name=name, driver=driver, file=file: neutral(options, name, driver, file)) for name, driver, file in FILES]
    node = [] if options.without_node else NODE
    drivers += [(name, lambda driver=driver: driver.run(options)) for name, driver in [*node, *OWN]]
    names = [name for name, *_ in [*FILES, *NODE, *OWN]]
    if unknown := set(options.suites) - set(names):
        sys.exit(f"there is no suite {', '.join(sorted(unknown))}; there are {', '.join(names)}")
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
            print(f"{score.suite}: {page.own(now)}, in {time.monotonic() - started:.0f} s", flush=True)
            if options.update:
                expected[score.suite] = now
            elif worse:
                failed = True
                print(f"FAILED {score.suite}: {'; '.join(worse)}; details in {options.cache / score.suite}.txt")
            elif differs:
                print(f"  differs from {figures.name}, and is no worse: UPDATE=1 takes it over")
    if options.update:
        figures.write_text(json.dumps(expected, indent=2, ensure_ascii=False) + "\n")
    for file, text in page.files(expected).items():
        if options.update:
            file.write_text(text)
        elif file.read_text() != text:
            failed = True
            print(f"FAILED {file.name} is not what {figures.name} says: UPDATE=1 writes it")
    return failed


if __name__ == "__main__":
    sys.exit(main())
