# fleet.sh: a coordinator and devices in a temporary directory, for the demo, the end-to-end tests and the benchmark.
# Source it; it needs BUILD. Everything it starts is ended, and its directory removed, when the shell exits.
#
#   fleet_dir                       makes the directory FLEET, for what must be there before the coordinator starts
#   fleet_start [EXTRA_CONFIG]      init + start rivuletd on a free port; sets FLEET PORT URL DAEMON_PID
#   fleet_restart                   start rivuletd again on the same state and port
#   fleet_join NAME [SETTINGS]      enrol a device with home $FLEET/NAME and those settings
#   fleet_run NAME [ARGUMENTS...]   start its agent in the background; sets AGENT_PID
#   fleet_admin ARGUMENTS...        rivulet with the admin socket
#   fleet_fail TEXT                 say why and exit 1
#
# TEST_LOG_FORMAT=json: rivuletd and the agent write their logs so, and tests read them as text (tests/tools/json_log.c). At the end of the shell
# tests/tools/log_lines.py looks at every line, and the shell ends with 1 if one is wrong.
#
# FLEET_START_S: how many seconds rivuletd may take to start, on a machine that has other things to do; default 120.
# shellcheck shell=sh

# python3 may be a script that looks for the real one each time (pyenv): found once, it costs a tenth.
if [ -z "${TEST_PYTHON:-}" ] && command -v python3 >/dev/null; then
	TEST_PYTHON=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))')
	PATH=$TEST_PYTHON:$PATH
	export TEST_PYTHON PATH
fi
RIVULETD=${RIVULETD:-$BUILD/rivuletd}
RIVULET=${RIVULET:-$BUILD/rivulet}
OPENBLAS_NUM_THREADS=1
export OPENBLAS_NUM_THREADS
if [ "${TEST_LOG_FORMAT:-}" = json ]; then
	FLEET_LINES=$(mktemp -d "${TMPDIR:-/tmp}/rivulet.lines.XXXXXX") || exit 1
	trap 'rm -rf "$FLEET_LINES"' EXIT
	mkdir "$FLEET_LINES/programs" "$FLEET_LINES/logs" && chmod 755 "$FLEET_LINES" "$FLEET_LINES/programs" && chmod 1777 "$FLEET_LINES/logs"
	for fleet_program in "$RIVULETD" "$RIVULET"; do
		# Whoever a test runs it as.
		install -m 755 "$fleet_program" "$FLEET_LINES/programs/${fleet_program##*/}"
		# A test may ask for the program's real path, and its last word says which it is.
		install -m 755 "$BUILD/tests/tools/json_log" "$FLEET_LINES/${fleet_program##*/}"
	done
	RIVULETD=$FLEET_LINES/rivuletd RIVULET=$FLEET_LINES/rivulet
	FLEET_CHECK=$PWD/tests/tools/log_lines.py
fi
FLEET_PIDS=
FLEET=
DAEMON_PID=

fleet_cleanup() {
	fleet_status=$?
	trap - EXIT INT TERM HUP PIPE
	for fleet_pid in $FLEET_PIDS $DAEMON_PID; do
		kill -TERM "$fleet_pid" 2>/dev/null
	done
	fleet_wait=0
	for fleet_pid in $FLEET_PIDS $DAEMON_PID; do
		while kill -0 "$fleet_pid" 2>/dev/null && [ $fleet_wait -lt 100 ]; do
			sleep 0.1
			fleet_wait=$((fleet_wait + 1))
		done
		kill -KILL "$fleet_pid" 2>/dev/null
		wait "$fleet_pid" 2>/dev/null
	done
	[ -z "${FLEET_LINES:-}" ] || fleet_lines || [ $fleet_status -ne 0 ] || fleet_status=1
	if [ -n "$FLEET" ] && [ -n "${FLEET_KEEP:-}" ]; then
		echo "kept: $FLEET" >&2
	elif [ -n "$FLEET" ]; then
		rm -rf "$FLEET"
	fi
	exit $fleet_status
}

