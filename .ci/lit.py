"""Bundles lit into one module, `crates/charter-server/page/lit.js`, and compares it with the committed one; `--write` replaces it.

Needs node and npm; installs lit and esbuild into target/lit.
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "lit"
FILE = ROOT / "crates/charter-server/page/lit.js"
LIT = "3.3.3"
PACKAGES = [f"lit@{LIT}", "esbuild@0.28.2"]
# `styleMap`, `unsafeHTML` and `unsafeSVG` are left out: the policy of the page allows no style attributes, and no
# component makes markup from data.
ENTRY = """
export * from "lit";
export * from "lit/directives/class-map.js";
export * from "lit/directives/guard.js";
export * from "lit/directives/if-defined.js";
export * from "lit/directives/keyed.js";
export * from "lit/directives/live.js";
export * from "lit/directives/ref.js";
export * from "lit/directives/repeat.js";
"""


def run(*command):
    done = subprocess.run([str(part) for part in command], check=False, capture_output=True, text=True, cwd=WORK)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed ({done.returncode}):\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / "package.json").write_text('{"private": true, "type": "module"}')
    run("npm", "install", "--silent", "--no-audit", "--no-fund", "--save-exact", *PACKAGES)
    (WORK / "entry.js").write_text(ENTRY)
    license = (WORK / "node_modules/lit/LICENSE").read_text().strip()
    header = f"/*! lit {LIT} (https://lit.dev), bundled by .ci/lit.py; do not edit.\n\n{license}\n*/\n"
    options = ["--bundle", "--format=esm", "--minify", "--target=es2022", "--legal-comments=none", "--charset=utf8"]
    bundle = header + run(WORK / "node_modules/.bin/esbuild", "entry.js", *options)
    if "--write" in sys.argv:
        FILE.write_text(bundle)
    elif FILE.read_text() != bundle:
        sys.exit(f"{FILE.relative_to(ROOT)} is not lit {LIT} as bundled from npm: run `python3 .ci/lit.py --write`")


main()
