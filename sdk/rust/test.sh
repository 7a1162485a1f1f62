#!/bin/sh
# Tests the crate and runs the conformance checks. Needs no network.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here"
cargo clippy --offline --all-targets -- -D warnings
cargo test --offline
cargo build --offline --release --examples --benches
target=$(cargo metadata --offline --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
python3 ../conformance/run.py -- "$target/release/examples/conformance"
