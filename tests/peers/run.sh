#!/bin/bash
# mcpx between programs that nobody here wrote: hosts and upstreams on the official SDKs, opencode.
#   tests/peers/run.sh            installs what is missing, then runs everything against mcpx
#   tests/peers/run.sh --direct   the same without mcpx: shows that the harness itself is right
#   tests/peers/run.sh --help     how to run less
# MCPX names the binary (default target/release/mcpx). PEERS_DIR holds what is built (default
# target/peers). Needs Node >= 20, Python >= 3.10, a Rust toolchain, and the package registries.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
export PEERS_DIR=${PEERS_DIR:-$root/target/peers}
export MCPX=${MCPX:-$root/target/release/mcpx}
mkdir -p "$PEERS_DIR"

# Runs a command once for each state of a lock file.
once() {
  local stamp=$PEERS_DIR/$1.stamp lock=$2 sum
  sum=$(sha256sum < "$lock")
  if [ "$(cat "$stamp" 2>/dev/null)" != "$sum" ] || ! [ -e "$3" ]; then
    "${@:4}"
    echo "$sum" > "$stamp"
  fi
}
install_node() { (cd "$here/node" && npm ci --no-audit --no-fund --loglevel=error); }
install_python() {
  python3 -m venv --clear "$PEERS_DIR/venv"
  "$PEERS_DIR/venv/bin/pip" install --quiet --disable-pip-version-check \
    -r "$here/python/requirements.txt"
}
# nginx is unpacked, not installed: nothing of it is to run by itself.
fetch_nginx() {
  command -v nginx >/dev/null || [ -x "$PEERS_DIR/nginx/usr/sbin/nginx" ] && return
  command -v apt-get >/dev/null || return 0
  mkdir -p "$PEERS_DIR/nginx"
  (
    cd "$PEERS_DIR/nginx"
    apt-get download --quiet=2 nginx 2>/dev/null ||
      { apt-get update --quiet=2 && apt-get download --quiet=2 nginx 2>/dev/null; }
    dpkg-deb -x nginx_*.deb .
  ) || echo "nginx cannot be fetched here"
}
once node "$here/node/package-lock.json" "$here/node/node_modules" install_node
once python "$here/python/requirements.txt" "$PEERS_DIR/venv/bin/python" install_python
fetch_nginx
CARGO_TARGET_DIR=$PEERS_DIR/rmcp cargo build --quiet --locked \
  --manifest-path "$here/rmcp/Cargo.toml"

# Metrics and traces, read by the official packages; where less is asked for, not.
if [ $# -eq 0 ]; then "$PEERS_DIR/venv/bin/python" "$here/python/inside.py" "$MCPX"; fi

exec node "$here/run.mjs" "$@"
