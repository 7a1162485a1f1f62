#!/bin/sh
# Tests the crate and runs the conformance checks. Needs no network.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$here/../../target/sdk-rust}"
cargo fmt --check
cargo clippy --offline --all-targets -- -D warnings
cargo test --offline
cargo build --offline --release --example conformance
python3 ../conformance/run.py -- "$CARGO_TARGET_DIR/release/examples/conformance"
