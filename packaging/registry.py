"""Prints the entry of a server in the MCP registry: a server.json of the schema 2025-12-11.

Usage: registry.py --name io.github.you/pets --description TEXT --server-version 1.2.3 [--package KIND:WHAT ...] [--remote URL ...]
A package is mcpb:URL (with --file, the bundle itself), oci:IMAGE:TAG, npm:NAME@VERSION or pypi:NAME==VERSION.
"""

import argparse
import hashlib
import json
import re
import sys
import unicodedata
from pathlib import Path
from urllib.parse import urlsplit

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
MAX_DESCRIPTION = 100
STDIO = {"type": "stdio"}

problems = []


def check_version(version: str) -> None:
    is_range = re.search(r"[\^~<>=*| ]", version) or "x" in version.lower().split(".")
    if not version or len(version) > 255 or is_range or version == "latest":
        problems.append("a version must be one exact version, as in 1.2.3")


def package(text: str, digest: str | None) -> dict:
    kind, _, what = text.partition(":")
    if kind == "mcpb":
        if urlsplit(what).scheme != "https":
            problems.append(f"--package mcpb: `{what}` must be the https address of the bundle")
        if not digest:
            problems.append("--package mcpb: needs --file PATH, the bundle itself, for its digest")
        return {"registryType": kind, "identifier": what, "fileSha256": digest, "transport": STDIO}
    if kind == "oci":
        tag = re.search(r"[:@]([^/]+)$", what)
        if not tag or tag[1] == "latest":
            problems.append(f"--package oci: `{what}` needs an exact tag or digest, as in ghcr.io/you/pets:1.2.3")
        return {"registryType": kind, "identifier": what, "transport": STDIO}
    if kind in ("npm", "pypi"):
        name, _, version = what.rpartition("@") if kind == "npm" else what.partition("==")
        if name and version:
            check_version(version)
        else:
            problems.append(f"--package {kind}: needs an exact version, as in npm:NAME@1.2.3 or pypi:NAME==1.2.3")
        return {"registryType": kind, "identifier": name, "version": version, "transport": STDIO}
    problems.append(f"--package `{text}` must begin with mcpb:, oci:, npm: or pypi:")
    return {}


def remote(text: str) -> dict:
    url = urlsplit(text)
    if url.scheme != "https" or url.username or url.query:
        problems.append("--remote must be an https URL without user and query, as in https://mcp.example/mcp")
    return {"type": "streamable-http", "url": text}


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--name", required=True, metavar="NAMESPACE/NAME", help="a namespace that you own and a name, as in io.github.you/pets")
parser.add_argument("--description", required=True, help=f"what the server does, in at most {MAX_DESCRIPTION} characters")
parser.add_argument("--server-version", required=True, metavar="VERSION", help="the server's version, exactly; not a range")
parser.add_argument("--package", action="append", default=[], metavar="KIND:WHAT", help="what is installed (repeatable)")
parser.add_argument("--file", type=Path, metavar="PATH", help="the file behind mcpb:URL, for its digest")
parser.add_argument("--remote", action="append", default=[], metavar="URL", help="the address of a server that runs (repeatable)")
given = parser.parse_args()

if not re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", given.name) or not 3 <= len(given.name) <= 200:
    problems.append("--name must be a namespace and a name, as in io.github.you/pets: letters, digits, `.`, `-`, and `_` after the slash")
if not 1 <= len(given.description) <= MAX_DESCRIPTION:
    problems.append(f"--description has {len(given.description)} characters; the registry takes 1 to {MAX_DESCRIPTION}")
if any(unicodedata.category(character) in ("Cc", "Cf") for character in given.description):
    problems.append("--description holds characters that are not shown")
check_version(given.server_version)
if not given.package and not given.remote:
    problems.append("an entry says what it points at: --package mcpb:URL with --file, oci:, npm: or pypi:, or --remote URL")
digest = None
if given.file:
    try:
        digest = hashlib.sha256(given.file.read_bytes()).hexdigest()
    except OSError as error:
        problems.append(f"--file: `{given.file}` cannot be read: {error}")
entry = {"$schema": SCHEMA, "name": given.name, "description": given.description, "version": given.server_version}
if given.package:
    entry["packages"] = [package(text, digest) for text in given.package]
if given.remote:
    entry["remotes"] = [remote(text) for text in given.remote]
if problems:
    sys.exit("\n".join(f"error: {problem}" for problem in problems))
print(json.dumps(entry, indent=2, ensure_ascii=False))
