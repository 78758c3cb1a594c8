"""Runs on a Restate cluster of three nodes (replication 2), while each node is killed in turn.

    python3 .ci/restate_nodes.py                  2,000 events, some minutes
    RESTATE_EVENTS=20000 python3 .ci/restate_nodes.py

Not a step of CI: it takes minutes and three servers. Ports on the loopback. Each event is sent until it is answered, at
whichever node answers, and must be recorded once; all runs must be in the mirror, which must verify."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from restate import ROOT, TARGET, Process, eventually, server

EVENTS = int(os.environ.get("RESTATE_EVENTS", "2000"))
SENDERS, RUNS = 8, 16
NODES = range(3)

CHARTER = """
charter: 1
id: count
roles: {clerk: {}}
events: {ADD: {by: clerk}}
context: {n: 0}
initial: on
states: {on: {on: {ADD: {actions: {assign: {n: "= context.n + 1"}}}}}}
"""


def ingress(node):
    return f"http://127.0.0.1:{18080 + node}"


def admin(node):
    return f"http://127.0.0.1:{19070 + node}"


def config(node, folder):
    """The settings of a node; the first one makes the cluster."""
    fabric = [f"http://127.0.0.1:{15122 + other}" for other in NODES]
    file = folder / f"n{node}.toml"
    file.write_text(f"""
cluster-name = "charter"
node-name = "n{node}"
auto-provision = {"true" if node == 0 else "false"}
default-replication = 2
default-num-partitions = 4
listen-mode = "tcp"
bind-address = "127.0.0.1:{15122 + node}"
advertised-address = "{fabric[node]}"
rocksdb-total-memory-size = "512 MB"

[metadata-client]
addresses = {json.dumps(fabric)}

[ingress]
bind-address = "127.0.0.1:{18080 + node}"

[admin]
bind-address = "127.0.0.1:{19070 + node}"
""")
    return file


def post(url, body, timeout):
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return json.load(answer)


def client(*args, node=0):
    addresses = ["--ingress", ingress(node), "--admin", admin(node)]
    return subprocess.run([TARGET / "charter-restate", *addresses, *args], capture_output=True, text=True, timeout=300)


class Load:
    """Senders of events; each event has an id and is repeated until it is answered."""

    def __init__(self):
        self.next, self.answered, self.last, self.longest = 0, 0, time.monotonic(), 0.0
        self.lock, self.failed = threading.Lock(), None
        self.threads = [threading.Thread(target=self.send, args=(number,), daemon=True) for number in range(SENDERS)]

    def start(self):
        for thread in self.threads:
            thread.start()

    def send(self, number):
        node = number % len(NODES)
        while True:
            with self.lock:
                if self.next >= EVENTS:
                    return
                event, self.next = self.next, self.next + 1
            by = {"id": "clara", "roles": ["clerk"], "kind": "person", "auth": "local"}
            body = {"at": int(time.time() * 1000), "to": None, "type": "ADD", "data": "{}", "by": by, "id": f"e{event}",
                    "expected_seq": None}
            begin = time.monotonic()
            while True:
                try:
                    answer = post(f"{ingress(node)}/Run/c{event % RUNS}/event", body, 5)
                    if not answer["record"]:
                        self.failed = str(answer)
                        return
                    break
                except (OSError, urllib.error.URLError, json.JSONDecodeError):
                    node = (node + 1) % len(NODES)
                    time.sleep(0.05)
                    if time.monotonic() - begin > 120:
                        self.failed = f"event e{event} has no answer in 120 s"
                        return
            with self.lock:
                now = time.monotonic()
                self.longest, self.last = max(self.longest, now - self.last), now
                self.answered += 1

    def reaches(self, count):
        if self.failed:
            raise SystemExit(self.failed)
        return self.answered >= min(count, EVENTS)


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="charter-restate-nodes-"))
    (folder / "count.yaml").write_text(CHARTER)
    nodes = [Process([server(), "-c", config(node, folder), "--base-dir", f"data{node}"], folder, f"n{node}") for node in NODES]
    endpoint = None
    try:
        begin = time.monotonic()

        def together():
            try:
                with urllib.request.urlopen(f"{ingress(2)}/restate/health", timeout=2):
                    return True
            except OSError:
                return False

        eventually("three nodes", together, 120)
        serve = [TARGET / "charter-restate", "--ingress", ingress(0), "--admin", admin(0), "serve", "count.yaml"]
        endpoint = Process([*serve, "--listen", "127.0.0.1:19080"], folder, "endpoint")
        eventually("an endpoint", lambda: '"endpoint"' in (folder / "endpoint.log").read_text(), 120)
        for run in range(RUNS):
            started = client("start", folder / "count.yaml", "--run", f"c{run}", "--as", "clara", "--role", "clerk")
            if started.returncode:
                raise SystemExit(started.stderr)
        print(f"ok: three nodes serve after {time.monotonic() - begin:.0f} s", flush=True)
        load = Load()
        load.last, begin = time.monotonic(), time.monotonic()
        load.start()
        for node in NODES:
            eventually("events", lambda: load.reaches(EVENTS * (node + 1) // 5), 600)
            nodes[node].kill()
            before = load.answered
            eventually("events without a node", lambda: load.reaches(before + EVENTS // 20), 180)
            nodes[node].start()
            print(f"ok: node {node} was killed after {before} events; longest wait so far {load.longest:.1f} s", flush=True)
        eventually("all events", lambda: load.reaches(EVENTS), 900)
        rate = EVENTS / (time.monotonic() - begin)
        db = folder / "mirror.db"
        eventually("a mirror", lambda: client("mirror", "--db", db).returncode == 0, 120)
        subprocess.run([TARGET / "charter", "verify", db], check=True, stdout=subprocess.DEVNULL)
        rows = subprocess.run([TARGET / "charter", "--json", "sql", db, "SELECT count(*) AS n, count(DISTINCT id) AS ids FROM records WHERE type = 'ADD'"],
                              check=True, capture_output=True, text=True)
        found = json.loads(rows.stdout)
        if found != {"n": EVENTS, "ids": EVENTS}:
            raise SystemExit(f"{EVENTS} events, but {found}")
        print(f"ok: {EVENTS} events, each recorded once; {rate:.0f} events/s; longest wait {load.longest:.1f} s; the mirror verifies")
    finally:
        for process in [endpoint, *nodes]:
            if process and process.child.poll() is None:
                process.kill()


if __name__ == "__main__":
    sys.exit(main())
