"""Generates clients from the server's OpenAPI document, in Python and TypeScript, and runs a session with each.

Needs python3 with venv, node and npm; installs the generators from PyPI and npm into target/clients. `charter` is built first.
"""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from npm import install, run  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
WORK = TARGET / "clients"
EXAMPLES = ROOT / "docs/examples"
PYTHON = ["openapi-spec-validator==0.9.0", "openapi-python-client==0.29.1", "standardwebhooks==1.1.0"]
NODE = ["openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3", "@types/node@20"]


def tools():
    """Installs the generators, once."""
    WORK.mkdir(parents=True, exist_ok=True)
    if not list(WORK.glob("venv/lib/python*/site-packages/standardwebhooks")):
        run(sys.executable, "-m", "venv", WORK / "venv")
        run(WORK / "venv/bin/pip", "install", "--quiet", *PYTHON)
    install(WORK, NODE)


def receiver(charter, home, env):
    """Adds a webhook, and starts the receiver of the documentation, which checks the signatures with another library."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/"
    secret = run(charter, "hook-out", "add", url, "--on", "started,refused,ended", "--allow-private", cwd=home, env=env).strip()
    command = [WORK / "venv/bin/python", EXAMPLES / "http/receiver.py", str(port)]
    return subprocess.Popen(command, env={**env, "CHARTER_HOOK_SECRET": secret}, stdout=subprocess.PIPE, text=True)


def main():
    tools()
    run("cargo", "build", "--quiet", "--bin", "charter", cwd=ROOT)
    charter = TARGET / "debug/charter"
    home = pathlib.Path(tempfile.mkdtemp(prefix="charter-clients-"))
    (home / "charters").mkdir()
    shutil.copy(EXAMPLES / "payment.yaml", home / "charters")
    env = {k: v for k, v in os.environ.items() if k != "CHARTER_DB"}
    key = lambda name, role: run(charter, "key", "add", name, "--role", role, cwd=home, env=env).strip()
    clerk, controller = key("ana", "payment/clerk"), key("bob", "payment/controller")
    server = subprocess.Popen(
        [charter, "serve", "--listen", "127.0.0.1:0"], cwd=home, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        url = server.stdout.readline().strip()
        request = urllib.request.Request(f"{url}/openapi.json", headers={"Authorization": f"Bearer {clerk}"})
        document = json.load(urllib.request.urlopen(request))
        api = home / "api.json"
        api.write_text(json.dumps(document))
        run(WORK / "venv/bin/openapi-spec-validator", api)
        people = {**env, "CHARTER_URL": url, "CLERK": clerk, "CONTROLLER": controller}

        config = home / "client.yaml"
        config.write_text("post_hooks: []\nliteral_enums: true\n")
        out = home / "python/charter_client"
        out.parent.mkdir()
        generate = ["generate", "--path", api, "--output-path", out, "--meta", "none", "--config", config]
        said = run(WORK / "venv/bin/openapi-python-client", *generate)
        if "removal" in said:
            sys.exit(f"schemas are missing in the client in Python:\n{said[-4000:]}")
        shutil.copy(EXAMPLES / "http/session.py", home / "python")
        received = receiver(charter, home, env)
        print("python:", run(WORK / "venv/bin/python", "session.py", cwd=home / "python", env=people), sep="\n", end="")

        types = home / "typescript"
        types.mkdir()
        (types / "node_modules").symlink_to(WORK / "node_modules")
        run(WORK / "node_modules/.bin/openapi-typescript", api, "-o", types / "charter-api.d.ts", cwd=types)
        shutil.copy(EXAMPLES / "http/session.ts", types)
        tsc = ["--strict", "--target", "es2022", "--module", "commonjs", "--moduleResolution", "node10", "--esModuleInterop", "--skipLibCheck"]
        run(WORK / "node_modules/.bin/tsc", *tsc, "session.ts", cwd=types)
        lines = [received.stdout.readline().split() for _ in range(2)]
        received.terminate()
        kinds = [line[0] for line in lines]
        if kinds[0] != "charter.started" or not set(kinds[1:]) <= {"charter.refused", "charter.ended"}:
            sys.exit(f"the webhook told something else: {lines}")
        print("webhook:", *kinds)
        print("typescript:", run("node", "session.js", cwd=types, env=people), sep="\n", end="")
    finally:
        server.terminate()
        server.wait(20)
        shutil.rmtree(home, ignore_errors=True)


main()
