"""Runs the conformance suite of MCP and its inspector against `/mcp/RUN` of a real server, and the inspector against `charter mcp`.

Needs python3, npm and any Node.js; installs Node 22, the suite and the inspector from npm into target/mcp. `charter` is built
first, unless CHARTER names one.
"""
import concurrent.futures
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
WORK = TARGET / "mcp"
PACKAGES = ["node@22.23.3", "@modelcontextprotocol/conformance@0.2.0-alpha.12", "@modelcontextprotocol/inspector@2.12.0"]
NODE = WORK / "node_modules/.bin/node"
SUITE = WORK / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
INSPECTOR = WORK / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"

SCENARIOS = {
    "2025-06-18": ["server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "server-session-lifecycle"],
    "2025-11-25": [
        "server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection",
        "server-session-lifecycle", "server-sse-multiple-streams",
    ],
    "2026-07-28": [
        "tools-list", "resources-list", "prompts-list", "caching", "http-header-validation", "sep-2164-resource-not-found",
        "dns-rebinding-protection", "server-sse-multiple-streams", "server-stateless",
    ],
}
# Checks that call tools of a test server, which the suite itself marks as `untestable` here.
UNTESTABLE = {
    "sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream", "sep-2575-server-no-log-without-loglevel",
}
# Checks of which a scenario must have passed at least these, so that it is not green because it did nothing.
MUST_PASS = {
    "server-stateless": {
        "sep-2575-server-implements-discover", "sep-2575-http-server-header-mismatch-400", "sep-2575-http-server-method-not-found-404",
        "sep-2575-server-sends-subscription-ack", "sep-2575-server-tags-subscription-id", "sep-2575-server-honors-notification-filter",
    },
    "server-session-lifecycle": {"server-session-delete-accepted", "server-session-terminated-returns-404"},
    "http-header-validation": {"sep-2243-header-name-case-insensitive"},
}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def conforms(url, version, scenario, home):
    """Runs a scenario; returns what is wrong, and how many checks have passed."""
    out = home / f"results/{version}/{scenario}"
    command = [NODE, SUITE, "server", "--url", url, "--scenario", scenario, "--spec-version", version, "-o", out]
    subprocess.run([str(part) for part in command], check=False, capture_output=True, text=True, timeout=120)
    checks = [check for file in out.rglob("checks.json") for check in json.loads(file.read_text())]
    passed = {check["id"] for check in checks if check["status"] == "SUCCESS"}
    wrong = []
    for check in checks:
        excused = check["id"] in UNTESTABLE and (check.get("details") or {}).get("untestable")
        if check["status"] == "FAILURE" and not excused:
            wrong.append(f"{check['id']}: {check.get('errorMessage')}\n    {json.dumps(check.get('details'))[:1500]}")
    wrong += [f"{missing} did not pass" for missing in sorted(MUST_PASS.get(scenario, set()) - passed)]
    if not passed:
        wrong.append("no check has passed")
    return wrong, len(passed)


def inspect(env, *arguments):
    """Runs the inspector; returns what it prints."""
    return json.loads(run(NODE, INSPECTOR, "--cli", *arguments, env=env))


def inspector(env, where, run_id):
    """A second client: lists, calls and reads what there is. `where` says how it reaches the server."""
    for era in ("legacy", "modern"):
        place = [*where, "--protocol-era", era]
        tools = {tool["name"] for tool in inspect(env, *place, "--method", "tools/list", "--strict")["tools"]}
        if not {"send", "legal", "status", "why_not", "REQUEST"} <= tools:
            sys.exit(f"inspector, {era}: the tools are {sorted(tools)}")
        call = ["--method", "tools/call", "--tool-name"]
        status = inspect(env, *place, *call, "status")["structuredContent"]
        if (status["run"], status["state"]) != (run_id, ["open"]):
            sys.exit(f"inspector, {era}: {status}")
        refused = subprocess.run(
            [str(part) for part in [NODE, INSPECTOR, "--cli", *place, *call, "send", "--tool-arg", "type=REJECT"]],
            check=False, capture_output=True, text=True, env=env,
        )
        if '"isError": true' not in refused.stdout or "was refused as record" not in refused.stdout:
            sys.exit(f"inspector, {era}: {refused.stdout}\n{refused.stderr}")
        uri = f"charter://runs/{run_id}/charter"
        read = inspect(env, *place, "--method", "resources/read", "--uri", uri)
        if json.loads(read["contents"][0]["text"])["id"] != "payment":
            sys.exit(f"inspector, {era}: {read}")
        prompt = inspect(env, *place, "--method", "prompts/get", "--prompt-name", "work_under_charter", "--prompt-args", "goal=pay")
        if "pay" not in prompt["messages"][0]["content"]["text"]:
            sys.exit(f"inspector, {era}: {prompt}")


def main():
    install(WORK, PACKAGES)
    if "CHARTER" not in os.environ:
        run("cargo", "build", "--quiet", "--bin", "charter", cwd=ROOT)
    charter = os.environ.get("CHARTER", str(TARGET / "debug/charter"))
    home = pathlib.Path(tempfile.mkdtemp(prefix="charter-mcp-"))
    (home / "charters").mkdir()
    shutil.copy(ROOT / "docs/examples/payment.yaml", home / "charters")
    env = {k: v for k, v in os.environ.items() if k not in {"CHARTER_DB", "CHARTER_SERVER", "CHARTER_KEY"}}
    # The inspector writes its catalog there.
    env = {**env, "HOME": str(home), "PATH": f"{NODE.parent}{os.pathsep}{env['PATH']}"}
    key = run(charter, "key", "add", "bot", "--agent", "--role", "payment/clerk", cwd=home, env=env).strip()
    port, proxy_port = free_port(), free_port()
    public = f"http://127.0.0.1:{proxy_port}"
    serve = [charter, "serve", "--listen", f"127.0.0.1:{port}", "--public-url", public]
    server = subprocess.Popen(serve, cwd=home, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    proxy = None
    try:
        server.stdout.readline()
        direct = f"http://127.0.0.1:{port}"
        start = json.dumps({"charter": "payment", "run": "pay-1"}).encode()
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(f"{direct}/v1/runs", start, headers))
        command = [NODE, ROOT / ".ci/mcp-key.mjs", str(proxy_port), str(port)]
        proxy = subprocess.Popen(command, env={**env, "KEY": key}, stdout=subprocess.PIPE, text=True)
        proxy.stdout.readline()
        failed = []
        every = [(version, scenario) for version, scenarios in SCENARIOS.items() for scenario in scenarios]
        # Each starts a Node of its own, and mostly waits.
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            results = pool.map(lambda one: conforms(f"{public}/mcp/pay-1", *one, home), every)
            for (version, scenario), (wrong, passed) in zip(every, results):
                print(f"{version} {scenario}: {'; '.join(wrong) if wrong else f'{passed} checks passed'}", flush=True)
                failed += wrong
        if failed:
            sys.exit(f"{len(failed)} checks of the conformance suite failed")
        where = ["--transport", "http", "--server-url", f"{direct}/mcp/pay-1", "--header", f"Authorization: Bearer {key}"]
        inspector(env, where, "pay-1")
        print("inspector: over HTTP")
        stdio = [charter, "mcp", "--db", str(home / "own.db"), "--charter", str(home / "charters/payment.yaml"), "--run", "pay-2", "--role", "clerk"]
        inspector(env, ["--transport", "stdio", *stdio], "pay-2")
        print("inspector: over standard input and output")
    finally:
        for process in (proxy, server):
            if process:
                process.terminate()
                process.wait(20)
        shutil.rmtree(home, ignore_errors=True)


main()
