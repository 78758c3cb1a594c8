"""Real clients under a charter, with a model that is a list (`fake_model.py`): each is refused a forbidden call, is told why,
does the legal thing next, is stopped at an approval and goes on after it; and a broken hook blocks in each.

Opt-in: CHARTER_REAL_CLIENTS=1 python3 .ci/clients_real.py [CLIENT ...]
CHARTER is the program (target/debug/charter); CLIENTS a folder for npm packages, which are installed there. Node 22 is one of
them. Nothing but npm's registry and the loopback is reached. Standard library only."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from fake_model import Model  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHARTER = os.environ.get("CHARTER", str(ROOT / "target/debug/charter"))
CLIENTS = pathlib.Path(os.environ.get("CLIENTS", ROOT / "target/real-clients"))
PACKAGES = {
    "claude": "@anthropic-ai/claude-code@2.1.330",
    "codex": "@openai/codex@0.169",
    "gemini": "@google/gemini-cli@0.61",
    "copilot": "@github/copilot@1.0.102",
    "opencode": "opencode-ai@1.18",
}
TIME_S = 120
# Reading is free; writing needs a plan that the boss has approved.
GUARDED = """
charter: 1
id: guarded
roles: {agent: {}, boss: {}}
context: {plan: null}
events:
  tool.call: {by: agent}
  tool.result: {by: agent}
  PLAN: {by: agent, data: {type: object, required: [text], properties: {text: {type: string}}}}
  APPROVE: {by: boss, data: {type: object, required: [digest], properties: {digest: {type: string}}}}
initial: look
states:
  look:
    on:
      tool.call: {when: '!event.does.write && !event.does.delete'}
      tool.result: {}
      PLAN: {target: asked, actions: {assign: {plan: '= event.text'}}}
  asked:
    tags: [waiting]
    on:
      tool.call: {when: '!event.does.write && !event.does.delete'}
      tool.result: {}
      APPROVE: {target: change, approves: context.plan}
  change: {on: {tool.call: {}, tool.result: {}}}
"""
failures = []


def check(holds, what):
    print(f"  {'ok  ' if holds else 'FAIL'} {what}", flush=True)
    if not holds:
        failures.append(what)
    return holds


def run(command, folder, env=None, text="", seconds=TIME_S):
    try:
        ran = subprocess.run(command, cwd=folder, env=env, input=text, capture_output=True, text=True, timeout=seconds)
        return ran.returncode, ran.stdout, ran.stderr
    except subprocess.TimeoutExpired as e:
        return None, str(e.stdout), str(e.stderr)


class Site:
    """A project with a charter and a client whose hook is installed."""

    def __init__(self, client, calls, hook=None):
        self.client = client
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix=f"real-{client}-"))
        self.home = self.dir / "home"
        self.project = self.dir / "project"
        for folder in (self.home, self.project):
            folder.mkdir()
        (self.project / "allowed.txt").write_text("allowed\n")
        run(["git", "init", "-q"], self.project)
        (self.project / "guarded.yaml").write_text(GUARDED)
        self.charter("run", "guarded.yaml", "--run", "r", "--input", json.dumps({"workspace": str(self.project)}), "--as", "ana",
                     "--role", "boss")
        self.charter("hook", "install", client, "--run", "r")
        self.model = Model(calls)
        if hook:
            self.replace_hook(hook)

    def charter(self, *args):
        code, out, err = run([CHARTER, *args], self.project, {**os.environ, "HOME": str(self.home)})
        if code != 0:
            raise SystemExit(f"charter {args}: {code} {out}{err}")
        return out

    def files(self):
        found = [".claude/settings.json", ".codex/hooks.json", ".gemini/settings.json", ".github/hooks/charter.json",
                 ".opencode/plugin/charter.js"]
        return [self.project / file for file in found if (self.project / file).exists()]

    def replace_hook(self, hook):
        """Puts another command in the place of ours, as the configured line has it."""
        own = json.dumps(f"{CHARTER} hook r")[1:-1]
        for file in self.files():
            text = file.read_text()
            assert own in text, text
            file.write_text(text.replace(own, json.dumps(hook)[1:-1] + f" {CHARTER} hook r"))

    def records(self):
        return [json.loads(line) for line in self.charter("log", "r", "--json").splitlines()]

    def client_run(self, *more):
        return ADAPTERS[self.client](self, *more)

    def close(self):
        self.model.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def env(self, **more):
        keep = {name: os.environ[name] for name in ("LANG", "TERM", "TMPDIR") if name in os.environ}
        path = f"{CLIENTS / 'node_modules/.bin'}:{os.environ['PATH']}"
        return {**keep, "PATH": path, "HOME": str(self.home), "NO_COLOR": "1", "CI": "1", **more}


def claude(site, *more):
    env = site.env(ANTHROPIC_BASE_URL=site.model.url, ANTHROPIC_API_KEY="sk-ant-none", IS_SANDBOX="1",
                   CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", DISABLE_TELEMETRY="1", DISABLE_AUTOUPDATER="1")
    command = ["claude", "-p", "go on", "--output-format", "json", "--allowedTools", "Bash,Read,Write", *more]
    return run(command, site.project, env)


def codex(site, *more):
    home = site.home / ".codex"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(f"""
