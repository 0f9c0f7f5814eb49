"""Writes the Homebrew formula of a release. Usage: formula.py --repository URL --archives DIR > openapi-mcp.rb"""

import argparse
import hashlib
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Homebrew's names of systems and processors.
TARGETS = {
    ("macos", "arm"): "aarch64-apple-darwin",
    ("macos", "intel"): "x86_64-apple-darwin",
    ("linux", "arm"): "aarch64-unknown-linux-gnu",
    ("linux", "intel"): "x86_64-unknown-linux-gnu",
}


def cargo(key):
    text = (ROOT / "Cargo.toml").read_text()
    return re.search(rf'^{key} = "(.*)"', text, re.M).group(1)


def download(repository, archives, version, target):
    name = f"openapi-mcp-v{version}-{target}.tar.gz"
    digest = hashlib.sha256((archives / name).read_bytes()).hexdigest()
    return f'      url "{repository}/releases/download/v{version}/{name}"\n      sha256 "{digest}"\n'


def formula(repository, archives):
    version = cargo("version")
    systems = ""
    for system in ("macos", "linux"):
        processors = ""
        for processor in ("arm", "intel"):
            processors += f"    on_{processor} do\n{download(repository, archives, version, TARGETS[system, processor])}    end\n"
        systems += f"  on_{system} do\n{processors}  end\n"
    return f"""class OpenapiMcp < Formula
  desc "Turn any OpenAPI document into an MCP server"
  homepage "{repository}"
  version "{version}"
  license any_of: ["MIT", "Apache-2.0"]

{systems}
  def install
    bin.install "openapi-mcp"
    generate_completions_from_executable(bin/"openapi-mcp", "completions")
    (man1/"openapi-mcp.1").write Utils.safe_popen_read(bin/"openapi-mcp", "man")
  end

  test do
    assert_match "Biscuit", shell_output("#{{bin}}/openapi-mcp demo")
  end
end
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repository", required=True, help="as in https://github.com/you/openapi-mcp")
    parser.add_argument("--archives", type=pathlib.Path, required=True, help="the folder with the archives of the release")
    arguments = parser.parse_args()
    print(formula(arguments.repository.rstrip("/"), arguments.archives), end="")


main()
