"""Checks what STYLE.md says and a program can check: words, line lengths, references. Standard library only."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH = 100
MAX_LINES = 400

# Not prose of this repository: what charters and their tests say is data, and some files are generated or quote others.
SKIP = re.compile(r"(^|/)(LICENSE-|Cargo\.lock)|/tests/.*\.(jsonl|json|snap|toml|txt|scxml|xml|stdout|stderr)$|^schema/|/prompts/|/generated/|^docs/conformance\.md$")
# These name the words that they forbid.
QUOTES = {"STYLE.md", ".ci/tidy.py"}

# Phrases, in comments, documents, messages and test names. Case-insensitive.
PHRASES = [
    r"\b(?:take|takes|taken|taking|took) up\b", r"\bat work\b", r"\bwhoever\b", r"\bnothing to complain\b", r"\btold what\b",
    r"\b(?:comes|came|become|became) of (?:it|them|one|this|each)\b", r"\bwhat (?:came|comes|became) of\b", r"\bhas it that\b",
    r"\bthe door\b(?!`)", r"\btwice is once\b", r"\b(?:makes|made) again\b", r"\bstands? in for\b", r"\bit is asked for\b",
    r"(?<!there )\b(?:is|are) no (?:name|number|digest|record|charter|file|folder|run|snapshot|duration|time|text|part|error|reason)\b",
    r"\bwhat time it is\b", r"\bmakes? anew\b",
]
# British spellings, as parts of words.
SPELLINGS = (
    r"\b\w*(?:colour|behaviour|neighbour|honour|favour|labell|modell|cancelling|travell|catalogue|licence|serialis|canonicalis|"
    r"initialis|normalis|organis|recognis|optimis|minimis|maximis|summaris|synchronis|tokenis|authoris|analys(?:e\b|ed|ing)|judgement)\w*"
)
# Private words of earlier versions, as identifiers or parts of identifiers in Rust code.
IDENTIFIERS = [
    r"short_way", r"\blane\b", r"\bEssence\b|\bessence\b", r"\bLens\b", r"\bSituation\b|\bsituations?\b", r"\bTrail\b", r"\bEyes\b|\beyes\b",
    r"\bJudged\b", r"\bSkim\b|\bskim\b", r"\bMaking\b", r"\bArrived\b", r"\bLetter\b", r"\bMail\b", r"\bHappening\b|\bhappening\b",
    r"\bConduct\b|\bconduct\b", r"\bObjection\b", r"\bTally\b", r"\bWheel\b", r"\bBoxed\b", r"\bAsked\b", r"\bWanted\b", r"\bUnsayable\b",
    r"\bMOST_[A-Z]", r"\bai\b",
]
# Hosts leave number, time and sender of an envelope to charter-run; others use the constructors of `Envelope`. The kernel defines
# it, and the journal reads it back from a record.
ENVELOPE = re.compile(r"(?<!-> )(?<!struct )(?<!impl )\bEnvelope \{")
MAKE_ENVELOPES = ("crates/charter-kernel/", "crates/charter-run/", "crates/charter-journal/src/record/input.rs")
# Documents that are not in this repository, as design pages used to be cited.
ABSENT = [r"\(0\d(?:[,;)]|-\w)", r"(?<![\w.:/-])0\d-(?:product|architecture|language|interfaces|systems|quality|dependencies|canister)\b", r"\bissue #?\d+\b"]

problems = []


def report(name, number, text):
    problems.append(f"{name}:{number}: {text}")


def forbidden(name, number, line, patterns, what, flags=0):
    for pattern in patterns:
        found = re.search(pattern, line, flags)
        if found:
            report(name, number, f"{what}: {found.group()!r}")


def comment_of(line):
    """The comment of a Rust line that holds nothing else."""
    stripped = line.lstrip()
    return stripped if stripped.startswith("//") else None


def too_long(line):
    # A line that cannot be broken (a link, a path, a table row) may be longer.
    bare = re.sub(r"^\s*(?://[/!]?|[-*>#]|\d+\.)?\s*", "", line)
    return len(line) > WIDTH and " " in bare and not bare.startswith("|") and not re.search(r"https?://\S{60,}", line)


def rust(name, lines):
    if len(lines) > MAX_LINES:
        report(name, 1, f"{len(lines)} lines, at most {MAX_LINES}: split it by subject")
    fenced = False
    test = "/tests/" in name or name.endswith("/tests.rs")
    for number, line in enumerate(lines, 1):
        comment = comment_of(line)
        if comment is None:
            code = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line)
            forbidden(name, number, code, IDENTIFIERS, "private word (see STYLE.md)")
            test = test or code.startswith("#[cfg(test)]")
            if not test and not name.startswith(MAKE_ENVELOPES) and ENVELOPE.search(code):
                report(name, number, "an envelope built by hand: use `charter_run` or a constructor of `Envelope`")
            fenced = False
            continue
        if re.match(r"//[/!]\s*```", comment):
            fenced = not fenced
        elif not fenced and too_long(line):
            report(name, number, f"comment of {len(line)} columns, at most {WIDTH}")


def markdown(name, path, lines):
    fenced = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            continue
        if fenced or line.startswith("    "):
            continue
        if too_long(line):
            report(name, number, f"{len(line)} columns, at most {WIDTH}")
        for target in re.findall(r"\]\(([^)#\s]+)", line):
            if not re.match(r"[a-z]+:", target) and not (path.parent / target).exists():
                report(name, number, f"link to `{target}`, which does not exist")


def main():
    names = subprocess.check_output(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, text=True).splitlines()
    for name in names:
        path = ROOT / name
        if not path.is_file() or SKIP.search(name):
            continue
        if path.stat().st_size > 2_000_000:
            report(name, 1, "larger than 2 MB")
        if path.suffix not in {".rs", ".md", ".py", ".toml", ".sh"} and path.suffix != "":
            continue
        text = path.read_text(errors="replace")
        lines = text.splitlines()
        for number, line in enumerate(lines, 1):
            if name in QUOTES:
                break
            forbidden(name, number, line, [r"(?<![\w.])/work/"], "a path of the machine it was written on")
            forbidden(name, number, line, [r"\bTODO\b|\bFIXME\b|\bXXX\b"], "a reminder instead of work (do it, or write down what is missing; to quote the word, use lower case)")
            forbidden(name, number, line, PHRASES, "phrase (see STYLE.md)", re.IGNORECASE)
            forbidden(name, number, line, [SPELLINGS], "American spelling, please", re.IGNORECASE)
            for found in re.findall(r"(?<![\w/.-])docs/[\w/-]+\.md\b", line):
                if not (ROOT / found).exists():
                    report(name, number, f"`{found}` does not exist")
            if path.suffix in {".rs", ".md"}:
                forbidden(name, number, line, ABSENT, "reference to a document that is not here")
        if path.suffix == ".rs":
            rust(name, lines)
        elif path.name == "Cargo.toml" and re.search(r"\[lib\][^\[]*^test = false", text, re.MULTILINE):
            for source in sorted((path.parent / "src").rglob("*.rs")):
                if source.name != "main.rs" and re.search(r"#\[(?:test|cfg\(test\))\]", source.read_text()):
                    report(name, 1, f"`test = false`, but {source.relative_to(ROOT)} has tests, which do not run")
        elif path.suffix == ".md" and name not in QUOTES:
            markdown(name, path, lines)
    print("\n".join(problems))
    return 1 if problems else 0


sys.exit(main())
