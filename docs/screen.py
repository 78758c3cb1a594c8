"""A picture of a terminal: `tmux capture-pane -e -p | python3 docs/screen.py docs/fred.png`, with chromium installed."""
import html
import pathlib
import re
import subprocess
import sys
import tempfile

COLORS = {"31": "#e06c75", "32": "#98c379", "33": "#e5c07b", "36": "#56b6c2"}
LINE = 19
lines = sys.stdin.read().rstrip("\n").split("\n")
style, rows = {}, []
for line in lines:
    row = ""
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if not part.startswith("\x1b["):
            css = "".join(f"{name}:{value};" for name, value in style.items())
            row += f'<span style="{css}">{html.escape(part)}</span>'
            continue
        for code in part[2:-1].split(";"):
            if code in ("", "0"):
                style = {}
            elif code in ("39", "22"):
                style.pop({"39": "color", "22": "font-weight"}[code], None)
            elif code == "1":
                style["font-weight"] = "bold"
            elif code == "2":
                style["color"] = "#7f848e"
            elif code in COLORS:
                style["color"] = COLORS[code]
    rows.append(row)
text = re.compile(r"\x1b\[[0-9;]*m")
width = max(len(text.sub("", line)) for line in lines) * 8.43 + 24
page = (
    f'<body style="margin:0;background:#21252b"><pre style="margin:0;padding:12px;color:#d7dae0;'
    f"font:14px/{LINE}px 'DejaVu Sans Mono',monospace\">" + "\n".join(rows) + "</pre>"
)
with tempfile.TemporaryDirectory() as folder:
    source = pathlib.Path(folder, "screen.html")
    source.write_text(f'<!doctype html><meta charset="utf-8">{page}')
    size = f"--window-size={width:.0f},{len(rows) * LINE + 24}"
    picture = f"--screenshot={pathlib.Path(sys.argv[1]).resolve()}"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1.5"]
    subprocess.run(["chromium", *options, size, picture, source.as_uri()], check=True, stderr=subprocess.DEVNULL)
