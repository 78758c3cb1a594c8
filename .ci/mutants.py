"""Mutation testing of kernel, journal and run core: a seeded sample. Needs cargo-mutants and cargo-nextest.

    .ci/mutants.py                      # all 200 mutants of the sample
    .ci/mutants.py --from 25 --to 50    # some of them, by their place in the sample
    .ci/mutants.py --list               # print them, run nothing
    .ci/mutants.py -- --in-place        # what follows `--` goes to cargo mutants

A mutant is one small change of the code; it survives if the tests of its own package pass with it.
"""
import argparse
import json
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = ["charter-kernel", "charter-journal", "charter-run"]
# Text for people: a test of each would only repeat it.
EXCLUDED = r"<impl (\w+::)*(Display|Debug) for"
TOOL = ["cargo", "mutants", *(f"--package={package}" for package in PACKAGES), f"--exclude-re={EXCLUDED}"]
# What the slowest test of an unchanged package takes, several times: a mutant that never ends is caught by it.
SECONDS_A_TEST = 60
NEXTEST = f'[profile.default]\nslow-timeout = {{ period = "{SECONDS_A_TEST}s", terminate-after = 1 }}\n'


def sample(seed, size):
    """Draws mutants in a fixed order; each package has its share because all are drawn from at once."""
    listed = subprocess.run([*TOOL, "--list", "--json"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    names = sorted(mutant["name"] for mutant in json.loads(listed))
    return random.Random(seed).sample(names, min(size, len(names))), len(names)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--size", type=int, default=200, help="number of mutants in the sample")
    parser.add_argument("--from", dest="start", type=int, default=0, metavar="PLACE")
    parser.add_argument("--to", dest="end", type=int, default=None, metavar="PLACE", help="the first one not run")
    parser.add_argument("--list", action="store_true", help="print the mutants")
    parser.add_argument("--output", default="target", metavar="FOLDER", help="where `mutants.out` is written")
    parser.add_argument("rest", nargs="*", help="options of cargo mutants, after `--`")
    options = parser.parse_args()

    drawn, total = sample(options.seed, options.size)
    chosen = list(enumerate(drawn))[options.start:options.end]
    print(f"{len(chosen)} of a sample of {len(drawn)} of {total} mutants, seed {options.seed}", file=sys.stderr)
    if options.list:
        print(*(f"{place}\t{name}" for place, name in chosen), sep="\n")
        return 0
    (ROOT / "target").mkdir(exist_ok=True)
    nextest = ROOT / "target" / "mutants-nextest.toml"
    nextest.write_text(NEXTEST)
    command = [*TOOL, "--test-tool=nextest", f"--cargo-test-arg=--config-file={nextest}", f"--output={options.output}",
               # Deleted struct fields ignore `--re` (cargo-mutants 27.1, issue 632): without the other files there are few.
               *(f"--file={file}" for file in sorted({name.split(":")[0] for _, name in chosen})),
               *(f"--re=^{re.escape(name)}$" for _, name in chosen), *options.rest]
    return subprocess.run(command, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
