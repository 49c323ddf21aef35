#!/usr/bin/env bash
# Everything that has to hold before a change is good: format, lints, documentation, tests, and every scenario with its
# expectations, through the program as users get it, and the daemon with a real llama-server. Needs Rust and Python 3; takes
# what it needs from the registries of Rust, Python and, where it may, Debian.
set -euo pipefail
cd "$(dirname "$0")"
export RUSTDOCFLAGS="-D warnings"

step() {
  echo "== $*"
  "$@"
}

step cargo fmt --all --check
step cargo clippy --workspace --all-targets --locked -- -D warnings
# Nothing runs for a Mac here, but its code is read by the compiler where the target's library can be had.
if timeout 120 rustup target add aarch64-apple-darwin; then
  step cargo check --workspace --target aarch64-apple-darwin --locked
else
  echo "== the code for a Mac was not compiled: no standard library for aarch64-apple-darwin can be had here"
fi
step cargo doc --workspace --no-deps --document-private-items --locked
step cargo test --workspace --locked
step cargo build --release --locked
step ./target/release/windtunnel selftest
step ./target/release/windtunnel test scenarios
step ./target/release/windtunnel fuzz --seed 1 --steps 3000000
step ./target/release/windtunnel fuzz --for 10s
step tests/real/run.sh
