"""Writes the table of all documents, and prints the share of examples that fit for each document that gives any.

Usage: table.py CACHE
"""

import json
import sys
from pathlib import Path

cache = Path(sys.argv[1])


def read(name: str) -> dict:
    path = cache / "work" / name
    return json.loads(path.read_text()) if path.exists() else {}


documents, examples = read("documents.json"), read("examples.json")
rows = ["file\toperations\ttools\tmisses\texamples\tfitting examples"]
shares = []
for name, row in documents.items():
    counted = examples.get(name, {"given": 0, "fitting": 0})
    given, fitting = counted["given"], counted["fitting"]
    missed = ", ".join(row["missed"]) or "-"
    rows.append(f"{name}\t{row['operations']}\t{row['tools']}\t{missed}\t{given}\t{fitting}")
    if given:
        shares.append((fitting / given, given, fitting, name))
(cache / "table.tsv").write_text("\n".join(rows) + "\n")

print("examples that fit, of those each document gives:")
for share, given, fitting, name in sorted(shares):
    print(f"{share:7.1%}  {fitting}/{given}  {name}")
