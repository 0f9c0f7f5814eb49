"""Makes npm packages and PyPI wheels of binaries. Usage: pack.py --output DIR [--mcp-name NAME] TARGET=BINARY ..."""

import argparse
import base64
import csv
import gzip
import hashlib
import io
import json
import pathlib
import re
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = "openapi-mcp-server"
# Target: what npm calls its system and processor, and the tags of its wheel. The Linux binaries are static.
TARGETS = {
    "x86_64-unknown-linux-gnu": ("linux", "x64", "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64"),
    "aarch64-unknown-linux-gnu": ("linux", "arm64", "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64"),
    "x86_64-apple-darwin": ("darwin", "x64", "macosx_10_12_x86_64"),
    "aarch64-apple-darwin": ("darwin", "arm64", "macosx_11_0_arm64"),
    "x86_64-pc-windows-msvc": ("win32", "x64", "win_amd64"),
}


def cargo(key):
    text = (ROOT / "Cargo.toml").read_text()
    return re.search(rf'^{key} = "(.*)"', text, re.M).group(1)


def tarball(path, files):
    """Writes an npm tarball; the same files give the same bytes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data, mode in files:
            info = tarfile.TarInfo(f"package/{name}")
            info.size, info.mode, info.mtime = len(data), mode, 499162500
            tar.addfile(info, io.BytesIO(data))
    path.write_bytes(gzip.compress(packed.getvalue(), mtime=0))


def describe(**more):
    common = {"version": cargo("version"), "description": cargo("description"), "license": cargo("license")}
    return (json.dumps({**more, **common}, indent=2) + "\n").encode()


def npm(output, binaries, mcp_name):
    version = cargo("version")
    # By this the MCP registry knows that a package belongs to its entry.
    owner = {"mcpName": mcp_name} if mcp_name else {}
    licences = [(name, (ROOT / name).read_bytes(), 0o644) for name in ("LICENSE-MIT", "LICENSE-APACHE")]
    names = {}
    for target, binary in binaries.items():
        system, processor, _ = TARGETS[target]
        name = f"{NAME}-{system}-{processor}"
        names[name] = version
        program = "openapi-mcp.exe" if system == "win32" else "openapi-mcp"
        files = [("package.json", describe(name=name, os=[system], cpu=[processor], files=[program]), 0o644), (program, binary, 0o755)]
        tarball(output / f"{name}-{version}.tgz", files + licences)
    package = describe(name=NAME, bin={"openapi-mcp": "openapi-mcp.cjs"}, optionalDependencies=names, engines={"node": ">=18"}, **owner)
    files = [
        ("package.json", package, 0o644),
        ("openapi-mcp.cjs", (ROOT / "packaging/launcher.cjs").read_bytes(), 0o755),
        ("README.md", (ROOT / "README.md").read_bytes(), 0o644),
    ]
    tarball(output / f"{NAME}-{version}.tgz", files + licences)


def wheel(output, target, binary, mcp_name):
    version = cargo("version")
    owner = f"\n<!-- mcp-name: {mcp_name} -->\n" if mcp_name else ""
    module = NAME.replace("-", "_")
    system, _, tags = TARGETS[target]
    program = "openapi-mcp.exe" if system == "win32" else "openapi-mcp"
    metadata = f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version}\nSummary: {cargo('description')}\nLicense: {cargo('license')}\nDescription-Content-Type: text/markdown\n\n"
    info = f"{module}-{version}.dist-info"
    tag_lines = "".join(f"Tag: py3-none-{tag}\n" for tag in tags.split("."))
    files = [
        (f"{module}-{version}.data/scripts/{program}", binary, 0o755),
        (f"{info}/METADATA", (metadata + (ROOT / "README.md").read_text() + owner).encode(), 0o644),
        (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: pack.py\nRoot-Is-Purelib: false\n{tag_lines}".encode(), 0o644),
        (f"{info}/licenses/LICENSE-MIT", (ROOT / "LICENSE-MIT").read_bytes(), 0o644),
        (f"{info}/licenses/LICENSE-APACHE", (ROOT / "LICENSE-APACHE").read_bytes(), 0o644),
    ]
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    for name, data, _ in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.writerow([name, f"sha256={digest}", len(data)])
    rows.writerow([f"{info}/RECORD", "", ""])
    files.append((f"{info}/RECORD", record.getvalue().encode(), 0o644))
    with zipfile.ZipFile(output / f"{module}-{version}-py3-none-{tags}.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, mode in files:
            entry = zipfile.ZipInfo(name, (1985, 10, 26, 8, 15, 0))
            entry.external_attr, entry.create_system, entry.compress_type = (0o100000 | mode) << 16, 3, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--mcp-name", help="the name in the MCP registry, as in io.github.you/openapi-mcp")
    parser.add_argument("binaries", nargs="+", metavar="TARGET=BINARY")
    arguments = parser.parse_args()
    binaries = {}
    for text in arguments.binaries:
        target, _, path = text.partition("=")
        if target not in TARGETS:
            parser.error(f"{target} is none of {', '.join(TARGETS)}")
        binaries[target] = pathlib.Path(path).read_bytes()
    arguments.output.mkdir(parents=True, exist_ok=True)
    npm(arguments.output, binaries, arguments.mcp_name)
    for target, binary in binaries.items():
        wheel(arguments.output, target, binary, arguments.mcp_name)


main()
