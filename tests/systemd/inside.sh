#!/usr/bin/env bash
# Runs inside the booted root folder, as root: each check says `ok …`; the first that fails ends all.
set -Eeuo pipefail
trap 'echo "FAILED at line $LINENO ($mode): $BASH_COMMAND"; journal | tail -40; echo failed >/mcpx-out/result' ERR
mode=start
systemctl --version >/mcpx-out/version
install -m 755 /mcpx-bin /usr/local/bin/mcpx
ada=$(id -u ada)

ok() { echo "ok $mode: $1"; }
# As the user whose daemon it is.
as_ada() {
    local run=/run/user/$ada more=()
    [ "$mode" = system ] && more=(MCPX_RUNTIME_DIR=/run/mcpx MCPX_STATE_DIR=/var/lib/mcpx)
    runuser -u ada -- env -i HOME=/home/ada PATH=/usr/local/bin:/usr/bin:/bin XDG_RUNTIME_DIR="$run" \
        DBUS_SESSION_BUS_ADDRESS="unix:path=$run/bus" "${more[@]}" "$@"
}
ctl() { if [ "$mode" = user ]; then as_ada systemctl --user "$@"; else systemctl "$@"; fi; }
journal() { journalctl --no-pager -o cat _SYSTEMD_UNIT="user@$ada.service" + _SYSTEMD_UNIT=mcpx.service; }
mcpx_install() {
    if [ "$mode" = user ]; then as_ada mcpx install --user "$@"
    else HOME=/home/ada mcpx --config /home/ada/.config/mcpx/config.toml install --system --run-as ada "$@"; fi
}
main_pid() { ctl show -P MainPID mcpx.service; }
call() { as_ada mcpx call up echo "text=$1"; }
# How many processes the service has.
in_unit() { cat /proc/[0-9]*/cgroup 2>/dev/null | grep -c '/mcpx.service$' || true; }
# Until it holds, for at most ten seconds.
until_ok() { for _ in $(seq 100); do if "$@" >/dev/null 2>&1; then return 0; fi; sleep 0.1; done; return 1; }
changed() { local pid; pid=$(main_pid); [ "$pid" != 0 ] && [ "$pid" != "$1" ]; }

