"""Speed beside the bare SDK, a proxy written by hand and other servers: a neutral harness measures all of them in each round."""

import collections
import json
import os
import shutil
import statistics
import subprocess
from pathlib import Path

from drive import Score

BASELINE = "floor-rmcp"
SERVERS = ("openapi-mcp", BASELINE, "floor-raw", "rmcp-openapi-quiet", "fastmcp", "ivotoby")
# Column, metric of the harness, its value.
MEASURES = (
    ("CPU of a call over stdio", "call_stdio", "cpu_us"),
    ("CPU of a call over HTTP", "http_c1", "cpu_us"),
    ("CPU until the tools are listed", "cold_http", "cpu_ms"),
    ("Peak memory until then", "cold_http", "peak_mb"),
)
# Documents of the corpus, by the name of the harness's workload.
DOCUMENTS = {"petstore": "libopenapi/petstorev3.json", "github": "github/api.github.com.json"}
ROUNDS = 3


def versions(peers):
    """The versions of the peers that are installed, by the server's name."""
    made = {}
    for key in json.loads((peers / "cargo/.crates2.json").read_text())["installs"]:
        made[key.split()[0].removesuffix("-server") + "-quiet"] = key.split()[1]
    for folder in (peers / "venvs/fastmcp").glob("lib/*/site-packages/fastmcp-[0-9]*.dist-info"):
        made["fastmcp"] = folder.name.removeprefix("fastmcp-").removesuffix(".dist-info")
    package = peers / "npm/_ivotoby_openapi-mcp-server/node_modules/@ivotoby/openapi-mcp-server/package.json"
    made["ivotoby"] = json.loads(package.read_text())["version"]
    return made


def built(source, folder):
    """The harness, built in a copy of its folder."""
    for file in source.rglob("*"):
        copy = folder / file.relative_to(source)
        if file.is_file() and not (copy.is_file() and copy.read_bytes() == file.read_bytes()):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
    subprocess.run(["cargo", "build", "--release", "--locked", "--quiet"], cwd=folder, check=True)
    return folder / "target/release/bench-harness"


def ratios(lines):
    """For each workload, column and server: the ratio to the baseline in the same round, as median, least and most of the rounds."""
    values = collections.defaultdict(dict)
    for line in lines:
        if line["ok"]:
            values[line["workload"], line["metric"], line["round"]][line["server"]] = line["values"]
    found = collections.defaultdict(list)
    for (workload, metric, _), servers in values.items():
        for title, wanted, name in MEASURES:
            if metric == wanted and BASELINE in servers:
                for server, measured in servers.items():
                    found[workload, title, server].append(measured[name] / servers[BASELINE][name])
    made = {workload: {title: {} for title, *_ in MEASURES} for workload, *_ in values}
    for (workload, title, server), rounds in found.items():
        made[workload][title][server] = [round(one, 2) for one in (statistics.median(rounds), min(rounds), max(rounds))]
    return made


def run(options):
    peers = os.environ.get("BENCH_PEERS")
    wanted = {"OPENAPI_MCP_BENCH": options.bench, "OPENAPI_MCP_CORPUS": options.corpus, "BENCH_PEERS": peers and Path(peers)}
    if missing := [name for name, folder in wanted.items() if not folder or not folder.is_dir()]:
        print(f"skipped: speed, because no folder is named by {', '.join(missing)}")
        return []
    profile = Path(options.binary).parent.name
    if profile == "debug" or not shutil.which("cargo"):
        print("skipped: speed, which needs an optimized binary, and cargo to build the harness")
        return []
    folder = options.cache / "speed"
    harness = built(options.bench, folder / "bench")
    documents = [f"{name}={options.corpus / file}" for name, file in DOCUMENTS.items()]
    subprocess.run(["python3", "prep_specs.py", "--out", folder / "specs", *documents], cwd=folder / "bench", check=True)
    results = folder / "results.jsonl"
    results.unlink(missing_ok=True)
    command = [harness, "--config", "servers/servers.toml", "--specs", folder / "specs", "--run-dir", folder / "run", "--out", results]
    command += ["--servers", ",".join(SERVERS), "--workloads", ",".join(DOCUMENTS), "--metrics", "cold,stdio,http"]
    command += ["--rounds", str(ROUNDS), "--conc", "1", "--calls", "500", "--seconds", "2"]
    environment = {**os.environ, "OPENAPI_MCP_BIN": options.binary, "BENCH_PEERS": str(Path(peers).resolve())}
    with (options.cache / "speed-harness.txt").open("w") as log:
        subprocess.run(command, cwd=folder / "bench", env=environment, stdout=log, stderr=log, check=True)
    return [scored(profile, versions(Path(peers)), [json.loads(line) for line in results.read_text().splitlines()])]


def scored(profile, installed, lines):
    score = Score("speed")
    failed = collections.Counter(f"{line['server']}, {line['workload']}: {line['error'].split(';')[0]}" for line in lines if not line["ok"])
    score.facts = {
        "source": "a harness of this project's development",
        "version": "0.1.0",
        "licence": "not published",
        "profile": profile,
        "rounds": len({line["round"] for line in lines}),
        "load": round(statistics.median(line["load"] for line in lines), 1),
        "ratios": ratios(lines),
        "versions": installed,
        "failures": {failure: rounds for failure, rounds in sorted(failed.items())},
    }
    return score
