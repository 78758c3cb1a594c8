#!/usr/bin/env bash
# From a clean clone to target/canister/automaton.wasm.gz and .did. Needs Rust and rustup; arguments go to `canister-build`.
set -euo pipefail
cd "$(dirname "$0")/.."
exec cargo run --quiet --package charter-canister-build --bin canister-build -- "$@"
