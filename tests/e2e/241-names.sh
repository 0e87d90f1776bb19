#!/bin/sh
# stages: gcc openssl address
# Which job, device or model a word means, where somebody else took the name or the beginning of the id; documents that somebody else
# submitted first. The command line, REST and Python get one answer.
#   BUILD=build/mbedtls tests/e2e/241-names.sh
set -u
FLEET_NAME=241-names
. tests/e2e/common.sh

remote() { # remote TOKEN COMMAND...
	remote_token=$1
	shift
	HOME=$FLEET/nowhere "$RIVULET" "$@" --url "$URL" --token-file "$FLEET/$remote_token"
}
# python TOKEN WORD: the id of the job that Python finds
python() {
	PYTHONPATH=python python3 -c "
import sys, rivulet
c = rivulet.Coordinator('$URL', token_file='$FLEET/$1', ca='$FLEET/state/keys/ca.pem')
try:
    print(c.job('$2')['job'])
except rivulet.Error as e:
    print('refused', e)"
}
job() { # job TOKEN NAME SEED: JOB is its id
	glyph_job "$FLEET/job.json" "$2" 1 1
	sed -i "s/\"seed\": [0-9]*/\"seed\": $3/" "$FLEET/job.json"
	run 0 remote "$1" job submit "$FLEET/job.json"
	JOB=$(printf '%s\n' "$SAID" | grep -oE '[0-9a-f]{32}' | tail -1)
	[ -n "$JOB" ] || fleet_fail "submit said $SAID"
}
means() { # means TOKEN WORD ID
	[ "$(remote "$1" job show "$2" --json | pick 'd["job"]')" = "$3" ] || fleet_fail "$1: $2 is not $3"
	[ "$(python "$1" "$2")" = "$3" ] || fleet_fail "$1, Python: $2 is not $3: $(python "$1" "$2")"
}
nobody() { # nobody TOKEN WORD ID ID: refused, with both
	run 6 remote "$1" job show "$2"
	says "$3" "$4" "give the full id"
	case $(python "$1" "$2") in *refused*"$3"*"$4"* | *refused*"$4"*"$3"*) ;; *) fleet_fail "Python: $(python "$1" "$2")" ;; esac
}

fleet_start "
[limits]
long_poll = 1
owner_changes_per_hour = 100"
glyph_device one 1 60
ls "$FLEET/state/keys" | grep -q '^ca.pem$' || cp "$FLEET/one/ca.pem" "$FLEET/state/keys/ca.pem"
for who in ann bob eve; do run 0 fleet_admin token create --access --role submitter --owner "$who" -o "$FLEET/$who"; done
run 0 fleet_admin token create --access -o "$FLEET/reader"

# --- a running job of somebody else's against one's own that is over
fleet_run one
job ann prod 1
mine=$JOB
job_done 60
fleet_kill TERM "$AGENT_PID"
job eve prod 2
theirs=$JOB
means ann prod "$mine"
means eve prod "$theirs"
means ann "$theirs" "$theirs"
nobody bob prod "$mine" "$theirs"
nobody reader prod "$mine" "$theirs"
model=$(remote ann job show "$mine" --json | pick 'd["model"]')
run 0 remote ann model get prod -o "$FLEET/mine.safetensors"
[ "$(sha256sum <"$FLEET/mine.safetensors" | cut -c1-64)" = "$model" ] || fleet_fail "model get prod is another owner's"
run 6 remote bob model get prod -o "$FLEET/none.safetensors"
[ ! -e "$FLEET/none.safetensors" ] || fleet_fail "a file came of a word that fits two"

# --- a job named like the beginning of another's id
like=$(printf %.8s "$mine")
job eve "$like" 3
fake=$JOB
says "looks like an id"
means ann "$like" "$mine"
means eve "$like" "$fake"
nobody bob "$like" "$mine" "$fake"
job ann "$(printf %.7s "$mine")" 4
own=$JOB
nobody ann "$(printf %.7s "$mine")" "$mine" "$own"
means ann "$mine" "$mine"
run 3 remote ann job show nothing-here
says "no job"
run 0 remote ann model get "$like" -o "$FLEET/like.safetensors"
cmp -s "$FLEET/like.safetensors" "$FLEET/mine.safetensors" || fleet_fail "model get $like is another job's"

