"""Checks the page of the server: types of its modules, and every `page/tests/*.mjs` in a real browser.

`python3 .ci/page.py form diff` runs `tests/form.mjs` and `tests/diff.mjs` only. Needs node, npm and Debian's chromium (or
`CHROMIUM=PATH`); installs the rest from npm into target/page. Some tests run the program itself: `charter` is built first,
unless CHARTER names one.
"""
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "page"
PAGE = ROOT / "crates/charter-server/page"
PACKAGES = ["playwright-core@1.60.0", "@axe-core/playwright@4.14.0", "typescript@5.9.3", "lit@3.3.3"]


def run(*command, **more):
    done = subprocess.run([str(part) for part in command], check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{pathlib.Path(command[0]).name} failed ({done.returncode}){':' if done.stdout else ''}\n{done.stdout or ''}")


def install():
    """Installs the packages, once for a list of them."""
    WORK.mkdir(parents=True, exist_ok=True)
    done = WORK / "installed"
    if not done.exists() or done.read_text() != str(PACKAGES):
        (WORK / "package.json").write_text('{"private": true}')
        command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--save-exact", *PACKAGES]
        run(*command, cwd=WORK, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        done.write_text(str(PACKAGES))


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
    run(WORK / "node_modules/.bin/tsc", "-p", config, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def program():
    """The path of `charter`, a debug build with the files of the page as they are now."""
    if "CHARTER" not in os.environ:
        run("cargo", "build", "--quiet", "--bin", "charter", cwd=ROOT)
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
    run(*command, env=env)


def main():
    install()
    types()
    tests(sys.argv[1:])


main()
