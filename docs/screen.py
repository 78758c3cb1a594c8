"""A picture of a terminal: `tmux capture-pane -e -p | python3 docs/screen.py > docs/fred.svg`. Standard library only."""
import html
import re
import sys

WIDTH, HEIGHT = 8.4, 19
COLORS = {"31": "#e06c75", "32": "#98c379", "33": "#e5c07b", "36": "#56b6c2"}
lines = sys.stdin.read().rstrip("\n").split("\n")
rows, style = [], {}
for line in lines:
    spans, column = [], 0
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b["):
            for code in part[2:-1].split(";"):
                if code in ("", "0", "39", "22"):
                    style = {} if code in ("", "0") else {k: v for k, v in style.items() if k != {"39": "fill", "22": "font-weight"}[code]}
                elif code == "1":
                    style["font-weight"] = "bold"
                elif code == "2":
                    style["fill"] = "#7f848e"
                elif code in COLORS:
                    style["fill"] = COLORS[code]
        elif part:
            attributes = "".join(f' {name}="{value}"' for name, value in style.items())
            if part.strip():
                # Each run of text has its place, so that it stands in columns with any font.
                length = f' textLength="{len(part) * WIDTH:.1f}" lengthAdjust="spacingAndGlyphs"'
                spans.append(f'<tspan x="{12 + column * WIDTH:.1f}"{attributes}{length}>{html.escape(part)}</tspan>')
            column += len(part)
    rows.append(spans)
columns = max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines)
width, height = columns * WIDTH + 24, len(rows) * HEIGHT + 24
print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}">')
print(f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#21252b"/>')
print('<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14" fill="#d7dae0" xml:space="preserve">')
for number, spans in enumerate(rows):
    if spans:
        print(f'<text y="{26 + number * HEIGHT}">{"".join(spans)}</text>')
print("</g>\n</svg>")
