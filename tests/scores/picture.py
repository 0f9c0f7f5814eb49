"""The picture of the scores: bars beside peers, in one SVG for light and dark pages."""

from html import escape

WIDTH, LEFT, RIGHT, LINE = 760, 170, 110, 26
STYLE = """
  svg { --page: #ffffff; --text: #1f2328; --quiet: #59636e; --own: #0969da; --peer: #afb8c1; --right: #2da44e; --careful: #d4a72c; --unsafe: #cf222e }
  @media (prefers-color-scheme: dark) {
    svg { --page: #0d1117; --text: #f0f6fc; --quiet: #9198a1; --own: #4493f8; --peer: #656c76; --right: #3fb950; --careful: #bb8009; --unsafe: #f85149 }
  }
  text { font: 13px system-ui, sans-serif; fill: var(--text) }
  .title { font-weight: 600; font-size: 15px } .quiet { fill: var(--quiet) } .name { text-anchor: end } .bold { font-weight: 600 }
"""


def shares(figures):
    """How many operations have the right hints, hints that are too careful, and an unsafe one."""
    careful = sum(number for reason, number in figures["failed"].items() if reason.startswith("too careful"))
    return figures["passed"], careful, figures["of"] - figures["passed"] - careful


def hints(expected):
    figures = expected["effects-careful"]
    return [("openapi-mcp", shares(figures)), *((name, shares(other)) for name, other in figures["beside"].items())]


def words(expected):
    """The same as the picture, in words."""
    right = "; ".join(f"{name}: {right} right, {careful} too careful, {unsafe} unsafe" for name, (right, careful, unsafe) in hints(expected))
    return f"Hints of {expected['effects-careful']['of']} operations: {right}."


def drawn(expected):
    parts, top = [], 34

    def text(x, y, content, kind=""):
        parts.append(f'  <text x="{x:g}" y="{y:g}" class="{kind}">{escape(str(content))}</text>')

    def bar(x, y, width, colour):
        parts.append(f'  <rect x="{x:.1f}" y="{y:g}" width="{max(width, 2):.1f}" height="16" fill="var(--{colour})"/>')

    room = WIDTH - LEFT - RIGHT
    of = expected["effects-careful"]["of"]
    text(20, top, f"Hints of {of} operations that are hard to judge", "title")
    x = LEFT
    top += LINE - 4
    for colour, label in (("right", "right"), ("careful", "too careful"), ("unsafe", "unsafe")):
        bar(x, top - 13, 16, colour)
        text(x + 24, top, label, "quiet")
        x += 120
    for name, numbers in hints(expected):
        top += LINE
        text(LEFT - 10, top, name, "name bold" if name == "openapi-mcp" else "name")
        x = LEFT
        for colour, number in zip(("right", "careful", "unsafe"), numbers, strict=True):
            if number:
                bar(x, top - 13, room * number / of, colour)
                x += room * number / of
        text(x + 8, top, " / ".join(map(str, numbers)), "quiet")
    height = top + 24
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">\n'
        f"  <title>{escape(words(expected))}</title>\n  <style>{STYLE}  </style>\n"
        f'  <rect width="{WIDTH}" height="{height}" rx="8" fill="var(--page)"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )
