#!/bin/sh
# stages: gcc address
# bash and zsh complete every subcommand and option of all programs, and the names of devices and jobs; a coordinator that is not there, or
# does not answer, costs no time and no word.
set -u
FLEET_NAME=76-completion
BUILD=${BUILD:-build/mbedtls}
[ -z "${SAN:-}" ] || { echo "not under a sanitizer: the programs are started two hundred times"; exit 77; }
. tests/fleet.sh

shells=bash
# A bare root may have no terminals: nobody types there, and zsh completes for who types alone.
terminals=$(python3 -c 'import os; os.openpty(); print("yes")' 2>/dev/null)
if [ -n "$terminals" ] && command -v zsh >/dev/null; then shells="bash zsh"; fi
tab=$(printf '\t')

# expect LINE [WORD...]: what must be offered behind that line; of files the last part of their names.
expect() {
	{ printf '> %s\n' "$1" && shift && [ $# -eq 0 ] || printf '%s\n' "$@"; } >>"$FLEET/expected"
}
# words: in the form of complete.py, a line for each word, in order.
words() {
	awk '/^> / { line = $0; next } !/^= / { sub(/.*\//, ""); print line "\t" $0 }' | LC_ALL=C sort -u
}
# ask: does each shell offer what is expected, and nothing else?
ask() {
	sed -n 's/^> //p' "$FLEET/expected" >"$FLEET/lines"
	words <"$FLEET/expected" >"$FLEET/wanted"
	for shell in $shells; do
		python3 tests/tools/complete.py "$shell" <"$FLEET/lines" >"$FLEET/$shell.offered" 2>"$FLEET/$shell.said" &
		eval "pid_$shell=\$!"
	done
	for shell in $shells; do
		eval "wait \"\$pid_$shell\"" && [ ! -s "$FLEET/$shell.said" ] || fleet_fail "$shell: $(tail -5 "$FLEET/$shell.said")"
		words <"$FLEET/$shell.offered" >"$FLEET/words"
		diff "$FLEET/wanted" "$FLEET/words" >"$FLEET/diff" || fleet_fail "$shell offers something else: $(head -20 "$FLEET/diff")"
	done
}

fleet_start

# --- everything in the tables of the programs, and nothing else

# expected TABLE PROGRAM: for a line before each subcommand and before each option what must be offered, in the form of complete.py.
expected() {
	awk -F'\t' -v program="$2" '
	function add(line, word) { if (!(line in words)) order[++count] = line; words[line] = words[line] word "\n" }
	function at(path) { return program " " path (path == "" ? "" : " ") }
	NF != 6 || $1 !~ /^(command|usage|about|option|setting)$/ { print "a line is odd: " $0; exit 1 }
	$1 == "option" { add(at($2) "--", "--" $3) }
	$1 == "command" { n = split($2, path, " "); add(at(substr($2, 1, length($2) - length(path[n]) - (n > 1))), path[n]) }
	END { for (i = 1; i <= count; i++) printf "> %s\n%s", order[i], words[order[i]] }' "$1"
}
# A program is started once, and not at each of the lines.
mkdir "$FLEET/quick"
site=$(dirname "$RIVULET")/rivulet-site
[ -x "$site" ] || site=
for program in "$RIVULET" "$RIVULETD" $site; do
	name=${program##*/}
	"$program" --print-options >"$FLEET/$name.table" 2>"$FLEET/said" || fleet_fail "--print-options: $(cat "$FLEET/said")"
	[ ! -s "$FLEET/said" ] || fleet_fail "--print-options: $(cat "$FLEET/said")"
	expected "$FLEET/$name.table" "$FLEET/quick/$name" >>"$FLEET/expected" || fleet_fail "$(cat "$FLEET/expected")"
	printf '#!/bin/sh\n[ "$*" = --print-options ] && exec cat "%s"\n' "$FLEET/$name.table" >"$FLEET/quick/$name"
	chmod +x "$FLEET/quick/$name"
	"$program" --help | grep print-options && fleet_fail "the hidden word is in --help"
done
[ "$(grep -c '^> ' "$FLEET/expected")" -gt 60 ] || fleet_fail "too few lines: $(cat "$FLEET/expected")"

# --- words and values

mkdir "$FLEET/place"
: >"$FLEET/place/file"
expect "$RIVULET job compare --x " reports round time
expect "$RIVULET job compare --x=r" reports round
expect "$RIVULET verify f" fetch
expect "$RIVULETD --config $FLEET/x ca f" finish
expect "$RIVULETD --config=$FLEET/x backup --rate 5M --ra" --rate
expect "$RIVULETD keys nothing "
expect "$RIVULET device list -- --"
expect "$RIVULET train $FLEET/place/f" file
expect "$RIVULET token create -o $FLEET/place/f" file
expect "$RIVULETD --config=$FLEET/place/f" file
expect "$RIVULETD check $FLEET/pla" place
if [ "$site" ]; then
	expect "$site t" train
	expect "$site run --o" --offer
	expect "$site run $FLEET/pla" place
	expect "$site train --config $FLEET/x $FLEET/place/f" file
	# What is hidden is not offered.
	expect "$site ra"
fi

# --- names

fleet_join pump-1
fleet_join pump-2
fleet_join valve
for job in ended first; do
	sed "0,/\"name\": *\"[^\"]*\"/s//\"name\": \"$job\"/" examples/pumps.json >"$FLEET/job.json"
	fleet_admin job submit "$FLEET/job.json" >"$FLEET/id" 2>/dev/null || fleet_fail "job submit"
done
fleet_admin job stop ended >/dev/null
[ "$(fleet_admin device list --names | LC_ALL=C sort | tr '\n' ' ')" = "pump-1 pump-2 valve " ] || fleet_fail "device list --names"
[ "$(fleet_admin device list --names --state revoked)" = "" ] || fleet_fail "device list --names, of none"
[ "$(fleet_admin job list --names)" = first ] || fleet_fail "job list --names"
RIVULET_SOCKET=$FLEET/nowhere
export RIVULET_SOCKET
expect "$RIVULET device show --socket $FLEET/admin.sock " pump-1 pump-2 valve
expect "$RIVULET device set --socket=$FLEET/admin.sock valve pu" pump-1 pump-2
expect "$RIVULET verify dir --socket $FLEET/admin.sock --without=v" valve
expect "$RIVULET job evaluate --socket $FLEET/admin.sock --like " ended first
# A job that is over can be shown, and not paused.
expect "$RIVULET job show --socket $FLEET/admin.sock " ended first
expect "$RIVULET job pause --socket $FLEET/admin.sock " first
# Nobody there, or no such program.
expect "$RIVULET device show "
expect "$FLEET/nowhere/rivulet device show "
# What others chose as a name is text.
mkdir "$FLEET/other"
cat >"$FLEET/other/rivulet" <<-END
	#!/bin/sh
	case "\$*" in --print-options) exec "$(realpath "$RIVULET")" "\$@" ;; esac
	echo '\$(touch touched-by-completion)'
END
chmod +x "$FLEET/other/rivulet"
expect "$FLEET/other/rivulet device show " '$(touch touched-by-completion)'
# On a machine that does other things an answer may take longer; how long is waited for one is looked at below.
printf '#!/bin/sh\nshift\nexec "%s" 60 "$@"\n' "$(command -v timeout)" >"$FLEET/other/timeout"
chmod +x "$FLEET/other/timeout"
own_path=$PATH
PATH=$FLEET/other:$PATH
ask
[ ! -e touched-by-completion ] || fleet_fail "a name was run"
lines=$(wc -l <"$FLEET/lines")

# --- as a person types

RIVULET_SOCKET=$FLEET/admin.sock
for shell in ${terminals:+$shells}; do
	got=$(printf '%s' "$RIVULET dev${tab}sho${tab}val$tab" | python3 tests/tools/complete.py "$shell" type)
	[ "$got" = "$RIVULET device show valve" ] || fleet_fail "typed in $shell: $got"
done

# --- a coordinator that hangs

PATH=$own_path

kill -STOP "$DAEMON_PID"
: >"$FLEET/expected"
expect "$RIVULET device show "
for try in 1 2 3 4 5; do
	ask
	slowest=$(cat "$FLEET"/*.offered | sed -n 's/^= //p' | sort -n | tail -n 1)
	fastest=$(cat "$FLEET"/*.offered | sed -n 's/^= //p' | sort -n | head -n 1)
	[ "$fastest" -ge 300 ] || fleet_fail "nobody was asked: $fastest ms"
	[ "$slowest" -gt 500 ] || break
	[ "$try" -lt 5 ] || fleet_fail "one waits $slowest ms for a coordinator that hangs"
done
kill -CONT "$DAEMON_PID"
echo "$lines lines in $shells; $slowest ms where nobody answers"
