#!/usr/bin/env bash
# mcpx under a real systemd: a Debian root folder, booted with systemd-nspawn, in which `inside.sh`
# installs it, for a user and for the system, and then reloads, hangs, kills, upgrades and stops it.
#   tests/systemd/run.sh [BINARY]        target/release/mcpx unless said
# Needs root, and the network once: the root folder is kept in MCPX_SYSTEMD_ROOT, else in the cache
# folder of the user. Where it cannot run it says so in one line; with CI set that is a failure.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
binary=$(realpath "${1:-$here/../../target/release/mcpx}")
root=${MCPX_SYSTEMD_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/mcpx-systemd/bookworm}

left_out() {
    echo "tests/systemd: left out: $1"
    [ -n "${CI:-}" ] && exit 1
    exit 0
}

[ "$(uname -s)" = Linux ] || left_out "this is no Linux"
[ "$(id -u)" = 0 ] || left_out "systemd-nspawn needs root"
if ! command -v debootstrap >/dev/null || ! command -v systemd-nspawn >/dev/null; then
    { apt-get update -qq && apt-get install -y -qq debootstrap systemd-container; } >/dev/null 2>&1 ||
        left_out "debootstrap and systemd-container cannot be installed"
fi
if [ ! -e "$root/.complete" ]; then
    rm -rf "$root"
    mkdir -p "$root"
    with=systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,curl
    debootstrap --variant=minbase --include=$with bookworm "$root" >"$root.log" 2>&1 ||
        left_out "debootstrap failed, see $root.log"
    chroot "$root" useradd --create-home --shell /bin/bash ada
    ln -s ../mcpx-test.service "$root/etc/systemd/system/multi-user.target.wants/mcpx-test.service"
    touch "$root/.complete"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/out"
cat >"$work/mcpx-test.service" <<UNIT
[Unit]
After=dbus.service systemd-logind.service systemd-user-sessions.service
[Service]
Type=oneshot
ExecStart=/bin/bash /mcpx-test/inside.sh
StandardOutput=append:/mcpx-out/log
StandardError=append:/mcpx-out/log
TimeoutStartSec=240
ExecStopPost=/bin/systemctl --no-block poweroff
UNIT
# What is written in it is gone with it.
timeout 300 systemd-nspawn --quiet --directory="$root" --volatile=overlay --boot --private-network \
    --register=no --keep-unit \
    --bind-ro="$binary:/mcpx-bin" --bind-ro="$here:/mcpx-test" --bind="$work/out:/mcpx-out" \
    --bind-ro="$work/mcpx-test.service:/etc/systemd/system/mcpx-test.service" \
    </dev/null >"$work/console" 2>&1 || true

if [ ! -e "$work/out/log" ]; then
    tail -20 "$work/console"
    left_out "systemd does not boot in systemd-nspawn here (the kernel, or a container around us, refuses)"
fi
if [ "$(cat "$work/out/result" 2>/dev/null)" != passed ]; then
    cat "$work/out/log"
    echo "tests/systemd: FAILED"
    exit 1
fi
grep '^ok ' "$work/out/log"
echo "tests/systemd: $(grep -c '^ok ' "$work/out/log") checks passed under $(head -1 "$work/out/version")"
