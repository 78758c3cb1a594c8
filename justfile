# What CI does, by hand: `just --list`. Each recipe is one step of `.ci/run`.

# Show the recipes
default:
    @just --list

# Everything CI checks, in its order
ci:
    .ci/run

# Tests of the default members: everything but the canister and tools/
test:
    cargo test

# Tests of the whole workspace, property tests with their full number of cases
test-all:
    .ci/run tests

# Formatting, lints and documentation
lint:
    .ci/run lint

# Dependency arrows, licenses, words, line lengths
tidy:
    .ci/run tidy

# `charter check` and `charter test` for the bundled charters
charters:
    .ci/run charters

# WebAssembly builds and the Candid interface of the canister
wasm:
    .ci/run wasm

# Agents over MCP: the conformance suite and the inspector, from npm
mcp:
    .ci/run mcp

# Fuzz targets, 30 seconds each
fuzz:
    .ci/run fuzz

# What takes too long for CI: each fuzz target for an hour, 50,000 schedules on a disk that fails
nightly:
    fuzz/run 3600
    FAULTY_DISK_SEED=2000 FAULTY_DISK_CASES=50000 cargo test --release -p charter-journal --lib faulty_disk

# Three Restate nodes, each killed in turn, and 150 kills of one node, about an hour
restate:
    cargo build -p charter-restate -p charter-cli
    RESTATE_KILLS=150 python3 .ci/restate.py
    RESTATE_EVENTS=20000 python3 .ci/restate_nodes.py

# Mutation testing of kernel, journal and run core: a sample of 200, hours
mutants *ARGS:
    python3 .ci/mutants.py {{ARGS}}

# Benchmarks beside their peers
bench:
    cargo bench -p charter-peers
    cargo bench -p charter-journal -- quick

# The release binary, as packages ship it
dist:
    cargo build --profile dist --locked --bin charter
