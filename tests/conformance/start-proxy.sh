#!/bin/sh
# mcpx as the kit's adapter starts it on the client leg: start-proxy.sh PORT CONFIG.json
# CONFIG.json names the suite's mock server, which is the only upstream. Every start has folders of
# its own beside CONFIG.json, because the suite may run several at once.
set -eu
port=$1 config=$2
folder=$(dirname "$config")
url=$(node -p 'JSON.parse(require("fs").readFileSync(process.argv[1], "utf8")).url' "$config")
cat > "$folder/mcpx.toml" <<TOML
[http]
listen = "127.0.0.1:$port"
open = true

[servers.up]
url = "$url"
scope = "global"
expose = "passthrough"
prefix = ""

[expose]
mode = "passthrough"
list_wait = "15s"
TOML
export MCPX_STATE_DIR="$folder/state" MCPX_RUNTIME_DIR="$folder/run" MCPX_LOG=debug
exec "$MCPX" --config "$folder/mcpx.toml" daemon
