#!/usr/bin/env bash
# Proof that the search bites: every patch in tests/mutations breaks one rule of the core, and `windtunnel fuzz` has to find
# it. It works on a copy, prints a row of docs/FUZZ.md for each patch, and fails where one is not found.
#
#   tests/mutations.sh                       all of them, about two minutes each: the core is built anew every time
#   tests/mutations.sh tests/mutations/05*   these
#
# STEPS is how many steps are searched at most for each (default: 5,000,000), SEED the seed of the first world (1), and
# MUTATIONS_TARGET a folder for what is built, to be used again.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
steps=${STEPS:-5000000}
seed=${SEED:-1}
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
export CARGO_TARGET_DIR=${MUTATIONS_TARGET:-$copy/target}
patches=("$@")
if [ ${#patches[@]} -eq 0 ]; then
  patches=(tests/mutations/*.patch)
fi

mkdir "$copy/tree"
git ls-files -z | xargs -0 tar -cf - | tar -xf - -C "$copy/tree"
cd "$copy/tree"

echo "| mutation | breaks | found as | worlds | steps |"
echo "|---|---|---|---|---|"
missed=0
for patch in "${patches[@]}"; do
  name=$(basename "$patch" .patch)
  breaks=$(sed -n 's/^Breaks: //p' "$root/$patch")
  git apply --unidiff-zero "$root/$patch"
  cargo build --locked --quiet
  code=0
  "$CARGO_TARGET_DIR/debug/windtunnel" fuzz --seed "$seed" --steps "$steps" --first --format csv --quiet \
    --out "$copy/found" > "$copy/out.csv" || code=$?
  git apply --unidiff-zero --reverse "$root/$patch"
  if [ "$code" -eq 1 ]; then
    tail -n +2 "$copy/out.csv" | head -1 |
      sed -E "s/^\"(.*)\",[0-9]+,[0-9]+,([0-9]+),([0-9]+),.*$/| $name | $breaks | \1 | \2 | \3 |/"
  else
    echo "| $name | $breaks | not found | | |"
    missed=1
  fi
done
exit "$missed"
