"""Runs on a real Restate server (from npm), while the server and the endpoint are killed.

    python3 .ci/restate.py            ten kills, about a minute
    RESTATE_KILLS=150 python3 .ci/restate.py

Standard library only; ports on the loopback. Every event must be recorded once, every run must end,
an interrupted call that must not be repeated must be `unknown`, and the mirror must verify: each
record is what the kernel computes for its input, as on the embedded host."""
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from npm import install

ROOT = pathlib.Path(__file__).resolve().parent.parent
KILLS = int(os.environ.get("RESTATE_KILLS", "10"))
SEED = int(os.environ.get("RESTATE_SEED", "1"))
VERSION = "1.7.12"
BUILT = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
TARGET, INSTALLED = BUILT / "debug", BUILT / "restate"

CHARTER = """
charter: 1
id: work
roles: {clerk: {}, boss: {}}
events: {ADD: {by: clerk}, GO: {by: clerk}, STOP: {by: clerk}, ONCE: {by: clerk}}
context: {n: 0, out: null, error: null}
actors:
  greet: {kind: exec, command: [sh, -c, "sleep 0.2; echo '{}'"], idempotent: true}
  flaky: {kind: exec, command: [sh, -c, "exit 3"], idempotent: true, retry: {attempts: 3, backoff: 200ms}}
  slow: {kind: exec, command: [sh, -c, "sleep 60; echo 1"], idempotent: true}
  once: {kind: exec, command: [sh, -c, "echo x >> BEGUN; sleep 6; echo 1"]}
  ask: {kind: human, title: Is it right?, by: boss}
initial: idle
states:
  idle:
    on:
      ADD: {actions: {assign: {n: "= context.n + 1"}}}
      GO: greeting
      STOP: slow
      ONCE: once
  greeting: {invoke: {src: greet, onDone: trying, onError: failed}}
  trying: {invoke: {src: flaky, onDone: failed, onError: asking}}
  asking: {invoke: {src: ask, onDone: pause, onError: failed}}
  pause: {after: {1s: done}}
  slow: {invoke: {src: slow, onDone: failed, onError: failed}, on: {STOP: done}}
  once: {invoke: {src: once, onDone: done, onError: {target: failed, actions: {assign: {error: "= event.error"}}}}}
  done: {type: final}
  failed: {type: final}
"""


def server():
    """The program of the server; npm installs it."""
    found = list(INSTALLED.glob("node_modules/@restatedev/restate-server-*/bin/restate-server"))
    if not found:
        install(INSTALLED, [f"@restatedev/restate-server@{VERSION}"])
        found = list(INSTALLED.glob("node_modules/@restatedev/restate-server-*/bin/restate-server"))
    return found[0]


class Process:
    """A program that is started again when it has been killed."""

    def __init__(self, command, folder, name):
        self.command, self.folder, self.log = command, folder, open(folder / f"{name}.log", "ab")
        self.start()

    def start(self):
        env = {**os.environ, "DO_NOT_TRACK": "1", "TMPDIR": str(self.folder)}
        self.child = subprocess.Popen(self.command, cwd=self.folder, stdout=self.log, stderr=self.log, env=env)

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()


