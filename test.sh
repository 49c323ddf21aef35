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
step cargo doc --workspace --no-deps --document-private-items --locked
step cargo test --workspace --locked
step cargo build --release --locked
step ./target/release/windtunnel selftest
step ./target/release/windtunnel test scenarios
step ./target/release/windtunnel fuzz --seed 1 --steps 3000000
step ./target/release/windtunnel fuzz --for 10s
step tests/real/run.sh
