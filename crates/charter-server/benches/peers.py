#!/usr/bin/env python3
"""Durable steps per second of Charter, LangGraph and DBOS, in turns on the same machine and disk.

    python3 -m venv VENV
    VENV/bin/pip install langgraph langgraph-checkpoint-sqlite dbos
    VENV/bin/python crates/charter-server/benches/peers.py [quick]

A job has six steps that do next to nothing, one after the other; what a step returned is durable
before the next one begins. One job at a time, and eight at a time. Files are in the temporary folder;
TMPDIR selects another disk.

- charter, embedded: a run whose states invoke an actor of the host; http: a client sends an event
  for each step. Both with `synchronous=FULL` of SQLite.
- langgraph: a graph of six nodes with its SqliteSaver, a thread id for each job, with
  `durability="sync"` and, as another row, the default `async`. It leaves SQLite's own setting
  (`synchronous=FULL` in WAL mode).
- dbos: a workflow that calls six steps, with its system database in a SQLite file.
"""

import json
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import typing
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[3]
QUICK = "quick" in sys.argv[1:]
ROUNDS = 2 if QUICK else 3
JOBS = 16 if QUICK else 80
STEPS = 6


def charter():
    """Rates by name and number of jobs at once, from the bench of charter-server."""
    command = ["cargo", "bench", "-q", "-p", "charter-server", "--bench", "load", "--", "steps"]
    found = subprocess.run(command + (["quick"] if QUICK else []), cwd=ROOT, check=True, capture_output=True, text=True)
    rates = {}
    for line in found.stdout.splitlines():
        if line.startswith("{"):
            one = json.loads(line)
            rates[f"charter {one['name']}", one["at_once"]] = one["steps_per_second"]
    return rates


def timed(job, at_once):
    """Steps per second of JOBS jobs."""
    begin = time.perf_counter()
    if at_once == 1:
        for number in range(JOBS):
            job(number)
    else:
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(job, range(JOBS)))
    return JOBS * STEPS / (time.perf_counter() - begin)


def langgraph(folder):
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph

    class State(typing.TypedDict):
        done: int

    graph = StateGraph(State)
    names = [f"s{n}" for n in range(STEPS)]
    for name in names:
        graph.add_node(name, lambda state: {"done": state["done"] + 1})
    for one, next_one in zip([START, *names], [*names, END]):
        graph.add_edge(one, next_one)
    rates = {}
    for durability in ["sync", "async"]:
        for at_once in [1, 8]:
            file = os.path.join(folder, f"langgraph-{durability}-{at_once}.db")
            connection = sqlite3.connect(file, check_same_thread=False)
            app = graph.compile(checkpointer=SqliteSaver(connection))

            def job(number):
                config = {"configurable": {"thread_id": str(number)}}
                assert app.invoke({"done": 0}, config, durability=durability)["done"] == STEPS

            job("warm")
            rates[f"langgraph {durability}", at_once] = timed(job, at_once)
            count = connection.execute("SELECT count(*) FROM checkpoints").fetchone()[0]
            assert count >= (JOBS + 1) * STEPS, f"{count} checkpoints"
            connection.close()
    return rates


def dbos(folder):
    from dbos import DBOS

    file = os.path.join(folder, "dbos.db")
    DBOS(config={"name": "bench", "system_database_url": f"sqlite:///{file}", "log_level": "ERROR", "run_admin_server": False})

    @DBOS.step()
    def step(number):
        return number + 1

    @DBOS.workflow()
    def six():
        done = 0
        for _ in range(STEPS):
            done = step(done)
        return done

    DBOS.launch()

    def job(_):
        assert six() == STEPS

    job(0)
    rates = {("dbos", at_once): timed(job, at_once) for at_once in [1, 8]}
    DBOS.destroy()
    count = sqlite3.connect(file).execute("SELECT count(*) FROM operation_outputs").fetchone()[0]
    assert count >= 2 * JOBS * STEPS, f"{count} outputs of steps"
    return rates


def alone(name):
    """One peer in a process of its own, so that nothing of the others is loaded."""
    with tempfile.TemporaryDirectory() as folder:
        rates = {"langgraph": langgraph, "dbos": dbos}[name](folder)
    print(json.dumps([[*key, rate] for key, rate in rates.items()]))


def main():
    for name in ["langgraph", "dbos"]:
        if name in sys.argv[1:]:
            return alone(name)
    rates = {}
    for _ in range(ROUNDS):
        found = charter()
        for name in ["langgraph", "dbos"]:
            command = [sys.executable, __file__, name] + (["quick"] if QUICK else [])
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
            found.update({(peer, at_once): rate for peer, at_once, rate in json.loads(said)})
        for key, rate in found.items():
            rates.setdefault(key, []).append(rate)
    middle = {key: statistics.median(values) for key, values in rates.items()}
    for at_once in [1, 8]:
        print(f"\n{at_once} at a time, steps/s (median of {ROUNDS} rounds; each round)")
        for (name, count), rate in sorted(middle.items(), key=lambda item: -item[1]):
            if count == at_once:
                each = ", ".join(f"{value:.0f}" for value in rates[name, count])
                print(f"  {name:<18} {rate:>9.0f}   ({each})")
        for ours in ["charter embedded", "charter http"]:
            theirs = {name: rate for (name, count), rate in middle.items() if count == at_once and "charter" not in name}
            shown = ", ".join(f"{middle[ours, at_once] / rate:.1f} x {name}" for name, rate in theirs.items())
            print(f"  {ours}: {shown}")


main()