# A host over stdio: one session, however often the daemon is another.
host_open() {
    coproc HOST { as_ada mcpx serve 2>>/mcpx-out/shim; }
    host_say '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"sh","version":"1"}}}'
    host_hear 1
    host_say '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    next=2
}
host_say() { printf '%s\n' "$1" >&"${HOST[1]}"; }
host_hear() { # the answer to a request
    local line
    while read -r -t 30 line <&"${HOST[0]}"; do
        case $line in *'"id":'"$1"[,}]*) answer=$line; return 0 ;; esac
    done
    return 1
}
host_calls() {
    next=$((next + 1))
    host_say '{"jsonrpc":"2.0","id":'$next',"method":"tools/call","params":{"name":"mcpx_call","arguments":{"namespace":"up","tool":"echo","arguments":{"text":"'"$1"'"}}}}'
    host_hear "$next"
    [[ $answer == *"\"$1\""* ]] || { echo "answer: $answer"; false; }
}
# A host over HTTP, the same.
http() {
    curl -sS --max-time 30 -H "Authorization: Bearer $token" -H 'Content-Type: application/json' \
        -H 'Accept: application/json, text/event-stream' ${session:+-H "Mcp-Session-Id: $session"} "$@"
}
http_open() {
    session=
    token=$(as_ada mcpx status --http --json | grep -o '"token": *"[^"]*"' | cut -d'"' -f4)
    session=$(http -D- -o /dev/null http://127.0.0.1:7332/mcp -d '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"curl","version":"1"}}}' |
        tr -d '\r' | awk 'tolower($1) == "mcp-session-id:" { print $2 }')
    [ -n "$session" ]
    http http://127.0.0.1:7332/mcp -d '{"jsonrpc":"2.0","method":"notifications/initialized"}'
}
http_calls() {
    local said
    said=$(http http://127.0.0.1:7332/mcp -d '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"mcpx_call","arguments":{"namespace":"up","tool":"echo","arguments":{"text":"'"$1"'"}}}}')
    [[ $said == *"\"$1\""* ]]
}

checks() {
    mode=$1
    local folder=/etc/systemd/system before pid
    [ "$mode" = user ] && folder=/home/ada/.config/systemd/user
    as_ada mkdir -p /home/ada/.config/mcpx
    as_ada tee /home/ada/.config/mcpx/config.toml >/dev/null <<TOML
[servers.up]
command = "/usr/local/bin/mcpx"
args = ["demo-server"]
TOML

    mcpx_install --dry-run >/mcpx-out/dry 2>&1
    [ ! -e $folder/mcpx.service ] && grep -q "would write $folder/mcpx.service" /mcpx-out/dry
    ok "a dry run writes nothing and shows all"
    mcpx_install
    ctl is-active mcpx.service mcpx.socket mcpx-http.socket
    ctl show -P StatusText mcpx.service | grep -q 'Serving hosts; 2 servers\|Serving hosts; 1 servers'
    ok "installed, started, ready"

    ctl stop mcpx.service
    [ "$(main_pid)" = 0 ]
    host_open
    host_calls activated
    ctl is-active mcpx.service
    ctl stop mcpx.service
    as_ada mcpx ps >/dev/null
    ok "a host, or a command, that comes first starts it by its socket"
    http_open
    http_calls http
    ctl stop mcpx.service
    http_calls activated
    ok "a session over HTTP goes on after a stop, over its socket"

    as_ada tee -a /home/ada/.config/mcpx/config.toml >/dev/null <<TOML
[servers.other]
command = "/usr/local/bin/mcpx"
args = ["demo-server"]
TOML
    pid=$(main_pid)
    ctl reload mcpx.service
    as_ada mcpx call other echo text=reloaded | grep -q reloaded
    echo 'nonsense = [' | as_ada tee -a /home/ada/.config/mcpx/config.toml >/dev/null
    if ctl reload mcpx.service; then false; fi
    as_ada sed -i '$d' /home/ada/.config/mcpx/config.toml
    ctl kill --kill-who=main -s HUP mcpx.service
    host_calls reloaded
    [ "$(main_pid)" = "$pid" ]
    ok "reload: what is right holds, what is wrong is refused, the daemon stays"

    mkdir -p $folder/mcpx.service.d
    printf '[Service]\nWatchdogSec=2\n' >$folder/mcpx.service.d/test.conf
    chmod -R a+rX $folder/mcpx.service.d
    ctl daemon-reload
    ctl restart mcpx.service
    pid=$(main_pid)
    sleep 5
    [ "$(main_pid)" = "$pid" ]
    ok "a daemon that answers feeds its watchdog"
    kill -STOP "$pid"
    until_ok changed "$pid"
    host_calls watched
    http_calls watched
    ok "a daemon that hangs is replaced, and its hosts go on"

    pid=$(main_pid)
    kill -KILL "$pid"
    # What reaches it as it dies has an unknown outcome; what comes later waits.
    until_ok test ! -e "/proc/$pid"
    host_calls crashed
    http_calls crashed
    [ "$(main_pid)" != "$pid" ]
    ok "a daemon that is killed comes back, and its hosts go on"

    before=$(stat -c %i /usr/local/bin/mcpx)
    install -m 755 /mcpx-bin /usr/local/bin/mcpx.new
    mv /usr/local/bin/mcpx.new /usr/local/bin/mcpx
    [ "$(stat -c %i /usr/local/bin/mcpx)" != "$before" ]
    ctl restart mcpx.service
    host_calls upgraded
    http_calls upgraded
    [ "$(stat -L -c %i "/proc/$(main_pid)/exe")" != "$before" ]
    ok "an upgrade in place drops no host"
    if as_ada mcpx daemon --replace 2>/mcpx-out/replace; then false; fi
    grep -q 'only systemd replaces' /mcpx-out/replace
    ok "mcpx daemon --replace leaves a service to systemd"

    call stays >/dev/null
    local began=$SECONDS
    [ "$(in_unit)" -ge 2 ]
    # With its sockets: the host that is connected would start it again.
    ctl stop mcpx.socket mcpx-http.socket mcpx.service
    [ $((SECONDS - began)) -lt 40 ]
    [ "$(in_unit)" = 0 ]
    [ "$(ctl show -P Result mcpx.service)" = success ]
    ok "it stops within its limit and leaves no process ($((SECONDS - began)) s)"
    journalctl --no-pager -o json SYSLOG_IDENTIFIER=mcpx | grep -q '"MCPX_KIND":"daemon.ready"'
    ok "the journal has its fields"

    exec {HOST[1]}>&-
    wait "$HOST_PID" || true
    if [ "$mode" = user ]; then as_ada mcpx uninstall --user; else mcpx uninstall --system; fi
    [ ! -e $folder/mcpx.service ] && [ ! -e $folder/mcpx.socket ] && [ ! -e $folder/mcpx-http.socket ]
    [ "$(ctl show -P LoadState mcpx.socket)" = not-found ]
    rm -rf $folder/mcpx.service.d
    ctl daemon-reload
    ok "uninstalled"
}

loginctl enable-linger ada
until_ok test -S "/run/user/$ada/bus"
checks user
checks system
echo passed >/mcpx-out/result
