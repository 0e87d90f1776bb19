#!/bin/sh
# stages: gcc address
# The command lines of all programs: each subcommand says its options by --help, and what is wrong with a line, with the exit code of a wrong
# usage; rivuletd takes its configuration before a command and behind it.
set -eu
BUILD=${BUILD:-build/mbedtls}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# run CODE PROGRAM WORD...: it must end with that code.
run() {
	code=0
	want=$1
	shift
	said=$*
	called=$BUILD/$1
	shift
	"$called" "$@" >"$dir/out" 2>"$dir/err" </dev/null || code=$?
	[ $code -eq "$want" ] || { echo "$said: exit code $code instead of $want: $(cat "$dir/out" "$dir/err")"; exit 1; }
}
says() { # says FILE TEXT...: each is somewhere in out or err
	file=$1
	shift
	for text; do grep -qF -- "$text" "$dir/$file" || { echo "$said: no \"$text\" in: $(cat "$dir/$file")"; exit 1; }; done
}
wrong() { # wrong REASON PROGRAM WORD...: nothing is done, the reason and the usage are said
	reason=$1
	shift
	run 2 "$@"
	says err "$1: $reason" "usage: $1"
	[ ! -s "$dir/out" ] || { echo "$said: on standard output $(cat "$dir/out")"; exit 1; }
}

# --- every subcommand

site=''
[ ! -x "$BUILD/rivulet-site" ] || site=rivulet-site
for program in rivulet rivuletd $site; do
	run 0 $program --print-options
	cp "$dir/out" "$dir/table"
	awk -F'\t' '$1 == "command" { print $2 }' "$dir/table" >"$dir/paths"
	[ "$(wc -l <"$dir/paths")" -gt $([ $program = rivulet-site ] && echo 2 || echo 10) ] || { echo "$program: $(cat "$dir/table")"; exit 1; }
	while read -r path; do
		# shellcheck disable=SC2086 # words
		run 0 $program $path --help
		says out "usage: $program ${path%% *}"
		# Of subcommands, and of options but for --help itself.
		awk -F'\t' -v path="$path" '
			$1 == "option" && $2 == path && $3 != "help" && $4 != "c" { print ($4 == "" ? "" : "-" $4 ", ") "--" $3 ($5 == "" ? "" : " " $5) }
			$1 == "command" && index($2, path " ") == 1 { print "  " substr($2, length(path) + 2) " " }' "$dir/table" >"$dir/words"
		while read -r word; do says out "$word"; done <"$dir/words"
	done <"$dir/paths"
	run 0 $program --help
	while read -r path; do case $path in *' '*) ;; *) says out "  $path " ;; esac; done <"$dir/paths"
	run 0 $program -h
	run 0 $program --version
	says out "$program 1."
	[ $program = rivulet-site ] || says out "(protocol "
	wrong "unknown option --colour" $program --colour
	wrong 'unknown command "paint"' $program paint
	wrong "--version takes no value" $program --version=2
done

# --- rivuletd

cat >"$dir/conf" <<-END
	[server]
	listen = 127.0.0.1:0
	state_dir = $dir/state
	admin_socket = $dir/sock
END
run 0 rivuletd --check-config --config "$dir/conf"
run 0 rivuletd --config="$dir/conf" --check-config
run 78 rivuletd -c "$dir/nothing" --check-config
run 78 rivuletd -c "$dir/nothing"
run 0 rivuletd --config "$dir/nothing" init --config "$dir/conf" --name localhost --name=127.0.0.1
run 0 rivuletd -c "$dir/conf" ca status
run 0 rivuletd ca -c "$dir/conf" status
run 0 rivuletd ca status "--config=$dir/conf"
says out "generation 1"
run 1 rivuletd --config "$dir/conf" ca status --config "$dir/nothing"
run 3 rivuletd check --repair --json "$dir/state"
run 0 rivuletd keys export --config "$dir/conf" "$dir/keys.tar"
run 0 rivuletd keys check -c "$dir/conf" -- "$dir/keys.tar"
run 0 rivuletd -c "$dir/conf" backup --json --keys "$dir/copy" --rate=1G

wrong "--config wants a value" rivuletd --config
wrong "--check-config goes without a command" rivuletd --check-config check
wrong "unknown option --repairs" rivuletd check --repairs
wrong "unknown option --rep" rivuletd check --rep
wrong "--older wants a value" rivuletd check --delete-lost --older
wrong "--older wants a time" rivuletd check --delete-lost --older soon
wrong "--older goes with --delete-lost" rivuletd check --older 1d
wrong "--drop-damaged-deltas goes with --repair" rivuletd check --drop-damaged-deltas
wrong '"b" is too much' rivuletd check a b
wrong "--repair takes no value" rivuletd check --repair=yes
wrong "something is missing" rivuletd backup
wrong "--rate wants a number of bytes" rivuletd backup --rate fast "$dir/copy2"
wrong "something is missing" rivuletd restore
wrong '"now" is too much' rivuletd init now
wrong 'unknown command "ca turn"' rivuletd ca turn
wrong "unknown option --force" rivuletd ca rotate --force
run 2 rivuletd ca
says err "usage: rivuletd ca COMMAND" "  finish "
wrong "something is missing" rivuletd keys export
wrong '"more" is too much' rivuletd keys import - more
names=$(seq -f '--name=h%g' 1 65)
# shellcheck disable=SC2086 # words
wrong "a certificate has at most" rivuletd init -c "$dir/conf" $names
[ ! -e "$dir/copy2" ] || { echo "a wrong line did something"; exit 1; }
# Nothing runs where there is no such command, and no coordinator was started.
[ ! -e "$dir/state/port" ] || { echo "a coordinator ran"; exit 1; }