def client(*args, code=0):
    """A command of the client; the lines that it prints, as JSON where they are."""
    command = [TARGET / "charter-restate", *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    if done.returncode != code:
        raise SystemExit(f"{args}: exit {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
    return [json.loads(line) if line.startswith("{") else line for line in done.stdout.splitlines()]


def send(run, kind, ident, code=0):
    return client("send", run, kind, "--id", ident, "--as", "clara", "--role", "clerk", code=code)[0]


def eventually(what, holds, seconds=90):
    end = time.monotonic() + seconds
    while not (found := holds()):
        if time.monotonic() > end:
            raise SystemExit(f"not within {seconds} s: {what}; see the logs")
        time.sleep(0.2)
    return found


def status(run):
    return next((info["status"] for info in client("runs") if info["run"] == run), None)


def records(db, run):
    command = [TARGET / "charter", "log", run, "--json", "--db", db]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def steps(folder):
    """One run through everything that a host does."""
    client("start", folder / "work.yaml", "--run", "all", "--as", "clara", "--role", "clerk")
    send("all", "GO", "go")
    task = eventually("the task of a person", lambda: [t for t in client("tasks") if t["run"] == "all"])[0]
    client("answer", task["effect"], '"yes"', "--as", "eve", code=2)
    client("answer", task["effect"], '"yes"', "--as", "bob", "--role", "boss")
    eventually("the end of `all`, by a timer", lambda: status("all") == "done")
    if [t for t in client("tasks") if t["run"] == "all"]:
        raise SystemExit("an answered task is still open")
    print("ok: exec, retries, a task of a person, a timer", flush=True)
    client("start", folder / "work.yaml", "--run", "stopped", "--as", "clara", "--role", "clerk")
    send("stopped", "STOP", "a")
    eventually("the call", lambda: running("sleep 60"))
    send("stopped", "STOP", "b")
    eventually("the end of a call that is not awaited", lambda: not running("sleep 60"), 20)
    print("ok: a call that the run no longer waits for is stopped", flush=True)


def running(words):
    for cmdline in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if words in cmdline.read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                return True
        except OSError:
            pass
    return False


def kills(folder, both):
    """Events while the server and the endpoint are killed."""
    draw, stop = random.Random(SEED), threading.Event()
    client("start", folder / "work.yaml", "--run", "counted", "--as", "clara", "--role", "clerk")
    sent, failed = [], []

    def sender():
        while not stop.is_set():
            ident = f"e{len(sent)}"
            try:
                send("counted", "ADD", ident)
            except BaseException as error:
                failed.append(str(error))
                return
            sent.append(ident)

    thread = threading.Thread(target=sender)
    thread.start()
    longest = 0.0
    for _ in range(KILLS):
        time.sleep(draw.uniform(0.2, 1.0))
        victims = draw.choice([both[:1], both[1:], both])
        before, begin = len(sent), time.monotonic()
        for victim in victims:
            victim.kill()
        for victim in victims:
            victim.start()
        eventually("an event after a kill", lambda: len(sent) > before + 1 or failed, 60)
        longest = max(longest, time.monotonic() - begin)
    stop.set()
    thread.join()
    if failed:
        raise SystemExit(failed[0])
    for ident in sent[:3] + sent[-3:]:
        send("counted", "ADD", ident)
    print(f"ok: {KILLS} kills, {len(sent)} events, each recorded once; longest wait {longest:.1f} s", flush=True)
    return len(sent)


def once(folder, endpoint):
    """A call that must not be repeated is not, when the process is killed that makes it."""
    client("start", folder / "work.yaml", "--run", "once", "--as", "clara", "--role", "clerk")
    send("once", "ONCE", "a")
    eventually("the call", lambda: (folder / "BEGUN").exists())
    endpoint.kill()
    endpoint.start()
    eventually("the end of `once`", lambda: status("once") == "done")
    if (folder / "BEGUN").read_text() != "x\n":
        raise SystemExit("a call that must not be repeated was repeated")


def remote(url, key, *args, code=0):
    """A command of `charter` that reaches the gateway; the objects that it prints."""
    env = {**os.environ, "CHARTER_SERVER": url, "CHARTER_KEY": key}
    done = subprocess.run([TARGET / "charter", "--json", *args], capture_output=True, text=True, timeout=120, env=env)
    if done.returncode != code:
        raise SystemExit(f"{args}: exit {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def http(url, key, path, body=None):
    """A request to the gateway; the status and the JSON of its answer."""
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    request = urllib.request.Request(url + path, json.dumps(body).encode() if body is not None else None, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def gateway(folder):
    """The server of `charter serve` on the runs of the engine: keys, people, streams, kills."""
    key = {name: secret("key", name, "--role", role) for name, role in
           (("clara", "work/clerk"), ("bob", "work/boss"), ("ann", "admin"))}
    db, log = folder / "gateway.db", folder / "gateway.log"
    process = Process([TARGET / "charter-restate", "gateway", "work.yaml", "--listen", "127.0.0.1:0", "--db", db], folder, "gateway")

    def address():
        lines = [line for line in log.read_text().splitlines() if line.startswith("http://")]
        return lines[-1] if len(lines) > address.before else None

    address.before = 0
    try:
        url = eventually("the gateway", address)
        if http(url, None, "/v1/runs")[0] != 401:
            raise SystemExit("the gateway lets in who has no key")
        status_of, started = http(url, key["clara"], "/v1/runs", {"charter": "work", "run": "people", "input": None})
        if status_of not in (200, 201):
            raise SystemExit(f"not started: {status_of} {started}")
        remote(url, key["clara"], "send", "people", "GO", "--id", "go")
        task = eventually("the task in the inbox", lambda: http(url, key["bob"], "/v1/tasks")[1]["tasks"])[0]
        code, problem = http(url, key["clara"], "/v1/runs/people/answers", {"task": task["effect"], "output": "yes"})
        if code not in (403, 404, 409):
            raise SystemExit(f"somebody else answered the task: {code} {problem}")
        process.kill()
        address.before = log.read_text().count("http://")
        process.start()
        url = eventually("the gateway again", address)
        remote(url, key["bob"], "answer", task["effect"], '"yes"')
        # The rest is made by a timer: no request to the gateway tells it.
        eventually("the end of `people`", lambda: http(url, key["ann"], "/v1/runs/people")[1]["status"] == "done", 20)
        # Another client beside the gateway.
        client("start", folder / "work.yaml", "--run", "beside", "--as", "clara", "--role", "clerk")
        eventually("a run of another client", lambda: any(
            run["run"] == "beside" for run in http(url, key["ann"], "/v1/runs")[1]["runs"]), 20)
        code, refused = http(url, key["bob"], "/v1/runs/beside/events", {"type": "ADD", "data": {}})
        if (code, refused["code"]) != (403, "authority"):
            raise SystemExit(f"not refused: {code} {refused}")
        types = [record["event"]["type"] for record in http(url, key["ann"], "/v1/runs/people/records")[1]["records"]]
        if types[:2] != ["charter.start", "GO"]:
            raise SystemExit(f"the records of `people`: {types}")
        address.before = 0
        if len(http(url, key["ann"], "/v1/journal")[1]["head"]["hash"]) != 71:
            raise SystemExit("no head")
    finally:
        process.kill()
    subprocess.run([TARGET / "charter", "verify", db], check=True, stdout=subprocess.DEVNULL)
    print("ok: the gateway: keys, an inbox, runs of others, a kill; its copy verifies", flush=True)


def fred(folder):
    """`fred` with a person in the inbox, by the commands of `docs/serve.md`."""
    ana, bob = secret("key", "ana", "--role", "fred/founder"), secret("key", "bea", "--role", "fred/reviewer")
    log, question = folder / "fred.log", {"userId": "u1", "message": "Should we raise prices by 20 % for new customers?"}
    process = Process([TARGET / "charter-restate", "gateway", ROOT / "charters/fred", "--listen", "127.0.0.1:0", "--db",
                       folder / "fred.db"], folder, "fred")
    try:
        url = eventually("the gateway", lambda: [line for line in log.read_text().splitlines() if line.startswith("http://")])[0]
        for number in (1, 2):
            run = f"prices-{number}"
            code, answer = http(url, ana, "/v1/runs", {"charter": "fred", "run": run, "input": question})
            if code != 201:
                raise SystemExit(f"fred is not started: {code} {answer}")
            legal = eventually("what is legal", lambda: [
                event for event in http(url, bob, f"/v1/runs/{run}/legal")[1].get("events", []) if event["type"] == "HUMAN_APPROVED" and event["demands"]])[0]
            approve = {"type": "HUMAN_APPROVED", "data": {"digest": re.search(r"\"digest\": \"([^\"]*)", json.dumps(legal))[1]}}
            if (code := http(url, ana, f"/v1/runs/{run}/events", approve)[0]) != 403:
                raise SystemExit(f"ana approves what only a reviewer may: {code}")
            http(url, bob, f"/v1/runs/{run}/events", approve)
            eventually("the end", lambda: http(url, ana, f"/v1/runs/{run}")[1]["status"] == "done")
        # What `recall` has found: the decision of the first session.
        shown = json.dumps(http(url, ana, "/v1/runs/prices-2/records?limit=100")[1])
        if shown.count("fred.decision") < 1 or "HUMAN_APPROVED" not in shown:
            raise SystemExit("no decision")
        recalled = [record for record in http(url, ana, "/v1/runs/prices-2/records?limit=100")[1]["records"]
                    if record["event"]["type"] == "done.invoke.recall" and record["event"]["data"]]
        if not recalled:
            raise SystemExit("the second session does not remember the first")
    finally:
        process.kill()
    subprocess.run([TARGET / "charter", "verify", folder / "fred.db"], check=True, stdout=subprocess.DEVNULL)
    print("ok: fred with a reviewer, who remembers the session before", flush=True)


def secret(*args):
    """What a command of the client prints: the secret of a key."""
    return client(*args)[0].strip()


def status_says(folder, endpoint):
    """While no endpoint answers, `status` names the call that fails and those that wait behind it."""
    client("start", folder / "work.yaml", "--run", "waits", "--as", "clara", "--role", "clerk")
    endpoint.kill()
    senders = [threading.Thread(target=send, args=("waits", "ADD", ident)) for ident in ("a", "b")]
    for sender in senders:
        sender.start()
    eventually("a call that waits behind one that fails", lambda: {"backing-off", "lagging"} <= {
        line.split(" ")[0] for line in subprocess.run(
            [TARGET / "charter-restate", "status"], capture_output=True, text=True).stdout.splitlines()}, 40)
    endpoint.start()
    for sender in senders:
        sender.join()
    eventually("the end of it", lambda: subprocess.run([TARGET / "charter-restate", "status"], capture_output=True).returncode == 0)
    print("ok: `status` says what fails and what waits", flush=True)


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="charter-restate-"))
    (folder / "work.yaml").write_text(CHARTER.replace("BEGUN", str(folder / "BEGUN")))
    engine = Process([server(), "--base-dir", "data", "--bind-ip", "127.0.0.1", "--node-name", "n1"], folder, "server")
    endpoint = Process([TARGET / "charter-restate", "serve", "work.yaml", ROOT / "charters/fred"], folder, "endpoint")
    try:
        eventually("an endpoint", lambda: '"endpoint"' in (folder / "endpoint.log").read_text())
        steps(folder)
        gateway(folder)
        fred(folder)
        count = kills(folder, [engine, endpoint])
        once(folder, endpoint)
        status_says(folder, endpoint)
        db = folder / "mirror.db"
        client("mirror", "--db", db)
        client("mirror", "--db", db)
        subprocess.run([TARGET / "charter", "verify", db], check=True, stdout=subprocess.DEVNULL)
        counted = [r for r in records(db, "counted") if r["event"]["type"] == "ADD"]
        idents = [r["id"] for r in counted]
        if len(idents) != count or len(set(idents)) != count:
            raise SystemExit(f"{count} events have {len(idents)} records, {len(set(idents))} ids")
        error = [r for r in records(db, "once") if "unknown" in json.dumps(r["event"])]
        if len(error) != 1:
            raise SystemExit("the interrupted call is not `unknown`")
        print("ok: an interrupted call is `unknown`; the mirror verifies", flush=True)
        if client("status") != ["nothing is paused, failing or lagging"]:
            raise SystemExit("something is paused, failing or lagging")
    finally:
        for process in (endpoint, engine):
            process.kill()
    print("7 passed, 0 failed")


if __name__ == "__main__":
    sys.exit(main())
