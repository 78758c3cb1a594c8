"""Licences of the dependencies, and what the tree must never hold. Standard library only."""
import json
import pathlib
import re
import subprocess
import sys

# Licences that may be combined with "Apache-2.0 OR MIT" in a binary.
ALLOWED = {
    "MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "Unicode-3.0", "Unlicense", "0BSD", "CC0-1.0", "BSL-1.0",
    "MIT-0", "Apache-2.0 WITH LLVM-exception", "CDLA-Permissive-2.0", "blessing",
}
# Crates below another may not depend on it: the arrows of ARCHITECTURE.md.
ORDER = ["charter-expr", "charter-kernel", "charter-format", "charter-interop", "charter-diagram", "charter-typed", "charter-scenario", "charter-check", "charter-journal", "charter-workspace", "charter-actors", "charter-runtime", "charter-models", "charter-automaton", "charter-icp-host", "charter-canister-build", "charter-canister", "charter-server", "charter-cli"]

problems = []


def allowed(expression):
    """An SPDX expression: one side of each OR, every side of each AND."""
    expression = expression.replace("/", " OR ").strip()
    while expression.startswith("(") and expression.endswith(")") and expression.count("(") == 1:
        expression = expression[1:-1].strip()
    depth, parts, ands, start = 0, [], [], 0
    for match in re.finditer(r"\(|\)| OR | AND ", expression):
        token = match.group()
        if token == "(":
            depth += 1
        elif token == ")":
            depth -= 1
        elif depth == 0:
            (parts if token == " OR " else ands).append((match.start(), match.end()))
    for splits, combine in ((parts, any), (ands, all)):
        if splits:
            pieces, start = [], 0
            for begin, end in splits:
                pieces.append(expression[start:begin])
                start = end
            pieces.append(expression[start:])
            return combine(allowed(p) for p in pieces)
    return expression in ALLOWED


metadata = json.loads(subprocess.check_output(["cargo", "metadata", "--format-version", "1", "--locked"]))
workspace = set(metadata["workspace_members"])
for package in metadata["packages"]:
    licence = package["license"] or ""
    if not allowed(licence):
        problems.append(f"{package['name']} {package['version']}: licence `{licence}` is not on the list")
    if package["id"] in workspace and package["name"] in ORDER:
        for dependency in package["dependencies"]:
            up = dependency["name"] in ORDER and ORDER.index(dependency["name"]) >= ORDER.index(package["name"])
            if up and dependency["kind"] != "dev":
                problems.append(f"{package['name']} depends on {dependency['name']}, which stands above it")

# Two features of serde_json would change what a number or the order of a map is; replay depends on both.
for node in metadata["resolve"]["nodes"]:
    if re.search(r"[/#]serde_json[@#]", node["id"]):
        for feature in {"preserve_order", "arbitrary_precision"} & set(node["features"]):
            problems.append(f"serde_json is built with `{feature}`: a dependency switched it on")

files = subprocess.check_output(["git", "ls-files"], text=True).split("\n")
for name in filter(None, files):
    path = pathlib.Path(name)
    if not path.is_file():
        continue
    if path.stat().st_size > 2_000_000:
        problems.append(f"{name}: larger than 2 MB")
    if path.suffix in {".rs", ".md", ".yaml", ".toml", ".py", ".json", ".ts", ""} and name != ".ci/tree.py":
        text = path.read_text(errors="replace")
        for pattern, what in ((r"(?<![\w.])/work/", "a path of the machine it was written on"), (r"\bTODO\b|\bFIXME\b|\bXXX\b", "a reminder instead of work")):
            found = re.search(pattern, text)
            if found:
                problems.append(f"{name}: holds {what}: {found.group()!r}")

for problem in problems:
    print(problem)
sys.exit(1 if problems else 0)
