"""Dependencies: the arrows between our crates, the licenses and two features of the others. Standard library only."""
import json
import pathlib
import re
import subprocess
import sys

# The arrows of ARCHITECTURE.md: what each crate may depend on, and does.
ARROWS = {
    "charter-expr": "",
    "charter-kernel": "expr",
    "charter-format": "expr kernel",
    "charter-diagram": "kernel",
    "charter-interop": "expr format kernel",
    "charter-journal": "expr kernel",
    "charter-check": "expr format kernel scenario",
    "charter-scenario": "expr format kernel run",
    "charter-process": "",
    "charter-workspace": "kernel process",
    "charter-run": "expr journal kernel",
    "charter-actors": "expr format journal kernel process run workspace",
    "charter-runtime": "actors expr format interop journal kernel run",
    "charter-restate": "actors journal kernel models run runtime server",
    "charter-guard": "expr journal kernel runtime workspace",
    "charter-local": "actors guard journal kernel runtime",
    "charter-remote": "actors expr journal kernel runtime",
    "charter-mcp": "actors expr format guard journal kernel runtime scenario",
    "charter-models": "actors expr kernel process",
    "charter-typed": "format kernel run",
    "charter-automaton": "actors kernel typed",
    "charter-canister": "automaton expr format journal kernel run",
    "charter": "actors check diagram expr format interop journal kernel run runtime",
    "charter-server": "actors check diagram expr format guard journal kernel mcp runtime scenario",
    "charter-cli": "actors automaton check diagram expr format guard interop journal kernel local mcp models process remote runtime scenario server",
    "charter-icp-host": "",
    "charter-canister-build": "icp-host",
    "charter-peers": "",
    "payment-typed": "format kernel typed",
    "charter-fuzz": "expr format interop journal kernel scenario workspace",
    "charter-test-disk": "",
    "charter-test-support": "format kernel",
    "charter-equivalence": "format journal kernel run test-support",
}
# Only tests may depend on these, and only those of the canister and of tools/ on the second group.
TEST_ONLY = {"charter-test-disk", "charter-test-support", "charter-equivalence"}
TOOLS = {"charter-icp-host", "charter-canister-build", "charter-peers"}
# Examples of the documentation.
EXAMPLES = {"payment-typed"}
# Not among the default members.
NOT_DEFAULT = {"charter-canister", "charter-restate", "charter-fuzz"} | TOOLS | EXAMPLES
# Licenses that may be combined with "Apache-2.0 OR MIT" in a binary.
LICENSES = {
    "MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "Unicode-3.0", "Unlicense", "0BSD", "CC0-1.0", "BSL-1.0",
    "MIT-0", "Apache-2.0 WITH LLVM-exception", "CDLA-Permissive-2.0", "blessing",
    # The engine that `fuzz/` uses, which is part of no other binary.
    "NCSA",
}

problems = []


def allowed(expression):
    """Whether an SPDX expression can be satisfied: one side of each OR, both sides of each AND."""
    expression = expression.replace("/", " OR ").strip()
    while expression.startswith("(") and expression.endswith(")") and expression.count("(") == 1:
        expression = expression[1:-1].strip()
    depth, ors, ands = 0, [], []
    for match in re.finditer(r"\(|\)| OR | AND ", expression):
        token = match.group()
        if token == "(":
            depth += 1
        elif token == ")":
            depth -= 1
        elif depth == 0:
            (ors if token == " OR " else ands).append((match.start(), match.end()))
    for splits, combine in ((ors, any), (ands, all)):
        if splits:
            pieces, start = [], 0
            for begin, end in splits:
                pieces.append(expression[start:begin])
                start = end
            pieces.append(expression[start:])
            return combine(allowed(piece) for piece in pieces)
    return expression in LICENSES


def sources(package):
    """The text of the library, the program and the build script of a package."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = list((folder / "src").rglob("*.rs")) + list(folder.glob("build.rs"))
    return "\n".join(path.read_text() for path in files)


metadata = json.loads(subprocess.check_output(["cargo", "metadata", "--format-version", "1", "--locked"]))
members, default = set(metadata["workspace_members"]), set(metadata["workspace_default_members"])
ours = {p["name"]: p for p in metadata["packages"] if p["id"] in members}

for package in metadata["packages"]:
    if package["name"] not in EXAMPLES and not allowed(package["license"] or ""):
        problems.append(f"{package['name']} {package['version']}: license `{package['license']}` is not on the list")

for name, package in ours.items():
    if name not in ARROWS and name not in TEST_ONLY:
        problems.append(f"{name}: not in `ARROWS`; add its arrows here and its line to ARCHITECTURE.md")
    if (package["id"] in default) == (name in NOT_DEFAULT):
        problems.append(f"{name}: wrong in `default-members` of the workspace")
    wanted = {word if word == "charter" else f"charter-{word}" for word in ARROWS.get(name, "").split()}
    found = set()
    for dependency in package["dependencies"]:
        target = dependency["name"]
        if target not in ours or target == name:
            continue
        if target in TOOLS and name not in TOOLS | {"charter-canister"}:
            problems.append(f"{name} depends on {target}: tools are for the canister")
        if dependency["kind"] == "dev":
            continue
        if target in TEST_ONLY and name not in TEST_ONLY:
            problems.append(f"{name} depends on {target} outside of its tests")
        found.add(target)
    text = sources(package)
    for target in found - wanted:
        problems.append(f"{name} depends on {target}: not an allowed arrow")
    for target in wanted - found:
        problems.append(f"{name} -> {target}: allowed, but not in its Cargo.toml")
    for target in found:
        if target.replace("-", "_") not in text:
            problems.append(f"{name} depends on {target}, but does not use it")

for name in ARROWS.keys() - ours.keys():
    problems.append(f"{name}: in `ARROWS`, but not a crate of the workspace")

# Two features of serde_json would change the type of a number or the order of a map; replay depends on both.
for node in metadata["resolve"]["nodes"]:
    if re.search(r"[/#]serde_json[@#]", node["id"]):
        for feature in {"preserve_order", "arbitrary_precision"} & set(node["features"]):
            problems.append(f"serde_json is built with `{feature}`: a dependency switched it on")

print("\n".join(problems))
sys.exit(1 if problems else 0)