model = "gpt-5"
model_provider = "fake"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.fake]
name = "fake"
base_url = "{site.model.url}/v1"
wire_api = "responses"
[projects."{site.project}"]
trust_level = "trusted"
""")
    env = site.env(OPENAI_API_KEY="none", CODEX_HOME=str(home))
    # What nobody has trusted is skipped; here the hook was read by who wrote this file.
    return run(["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", *more, "go on"], site.project, env)


def gemini(site, *more):
    home = site.home / ".gemini"
    home.mkdir(exist_ok=True)
    (home / "settings.json").write_text(json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))
    env = site.env(GEMINI_API_KEY="none", GOOGLE_GEMINI_BASE_URL=site.model.url, GEMINI_CLI_TRUST_WORKSPACE="true",
                   GEMINI_TELEMETRY_ENABLED="false")
    # A named model: `auto` asks another model first which one to take.
    return run(["gemini", "--yolo", "-m", "gemini-2.5-pro", "-p", "go on", *more], site.project, env)


def copilot(site, *more):
    env = site.env(COPILOT_PROVIDER_BASE_URL=f"{site.model.url}/v1", COPILOT_MODEL="gpt-5", COPILOT_PROVIDER_TYPE="openai",
                   COPILOT_PROVIDER_API_KEY="none", COPILOT_OFFLINE="true", COPILOT_AUTO_UPDATE="false")
    # With -p the hooks of a folder that nobody has trusted are skipped without a word.
    return run(["copilot", "-p", "go on", "--allow-all-tools", "--trust-folder", *more], site.project, env)


def opencode(site, *more):
    config = {"$schema": "https://opencode.ai/config.json", "model": "fake/m", "autoupdate": False, "share": "disabled", "provider": {
        "fake": {"npm": "@ai-sdk/openai-compatible", "name": "fake", "models": {"m": {"name": "m", "tool_call": True}},
                 "options": {"baseURL": f"{site.model.url}/v1", "apiKey": "none"}}}}
    (site.project / "opencode.json").write_text(json.dumps(config))
    env = site.env(OPENCODE_DISABLE_MODELS_FETCH="1", OPENCODE_DISABLE_AUTOUPDATE="1", OPENCODE_DISABLE_LSP_DOWNLOAD="1")
    return run(["opencode", "run", "go on", *more], site.project, env)


ADAPTERS = {"claude": claude, "codex": codex, "gemini": gemini, "copilot": copilot, "opencode": opencode}


def shell(client, command):
    """A call of the client's tool for commands."""
    what = {"command": command, "description": "x"}
    return {
        "claude": ("Bash", what), "gemini": ("run_shell_command", what), "copilot": ("bash", what), "opencode": ("bash", what),
        "codex": ("exec_command", {"cmd": command}),
    }[client]


