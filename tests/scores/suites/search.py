"""The search over tools: questions as people ask them, each with the operations that do the job; `run.py` beside them asks and judges."""

import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile

from drive import Score, Session, digest, words

API, DOCUMENT = "github", "github/api.github.com.json"


def tokens_of(text):
    """Four bytes for a token."""
    return len(text.encode()) / 4


def whole_tasks(options, tasks):
    """How many tasks, and their tokens: the list of tools, one search, and the description of the first operation found that does it."""
    made = []
    with Session(options.binary, options.corpus / DOCUMENT, "--base-url", "http://127.0.0.1:9", tools="search") as session:
        listed = tokens_of(json.dumps(list(session.tools.values()), ensure_ascii=False, separators=(",", ":")))
        for task in tasks:
            question = {"queries": [task["query"]]}
            found = session.call("search_operations", question)
            hits = found["_meta"]["openapi-mcp/search"]["results"][0]["hits"]
            name = next((hit["name"] for hit in hits if f"{hit['method'].upper()} {hit['path']}" in task["relevant"]), None)
            if name:
                described = session.call("describe_operations", {"names": [name]})
                made.append(listed + sum(map(tokens_of, (json.dumps(question), words(found), name, words(described)))))
    return len(made), {"list": round(listed), "mean": round(statistics.mean(made)), "most": round(max(made))}


def run(options):
    if not options.search or not (options.search / "run.py").is_file() or not options.corpus or not (options.corpus / DOCUMENT).is_file():
        print("skipped: search, because OPENAPI_MCP_SEARCH names no folder with run.py, or OPENAPI_MCP_CORPUS does not have its documents")
        return []
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as hits:
        judged = subprocess.run(
            [sys.executable, "-B", options.search / "run.py", "--json", "--hits", hits.name],
            env={**os.environ, "OPENAPI_MCP_BIN": options.binary, "OPENAPI_MCP_CORPUS": str(options.corpus)},
            capture_output=True,
            text=True,
            check=True,
        )
        found = {(hit["api"], hit["query"]): hit["hits"] for hit in map(json.loads, hits)}
    rows = {row["set"]: row for row in json.loads(judged.stdout)}
    tasks = [json.loads(line) for line in (options.search / "tasks.jsonl").read_text().splitlines()]
    score, chains = Score("search"), collections.Counter()
    for task in tasks:
        hits, case = found[task["api"], task["query"]], f"{task['api']} {task['query']}"
        if task.get("steps"):
            chains["RestBench" if task["api"].startswith("restbench") else "own"] += 1
        elif set(hits[:5]) & set(task["relevant"]):
            score.passed.append(case)
        else:
            score.failed[case] = f"{task['overlap']}\twanted {task['relevant']}, found {hits[:5]}"
    score.explain([("\tparaphrase\t", "a question without a word of the operation"), ("\tlexical\t", "a question with words of the operation")])
    recall = rows["all"]["R@5"]
    if round(recall * rows["all"]["n"]) != len(score.passed):
        score.failed["score.py"] = f"counts {recall} of {rows['all']['n']}, and not {len(score.passed)}"
    single = [task for task in tasks if task["api"] == API and not task.get("steps")]
    measured, tokens = whole_tasks(options, single)
    score.facts = {
        "source": "questions of this project's development; RestBench (Song et al., 2023)",
        "version": digest(options.search / "tasks.jsonl"),
        "licence": "not published; RestBench: MIT",
        "recall at 5": round(recall, 3),
        "recall at 5 by overlap": {kind: round(rows[kind]["R@5"], 3) for kind in ("lexical", "paraphrase")},
        "chains": {"own": [chains["own"], round(rows["all"]["op@10"], 3)], "RestBench": [chains["RestBench"], round(rows["restbench"]["op@10"], 3)]},
        "fewer": tokens,
        "tasks": measured,
    }
    return [score]