# Looks at all lines that the programs wrote, and for what this fleet keeps secret.
fleet_lines() {
	set --
	for fleet_secret in "$FLEET/token" "$FLEET"/*/key.pem "$FLEET"/state/keys/*key*; do
		[ ! -f "$fleet_secret" ] || set -- "$@" --secrets "$fleet_secret"
	done
	for fleet_log in "$FLEET_LINES"/logs/*.log; do
		[ ! -f "$fleet_log" ] || set -- "$@" "$fleet_log"
	done
	python3 -S -E "$FLEET_CHECK" "$@" >"$FLEET_LINES/said" 2>&1
	fleet_checked=$?
	[ $fleet_checked -eq 0 ] || head -n 20 "$FLEET_LINES/said" >&2
	[ -n "${FLEET_KEEP:-}" ] || rm -rf "$FLEET_LINES"
	return $fleet_checked
}

fleet_fail() {
	echo "${FLEET_NAME:-test}: failed: $*" >&2
	if [ -n "$FLEET" ]; then
		for fleet_log in "$FLEET"/*.log; do
			[ -s "$fleet_log" ] || continue
			echo "--- the end of ${fleet_log##*/}:" >&2
			tail -n "${FLEET_LOG_LINES:-8}" "$fleet_log" >&2
		done
	fi
	exit 1
}

fleet_daemon() {
	rm -f "$FLEET/state/port"
	"$RIVULETD" --config "$FLEET/rivuletd.conf" 2>>"$FLEET/rivuletd.log" &
	DAEMON_PID=$!
	fleet_wait=0
	until [ -s "$FLEET/state/port" ]; do
		kill -0 "$DAEMON_PID" 2>/dev/null || fleet_fail "rivuletd did not start"
		[ $fleet_wait -lt $((10 * ${FLEET_START_S:-120})) ] || fleet_fail "rivuletd was not ready after ${FLEET_START_S:-120} s"
		sleep 0.1
		fleet_wait=$((fleet_wait + 1))
	done
	PORT=$(cat "$FLEET/state/port")
	URL=https://localhost:$PORT
}

fleet_dir() {
	FLEET=$(mktemp -d "${TMPDIR:-/tmp}/rivulet.XXXXXX") || exit 1
	trap fleet_cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	trap 'exit 141' PIPE
}

fleet_start() {
	[ -n "$FLEET" ] || fleet_dir
	cat >"$FLEET/rivuletd.conf" <<-END
		[server]
		listen = ${FLEET_LISTEN:-127.0.0.1:0}
		state_dir = $FLEET/state
		admin_socket = $FLEET/admin.sock
		${1:-}
	END
	# shellcheck disable=SC2086 # a list of --name options
	"$RIVULETD" --config "$FLEET/rivuletd.conf" init ${FLEET_NAMES:-} >"$FLEET/token" 2>"$FLEET/init.log" ||
		fleet_fail "rivuletd init"
	chmod 600 "$FLEET/token"
	fleet_daemon
}

fleet_restart() {
	sed -i "s/^listen = .*/listen = 127.0.0.1:$PORT/" "$FLEET/rivuletd.conf"
	fleet_daemon
}

fleet_join() {
	"$RIVULET" join "$URL" --token-file "${FLEET_TOKEN:-$FLEET/token}" --name "$1" --home "$FLEET/$1" \
		>>"$FLEET/join.log" 2>&1 || fleet_fail "device $1 could not join"
	printf '%s\n' "${2:-}" >>"$FLEET/$1/rivulet.conf"
}

fleet_run() {
	fleet_device=$1
	shift
	"$RIVULET" run --home "$FLEET/$fleet_device" "$@" 2>>"$FLEET/$fleet_device.log" &
	AGENT_PID=$!
	FLEET_PIDS="$FLEET_PIDS $AGENT_PID"
}

fleet_admin() {
	RIVULET_SOCKET=$FLEET/admin.sock "$RIVULET" "$@"
}