def decides(client):
    site = Site(client, [shell(client, "touch forbidden"), shell(client, "cat allowed.txt")])
    code, out, err = site.client_run()
    records = [r for r in site.records() if r["event"]["type"] == "tool.call"]
    verdicts = [r["verdict"] for r in records]
    fine = check(not (site.project / "forbidden").exists(), f"{client}: a forbidden call is not made")
    fine &= check("refused by the charter" in site.model.heard(), f"{client}: the agent is told why")
    fine &= check(verdicts == ["refused", "accepted"], f"{client}: then does the legal thing: {verdicts}")
    fine &= check("allowed\\\\n" in site.model.heard() or "allowed" in str(site.model.requests[-1:]), f"{client}: which works")
    if not fine:
        print(code, out[-3000:], err[-3000:], site.model.paths[-20:], sep="\n")
    site.close()


def waits(client):
    site = Site(client, [shell(client, "touch wanted"), shell(client, "touch wanted"), shell(client, "touch wanted")])
    site.charter("send", "r", "PLAN", '{"text": "x"}', "--as", "bot", "--kind", "agent", "--role", "agent")
    code, out, err = site.client_run()
    fine = check(not (site.project / "wanted").exists(), f"{client}: stopped at an approval")
    session = None
    if client == "claude":
        try:
            said = json.loads(out)
            session = said.get("session_id")
        except ValueError:
            said = {}
        fine &= check("tool_deferred" in out, f"{client}: ends as tool_deferred")
    else:
        fine &= check("waits for approval" in site.model.heard(), f"{client}: is told where it is decided")
    legal = site.charter("legal", "r", "--as", "ana", "--role", "boss", "--json")
    digest = next(word for word in legal.replace('"', " ").split() if word.startswith("sha256:"))
    site.charter("send", "r", "APPROVE", json.dumps({"digest": digest}), "--as", "ana", "--role", "boss")
    code, out, err = site.client_run(*(["--resume", session] if session else []))
    fine &= check((site.project / "wanted").exists(), f"{client}: goes on after the approval")
    if not fine:
        print(code, out[-3000:], err[-3000:], site.model.paths[-20:], sep="\n")
    site.close()


def outcomes(client):
    """A charter that asks for passed tests needs to know which commands failed."""
    site = Site(client, [shell(client, "cat allowed.txt"), shell(client, "cat missing.txt; false")])
    code, out, err = site.client_run()
    found = [r["event"]["data"].get("ok") for r in site.records() if r["event"]["type"] == "tool.result"]
    if not check(found == KNOWN[client], f"{client}: knows how a command ended: {found}"):
        print(code, out[-2000:], err[-2000:], sep="\n")
    site.close()


# What each client says about a command that worked and one that failed: Codex tells its hooks the output only.
KNOWN = {**dict.fromkeys(PACKAGES, [True, False]), "codex": [None, None]}

# What stands before the command, and what it breaks.
BROKEN = {
    "a panic": "env CHARTER_HOOK_FAULT=panic",
    "a time-out": "env CHARTER_HOOK_FAULT=hang",
    "killed": "sh -c 'kill -9 $$' --",
    "garbage on standard input": "sh -c 'echo garbage | \"$@\"' --",
    "a closed standard output": "sh -c '\"$@\" >&-' --",
    "no program": "/nowhere/charter",
}


def broken(client):
    one_broken(client, "whole", None, lambda site: None, whole=True)
    for what, before in BROKEN.items():
        one_broken(client, what, before, lambda site: None)
    one_broken(client, "a missing run", None, lambda site: site_replace(site, " hook r ", " hook nobody "))
    one_broken(client, "a missing journal", None, lambda site: site_replace(site, "charter.db", "missing.db"))

    def lock(site):
        line = "import fcntl, sys, time; f = open(sys.argv[1], 'r+'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); time.sleep(600)"
        site.lock = subprocess.Popen([sys.executable, "-c", line, str(site.project / "charter.db")], stdout=subprocess.PIPE)
        site.lock.stdout.readline()

    one_broken(client, "a locked journal", None, lock)
    one_broken(client, "a server that is down", None,
               lambda site: site_replace(site, f"--db {site.project}/charter.db", "--server http://127.0.0.1:1"))


