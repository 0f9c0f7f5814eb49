"""What the book has beside the pages of docs/: files of the project that pages link to.

SECURITY.md and the annotated configuration file become pages. Every other file that a page links to is copied, so that its link leads
somewhere on the site as well. The links stay those of the repository in the sources.
"""

import os
import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
# A file of the project, and its place in the book.
PAGES = {
    "SECURITY.md": "security.md",
    "config/openapi-mcp.yaml": "reference/configuration.md",
    "examples/github-issues/README.md": "guides/github-issues.md",
}
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


def place_of(target):
    """The place in the book of a file of the project; None if it has none."""
    if target in PAGES:
        return PAGES[target]
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    return f"files/{target}" if (ROOT / target).is_file() else None


def linked(text, source):
    """The files of the project that a page links to, outside of docs/. `source` is the page's own place in the project."""
    for target, _ in LINK.findall(text):
        if "://" not in target and not target.startswith("mailto:"):
            yield posixpath.normpath(posixpath.join(posixpath.dirname(source), target))


def rewritten(text, source, place):
    """The text of a file of the project as the page at that place of the book."""

    def replace(found):
        target, anchor = found[1], found[2] or ""
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        inside = place_of(posixpath.normpath(posixpath.join(posixpath.dirname(source), target)))
        return f"]({posixpath.relpath(inside, posixpath.dirname(place) or '.')}{anchor})" if inside else found[0]

    return LINK.sub(replace, text)


def on_config(config):
    version = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    config.copyright = f"openapi-mcp {version}"
    # The address of the repository, where there is one, gives each page a link to edit it.
    config.repo_url = os.environ.get("BOOK_REPOSITORY") or None
    config.edit_uri = "edit/main/docs/" if config.repo_url else None
    return config


def on_files(files, config):
    for source, place in PAGES.items():
        text = (ROOT / source).read_text()
        if source.endswith(".yaml"):
            text = f"# Configuration file\n\nEvery key with its default, or with an example. [How settings work](settings.md) explains the file.\n\n```yaml\n{text}```\n"
        else:
            text = rewritten(text, source, place)
        files.append(File.generated(config, place, content=text))
    wanted = set()
    for file in list(files.documentation_pages()):
        if file.src_uri not in PAGES.values():
            wanted.update(linked((ROOT / "docs" / file.src_uri).read_text(), f"docs/{file.src_uri}"))
    for target in sorted(wanted):
        place = place_of(target)
        if place and place.startswith("files/"):
            files.append(File.generated(config, place, abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown, page, config, files):
    place = page.file.src_uri
    return markdown if place in PAGES.values() else rewritten(markdown, f"docs/{place}", place)
