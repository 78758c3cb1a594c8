"""Checks the page of the server: types of its modules, and every `page/tests/*.mjs` in a real browser.

`python3 .ci/page.py form diff` runs `tests/form.mjs` and `tests/diff.mjs` only. Needs node, npm and Debian's chromium (or
`CHROMIUM=PATH`); installs the rest from npm into target/page. Some tests run the program itself: `charter` is built first,
unless CHARTER names one.
"""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from npm import install, run  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "page"
PAGE = ROOT / "crates/charter-server/page"
PACKAGES = ["playwright-core@1.60.0", "@axe-core/playwright@4.14.0", "typescript@5.9.3", "lit@3.3.3"]


def types():
    """Checks the JSDoc types of the modules, strictly."""
    lit = WORK / "node_modules/lit"
    options = {
        "allowJs": True, "checkJs": True, "noEmit": True, "strict": True, "skipLibCheck": True,
        "noImplicitReturns": True, "noFallthroughCasesInSwitch": True,
        "target": "es2022", "module": "esnext", "moduleResolution": "bundler", "lib": ["es2023", "dom", "dom.iterable"], "types": [],
        "paths": {"lit": [str(lit / "index.d.ts")], "lit/*": [str(lit / "*")]},
    }
    config = WORK / "tsconfig.json"
    include = [f"{PAGE}/*.js", f"{PAGE}/*.d.ts", *(f"{PAGE}/{folder}/**/*.js" for folder in ("lib", "components", "views", "widget"))]
    config.write_text(json.dumps({"compilerOptions": options, "include": include, "exclude": [f"{PAGE}/lit.js"]}))
    run(WORK / "node_modules/.bin/tsc", "-p", config)


def program():
    """The path of `charter`, a debug build with the files of the page as they are now."""
    if "CHARTER" not in os.environ:
        run("cargo", "build", "--quiet", "--bin", "charter", shown=True, cwd=ROOT)
    return os.environ.get("CHARTER", str(WORK.parent / "debug/charter"))


def tests(names):
    files = [PAGE / f"tests/{name}.mjs" for name in names] or sorted((PAGE / "tests").glob("*.mjs"))
    missing = [str(file) for file in files if not file.exists()]
    if missing or not files:
        sys.exit(f"no such test: {', '.join(missing) or PAGE / 'tests'}")
    # One at a time: each starts a browser.
    reporter = ["--test-reporter=spec"] if names else ["--test-reporter=dot"]
    command = ["node", "--test", "--test-concurrency=1", "--test-timeout=240000", *reporter, *files]
    env = {**os.environ, "PAGE_MODULES": str(WORK / "node_modules"), "CHARTER": program()}
    run(*command, shown=True, env=env)


def main():
    install(WORK, PACKAGES)
    types()
    tests(sys.argv[1:])


main()
