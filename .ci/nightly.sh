#!/bin/sh
# Checks that take too long for every push: mutations, long simulations, other toolchains, sanitizers.
# A step whose tools are not installed is skipped with a message.
set -eu
cd "$(dirname "$0")/.."
log=$(mktemp)
built=$(mktemp -d)
trap 'rm -rf "$log" "$built"' EXIT
step() {
    echo "== $*"
    { "$@" 2>&1 || echo "FAILED: $*"; } | tee -a "$log"
}
has() { command -v "$1" >/dev/null 2>&1 || { echo "skipped: $1 is not there" | tee -a "$log"; return 1; }; }

step python3 tests/planted/run.py
# The checks of conformance must notice each field of the protocol that is left out.
step cc -std=c99 -O2 -pthread sdk/c/tests/conformance.c -o "$built/conformance"
step python3 sdk/conformance/left_out.py "$built/conformance"
step cargo test --release --package scruple-core --test stats -- --ignored --nocapture
# Parsers of foreign text: many more damaged inputs than in every push, and other ones each day.
SCRUPLE_FUZZ_TRIES=20000 SCRUPLE_FUZZ_SEED=$(date +%Y%m%d)
export SCRUPLE_FUZZ_TRIES SCRUPLE_FUZZ_SEED
step cargo test --workspace damaged
if has cargo-deny; then step cargo deny check; fi

# The oldest supported compiler.
oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if has rustup; then step rustup run --install "$oldest" cargo check --workspace --locked; fi

# The other architecture: cross-compiled; the tests of the core and the C library of the SDK run in an emulator.
if has aarch64-linux-gnu-gcc && has qemu-aarch64-static; then
    step aarch64-linux-gnu-gcc -std=c99 -O2 -static -pthread sdk/c/tests/conformance.c -o "$built/aarch64"
    step python3 sdk/conformance/run.py -- qemu-aarch64-static "$built/aarch64"
    other=aarch64-unknown-linux-gnu
    rustup target add "$other"
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
    step cargo build --target "$other" --package scruple
    step cargo test --target "$other" --package scruple-stats --package scruple-core
fi

# The C library of the SDK under the sanitizers of memory, of undefined behaviour and of threads.
export TSAN_OPTIONS=halt_on_error=1
for sanitizer in address undefined thread; do
    step gcc -std=c99 -O1 -g -pthread "-fsanitize=$sanitizer" -fno-sanitize-recover=all \
        sdk/c/tests/conformance.c -o "$built/$sanitizer"
    step python3 sdk/conformance/run.py -- "$built/$sanitizer"
done

if grep -q '^FAILED: ' "$log"; then grep '^FAILED: ' "$log"; exit 1; fi
