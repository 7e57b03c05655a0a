#!/bin/bash
# mcpx in front of published servers: their types, a call of each of their tools, searches, tokens.
#   tests/catalogues/run.sh                installs what is missing, then checks everything
#   tests/catalogues/run.sh search tokens  only these parts (types, calls, search, tokens)
# MCPX names the binary (default target/release/mcpx). CATALOGUES_DIR holds what is installed
# (default target/catalogues). Needs Node >= 20, Python >= 3.10, git, and, to install, the registries.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
export CATALOGUES_DIR=${CATALOGUES_DIR:-$root/target/catalogues}
export MCPX=${MCPX:-$root/target/release/mcpx}
mkdir -p "$CATALOGUES_DIR"

# Runs a command once for each state of a lock file.
once() {
  local stamp=$CATALOGUES_DIR/$1.stamp lock=$2 sum
  sum=$(sha256sum < "$lock")
  if [ "$(cat "$stamp" 2>/dev/null)" != "$sum" ] || ! [ -e "$3" ]; then
    "${@:4}"
    echo "$sum" > "$stamp"
  fi
}
# No package runs anything of its own, so that none downloads a browser.
install_node() {
  cp "$here/node/package.json" "$here/node/package-lock.json" "$CATALOGUES_DIR/"
  (cd "$CATALOGUES_DIR" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
}
install_python() {
  python3 -m venv --clear "$CATALOGUES_DIR/venv"
  "$CATALOGUES_DIR/venv/bin/pip" install --quiet --disable-pip-version-check \
    -r "$here/python/requirements.txt"
}
once node "$here/node/package-lock.json" "$CATALOGUES_DIR/node_modules" install_node
once python "$here/python/requirements.txt" "$CATALOGUES_DIR/venv/bin/python" install_python

exec node "$here/run.mjs" "$@"