def site_replace(site, old, new):
    for file in site.files():
        text = file.read_text()
        assert old in text, (old, text)
        file.write_text(text.replace(old, new))


def one_broken(client, what, before, change, whole=False):
    # The plan is approved, so writing is legal, and only the broken hook can block it: a whole one lets it pass.
    site = Site(client, [shell(client, "cat allowed.txt > marker")], hook=before)
    site.charter("send", "r", "PLAN", '{"text": "x"}', "--as", "bot", "--kind", "agent", "--role", "agent")
    digest = next(word for word in site.charter("legal", "r", "--as", "ana", "--role", "boss", "--json").replace('"', " ").split()
                  if word.startswith("sha256:"))
    site.charter("send", "r", "APPROVE", json.dumps({"digest": digest}), "--as", "ana", "--role", "boss")
    change(site)
    code, out, err = site.client_run()
    made, says = (site.project / "marker").exists(), "a whole hook does not block" if whole else f"{what} blocks"
    if not check(made == whole and site.model.requests, f"{client}: {says}"):
        print(code, out[-2000:], err[-2000:], sep="\n")
    if hasattr(site, "lock"):
        site.lock.kill()
        site.lock.wait()
    site.close()


# Whether each client can be trusted with a file of hooks that has comments, and one that has commas behind the last entry: it
# calls the hook, or (Gemini CLI, commas) does not start. The others skip the file and use the tool, as `config::comments` of
# charter-guard says. The hook of opencode is a program.
READS = {"claude": [False, False], "codex": [False, False], "gemini": [True, True], "copilot": [False, False]}


def comments(client):
    if client not in READS:
        return
    found, said = [], []
    for change in (lambda text: text.replace("{", "{ // mine\n", 1), lambda text: ",\n}".join(text.rsplit("}", 1))):
        site = Site(client, [shell(client, "touch forbidden")])
        for file in site.files():
            file.write_text(change(file.read_text()))
        said += site.client_run()
        found.append(not (site.project / "forbidden").exists())
        site.close()
    if not check(found == READS[client], f"{client}: hooks in a file with comments, with commas at the end: {found}"):
        print(*(str(part)[-1500:] for part in said), sep="\n")


PARTS = {"decides": decides, "waits": waits, "outcomes": outcomes, "comments": comments, "broken": broken}


def install(clients):
    CLIENTS.mkdir(parents=True, exist_ok=True)
    wanted = ["node@22"] + [PACKAGES[client] for client in clients]
    missing = [name for name in wanted if not (CLIENTS / "node_modules" / name[:name.rindex("@")]).exists()]
    if missing:
        # Newer versions of npm run install scripts of named packages only; older ones ignore the option.
        (CLIENTS / "package.json").write_text(json.dumps({"private": True, "allowScripts": dict.fromkeys(
            [name[:name.rindex("@")] for name in wanted], True)}))
        subprocess.run(["npm", "install", "--prefix", str(CLIENTS), "--no-audit", "--no-fund", *wanted], check=True)


def main():
    if os.environ.get("CHARTER_REAL_CLIENTS") != "1":
        raise SystemExit("skipped: set CHARTER_REAL_CLIENTS=1")
    clients = [name for name in sys.argv[1:] if name in PACKAGES] or list(PACKAGES)
    parts = [name for name in sys.argv[1:] if name not in PACKAGES] or list(PARTS)
    install(clients)
    for client in clients:
        code, out, _ = run([str(CLIENTS / "node_modules/.bin" / client), "--version"], ROOT, {**os.environ})
        print(f"{client} {out.strip()}")
        for part in parts:
            PARTS[part](client)
    if failures:
        raise SystemExit(f"{len(failures)} failed: {failures}")


main()
