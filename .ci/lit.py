"""Bundles lit into one module, `crates/charter-server/page/lit.js`, and compares it with the committed one; `--write` replaces it.

Needs node and npm; installs lit and esbuild into target/lit.
"""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from npm import install, run  # noqa: E402

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


def main():
    install(WORK, PACKAGES, '{"private": true, "type": "module"}')
    (WORK / "entry.js").write_text(ENTRY)
    license = (WORK / "node_modules/lit/LICENSE").read_text().strip()
    header = f"/*! lit {LIT} (https://lit.dev), bundled by .ci/lit.py; do not edit.\n\n{license}\n*/\n"
    options = ["--bundle", "--format=esm", "--minify", "--target=es2022", "--legal-comments=none", "--charset=utf8"]
    bundle = header + run(WORK / "node_modules/.bin/esbuild", "entry.js", *options, cwd=WORK)
    if "--write" in sys.argv:
        FILE.write_text(bundle)
    elif FILE.read_text() != bundle:
        sys.exit(f"{FILE.relative_to(ROOT)} is not lit {LIT} as bundled from npm: run `python3 .ci/lit.py --write`")


main()