# --- devices
id=$(curl_admin /v1/devices | pick 'd["devices"][0]["device"]')
FLEET_TOKEN=$FLEET/token
run 0 "$RIVULET" join "$URL" --token-file "$FLEET/token" --name "$(printf %.6s "$id")" --home "$FLEET/two"
says "looks like an id"
run 6 fleet_admin device suspend "$(printf %.6s "$id")"
says "$id" "give the full id"
run 0 fleet_admin device show one
run 0 fleet_admin device show "$(printf %.7s "$id")"
run 0 fleet_admin device set one --name "abcdef01"
says "looks like an id"

# --- who asks
remote ann status --json | pick 'd["you"]["owner_name"], d["you"]["role"]' | grep -qx "('ann', 'submitter')" || fleet_fail "who asks: $(remote ann status --json)"

# --- a document that somebody else submitted first, and perhaps deleted
glyph_job "$FLEET/shared.json" shared 1 1
run 0 remote eve job submit "$FLEET/shared.json"
run 4 remote bob job submit "$FLEET/shared.json"
says "somebody else submitted this very document" "foreign-job"
case $SAID in *eve*) fleet_fail "the owner is named: $SAID" ;; esac
run 4 remote bob job plan "$FLEET/shared.json"
says "foreign-job"
run 0 remote eve job submit "$FLEET/shared.json"
run 0 remote eve job stop shared
run 0 remote eve job delete shared --yes
run 4 remote bob job submit "$FLEET/shared.json"
says "foreign-job"
run 4 remote eve job submit "$FLEET/shared.json"
says "deleted-job"
# A sweep of a document that another's sweep has: unchanged first, then with a mark, and the same again when it goes on.
fleet_run one
glyph_job "$FLEET/grid.json" grid 1 1
run 0 remote eve job sweep "$FLEET/grid.json" --set local.batch=10,20
run 0 remote bob job sweep "$FLEET/grid.json" --set local.batch=10,20
run 0 remote bob job sweep "$FLEET/grid.json" --set local.batch=10,20
remote reader job list --json --all | pick 'sorted((j["name"].split(".")[0], j["owner_name"]) for j in d["jobs"] if j["name"].startswith("grid"))' |
	grep -qx "\[('grid-10', 'bob'), ('grid-10', 'eve'), ('grid-20', 'bob'), ('grid-20', 'eve')\]" || fleet_fail "cells: $(remote reader job list --all)"

# --- a coordinator that names a path where an id should be
python3 -S -E - "$FLEET/liar" >"$FLEET/liar.log" 2>&1 <<-'END' &
	import json, os, signal, socket, sys
	signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
	listener = socket.socket(socket.AF_UNIX)
	listener.bind(sys.argv[1])
	listener.listen()
	word = ("../precious/" + "a" * 64)[:64]
	body = json.dumps({"id": word, "best": {"model": word}}).encode()
	while True:
	    c = listener.accept()[0]
	    while c.recv(65536).find(b"\r\n\r\n") < 0:
	        pass
	    c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
	    c.close()
END
FLEET_PIDS="$FLEET_PIDS $!"
within 10 test -S "$FLEET/liar" || fleet_fail "the liar does not listen"
mkdir "$FLEET/here" "$FLEET/precious"
echo mine >"$FLEET/precious/.safetensors.part"
there=$(realpath "$RIVULET")
for how in "get any" "get --best 00112233445566778899aabbccddeeff"; do
	# shellcheck disable=SC2086 # words
	(cd "$FLEET/here" && "$there" model $how --socket "$FLEET/liar" >"$FLEET/said" 2>&1) && fleet_fail "$how: $(cat "$FLEET/said")"
	[ "$(cat "$FLEET/precious/.safetensors.part")" = mine ] || fleet_fail "$how wrote elsewhere: $(cat "$FLEET/said")"
done
fleet_end
echo "ok: nobody's word leads to somebody else's job, device or model"
