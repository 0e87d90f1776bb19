#!/bin/sh
# stages: gcc address
# Curves and sweeps: a job's plot, jobs side by side, their rounds as CSV, JSON lines and an event file that is written beside a running job
# across a restart of the coordinator; a document changed as it is submitted; a sweep that is ended and goes on.
#   BUILD=build/mbedtls tests/e2e/64-curves.sh
set -u
FLEET_NAME=64-curves
. tests/e2e/common.sh
unset COLUMNS

said() { # said EXPRESSION WANT: of the JSON that was said
	CHECKS=$((CHECKS + 1))
	said_got=$(printf '%s' "$SAID" | pick "$1")
	[ "$said_got" = "$2" ] || fleet_fail "$1 is $said_got instead of $2 in: $SAID"
}

events() { # events DIR: "STEP TAG VALUE" of each figure in a run's event file, whose checksums are left to the unit test
	python3 -S -E - "$1" <<-'END'
		import glob, struct, sys

		def fields(b):
		    i = 0
		    while i < len(b):
		        key, i = varint(b, i)
		        if key & 7 == 2:
		            n, i = varint(b, i)
		        else:
		            n = {1: 8, 5: 4}.get(key & 7)
		        if n is None:
		            value, i = varint(b, i)
		        else:
		            value, i = b[i:i + n], i + n
		        yield key >> 3, value

		def varint(b, i):
		    v = s = 0
		    while True:
		        v |= (b[i] & 127) << s
		        i, s = i + 1, s + 7
		        if b[i - 1] < 128:
		            return v, i

		(name,) = glob.glob(sys.argv[1] + "/events.out.tfevents.*")
		data = open(name, "rb").read()
		while data:
		    (n,) = struct.unpack("<Q", data[:8])
		    event, data = dict(fields(data[12:12 + n])), data[n + 16:]
		    for _, value in fields(event.get(5, b"")):
		        value = dict(fields(value))
		        print(event[2], value[1].decode(), repr(struct.unpack("<f", value[2])[0]))
	END
}

api_events() { # the same of JOB as the API has it
	curl_admin "/v1/jobs/$JOB/rounds" | python3 -S -E -c 'import json, struct, sys
for r in json.load(sys.stdin)["rounds"]:
    for tag in "loss", "accuracy":
        if r["state"] == "committed":
            print(r["round"], tag + "/train", repr(struct.unpack("<f", struct.pack("<f", r[tag]))[0]))'
}

fleet_start "
[limits]
long_poll = 5
retry_after = 1"
glyph_device one 1 60
glyph_device two 2 60

# --- beside a running job, which waits for its devices
glyph_job "$FLEET/job.json" first 2 12
job_submit "$FLEET/job.json"
fleet_admin job export first --tensorboard "$FLEET/board" --follow --json >"$FLEET/followed" 2>"$FLEET/follow.log" &
FOLLOW=$!
FLEET_PIDS="$FLEET_PIDS $FOLLOW"
run=$FLEET/board/first-$(printf %.8s "$JOB")
begun() {
	ls "$run"/events.out.tfevents.*.rivulet >/dev/null 2>&1
}
within 20 begun || fleet_fail "no event file: $(cat "$FLEET/follow.log")"
run 4 fleet_admin job export first --tensorboard "$FLEET/board"
says "another program writes to"
fleet_kill TERM "$DAEMON_PID"
within 20 grep -q "trying again" "$FLEET/follow.log" || fleet_fail "no word of a coordinator that is away"
fleet_restart
fleet_run one
fleet_run two
job_done 60
fleet_kill 0 $FOLLOW
[ "$fleet_ended" -eq 0 ] || fleet_fail "following ended with status $fleet_ended: $(cat "$FLEET/follow.log")"
[ "$(pick 'd["runs"][0]["rounds"]' <"$FLEET/followed")" = 12 ] || fleet_fail "followed: $(cat "$FLEET/followed")"
api_events >"$FLEET/api"
[ "$(wc -l <"$FLEET/api")" = 24 ] || fleet_fail "not 24 figures: $(cat "$FLEET/api")"
events "$run" | cmp -s - "$FLEET/api" || fleet_fail "the event file differs: $(events "$run" | diff - "$FLEET/api")"

# --- what is there is not written again, and what a crash cut off is
cp -a "$run" "$FLEET/whole"
file=$(echo "$run"/events*)
truncate -s -50 "$file"
run 0 fleet_admin job export first --tensorboard "$FLEET/board"
says "12 rounds"
cmp -s "$file" "$FLEET/whole/${file##*/}" || fleet_fail "the event file differs after it was cut"
printf 'no event file, and a long one: it is somebody else that has written this here' >"$file"
run 7 fleet_admin job export first --tensorboard "$FLEET/board"

# --- tables
run 0 fleet_admin job export first --csv "$FLEET/rounds.csv"
python3 -S -E -c 'import csv, sys
for r in csv.DictReader(open(sys.argv[1])):
    for tag in "loss/train", "accuracy/train":
        print(r["round"], tag, r[tag])' "$FLEET/rounds.csv" >"$FLEET/table"
curl_admin "/v1/jobs/$JOB/rounds" | pick "'\n'.join('%d %s/train %r' % (r['round'], t, r[t]) for r in d['rounds'] for t in ('loss', 'accuracy'))" |
	cmp -s - "$FLEET/table" || fleet_fail "the table differs: $(cat "$FLEET/table")"
run 0 fleet_admin job export first --jsonl -
SAID=$(printf '%s\n' "$SAID" | tail -n 1)
said 'd["name"], d["round"], d["state"]' "('first', 12, 'committed')"
run 2 fleet_admin job export first --csv - --jsonl -
run 2 fleet_admin job export first --csv - --follow
run 3 fleet_admin job export none --csv -

# --- the plot is plain where it is no terminal, and has colours where it is one
run 0 fleet_admin job show first --plot
says "^loss by round   \* train$" "^accuracy by round   \* train$" "^ *2 +4 +6 +8 +10 +12$"
printf '%s\n' "$SAID" | LC_ALL=C grep -q '[^ -~]' && fleet_fail "bytes that are not plain in: $SAID"
[ "$(printf '%s\n' "$SAID" | sed '/^loss by/,$!d' | wc -L)" = 80 ] || fleet_fail "the plot is not 80 columns wide: $SAID"
run 0 env COLUMNS=60 RIVULET_SOCKET="$FLEET/admin.sock" "$RIVULET" job show first --plot --metric loss
[ "$(printf '%s\n' "$SAID" | sed '/^loss by/,$!d' | wc -L)" = 60 ] || fleet_fail "the plot is not 60 columns wide: $SAID"
# A bare system in a chroot may have no pseudo-terminals.
if python3 -S -E -c 'import os; os.openpty()' 2>/dev/null; then
	run 0 python3 -S -E -c 'import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 100, 0, 0))
    os.environ.update(TERM="xterm", LC_ALL="C.UTF-8", RIVULET_SOCKET=sys.argv[1])
    os.environ.pop("NO_COLOR", None)
    os.execv(sys.argv[2], [sys.argv[2], "job", "show", "first", "--plot", "--metric", "loss"])
text = b""
try:
    while True:
        part = os.read(fd, 65536)
        if not part:
            break
        text += part
except OSError:
    pass
text = text.decode()
corner = text[text.index("\u2514"):]
print("braille", any("\u2801" <= c <= "\u28ff" for c in text), "colour", "\033[36m" in text, "width", corner.index("\r") + 4)' "$FLEET/admin.sock" "$RIVULET"
	says "braille True colour True width 100"
else
	echo "no pseudo-terminals here: how a plot looks on one was not tried"
fi
run 2 fleet_admin job show first --plot --follow
run 2 fleet_admin job show first --metric loss

# --- a document changed as it is submitted; what --print prints is what was hashed
run 0 fleet_admin job submit "$FLEET/job.json" --set name=second --set stop.rounds=2 --set evaluate.by=devices --set data.validation=0.25 --set monitor.metric=loss --init first --print
printf '%s\n' "$SAID" >"$FLEET/second.json"
said 'd["name"], d["stop"]["rounds"], d["evaluate"], d["data"]["name"], d["data"]["validation"], d["model"]["init"]' \
	"('second', 2, {'by': 'devices'}, 'digits', 0.25, '$MODEL')"
run 0 fleet_admin job submit "$FLEET/job.json" --set name=second --set stop.rounds=2 --set evaluate.by=devices --set data.validation=0.25 --set monitor.metric=loss --init first
JOB=$(sha256sum "$FLEET/second.json" | cut -c 1-32)
says "^$JOB$"
job_done 60
run 0 fleet_admin job submit "$FLEET/job.json" --set name=third --init first --round 11 --print --json
said 'd["model"]["init"]' "$(curl_admin "/v1/jobs/$(sha256sum "$FLEET/job.json" | cut -c 1-32)/rounds/11" | pick 'd["model"]')"
run 0 fleet_admin job submit "$FLEET/job.json" --set name=third --init second --best --print
said 'd["model"]["init"]' "$(curl_admin "/v1/jobs/$JOB" | pick 'd["best"]["model"]')"
# Its best model by the beginning of its id, and the round that made it, though devices measured it in the next.
run 0 fleet_admin model get "$(curl_admin "/v1/jobs/$JOB" | pick 'd["best"]["model"][:12]')" -o "$FLEET/best.safetensors"
run 0 fleet_admin job compare second --metric loss/eval --json
said 'd["jobs"][0]["best"]["round"]' "$(curl_admin "/v1/jobs/$JOB" | pick 'd["best"]["round"]')"
run 3 fleet_admin job submit "$FLEET/job.json" --init first --best
says "no best model"
run 3 fleet_admin job submit "$FLEET/job.json" --init first --round 3
says "is no longer kept"
run 3 fleet_admin job submit "$FLEET/job.json" --init first --round 99
run 2 fleet_admin job submit "$FLEET/job.json" --best
run 6 fleet_admin job submit "$FLEET/job.json" --set name.x=1
says '"name" is not an object'

# --- side by side
run 0 fleet_admin job compare first second --plot
says "^accuracy/train$" " first +done +12 +24 " " second +done +2 +4 " "^round +first +second" "by round +\* first +o second"
run 0 fleet_admin job compare first second --x reports --metric loss --json
said 'd["x"], d["metric"], [j["name"] for j in d["jobs"]], [len(j["points"]) for j in d["jobs"]], d["jobs"][0]["points"][11][0]' \
	"('reports', 'loss/train', ['first', 'second'], [12, 2], 24)"
run 0 fleet_admin job compare second --x time --plot
says "^loss/eval by seconds"
run 2 fleet_admin job compare first second --x epochs

# --- a sweep: ended with its first jobs running, it goes on where it was. The first cell's document is refused; the rest goes on.
fleet_kill TERM "$AGENT_PID" # so that jobs wait for a device
sweep() { # what a shell starts in the background ignores Ctrl-C
	RIVULET_SOCKET=$FLEET/admin.sock exec python3 -S -E -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$RIVULET" job sweep "$FLEET/job.json" --set local.batch=none,10,20 --set local.optimizer.rate=0.05,0.2 \
		--set stop.rounds=2 --parallel 2 --prefix s- "$@"
}
: >"$FLEET/sweep.log"
(sweep) >"$FLEET/swept" 2>"$FLEET/sweep.log" &
SWEEP=$!
FLEET_PIDS="$FLEET_PIDS $SWEEP"
within 20 grep -q "s-10-0.2: running" "$FLEET/sweep.log" || fleet_fail "no second job: $(cat "$FLEET/sweep.log")"
kill -INT $SWEEP
fleet_kill 0 $SWEEP
[ "$fleet_ended" -eq 130 ] || fleet_fail "an ended sweep left with $fleet_ended: $(cat "$FLEET/sweep.log")"
SAID=$(cat "$FLEET/sweep.log")
says "s-none-0.05: refused: .*local.batch" "s-none-0.2: refused" "2 jobs run on, 2 are not begun; the same command goes on"
[ ! -s "$FLEET/swept" ] || fleet_fail "an ended sweep printed: $(cat "$FLEET/swept")"
run 0 fleet_admin job list --json
said '[j["name"] for j in d["jobs"] if j["state"] == "running"]' "['s-10-0.05', 's-10-0.2']"
fleet_run two
SAID=$(sweep --json 2>"$FLEET/sweep.log")
rc=$?
[ $rc -eq 1 ] || fleet_fail "a sweep with refused jobs left with $rc: $(cat "$FLEET/sweep.log")"
said 'd["metric"], d["mode"], [j["state"] for j in d["jobs"]]' "('accuracy/train', 'max', ['done', 'done', 'done', 'done', 'refused', 'refused'])"
said '[j["best"]["value"] for j in d["jobs"][:4]] == sorted((j["best"]["value"] for j in d["jobs"][:4]), reverse=True)' True
said 'sorted((j["set"]["local.batch"], j["set"]["local.optimizer.rate"]) for j in d["jobs"][:4])' "[(10, 0.05), (10, 0.2), (20, 0.05), (20, 0.2)]"
grep -q "s-10-0.05: running" "$FLEET/sweep.log" || fleet_fail "a job that ran was not followed: $(cat "$FLEET/sweep.log")"
SAID=$(sweep 2>/dev/null)
says "^RANK +NAME +JOB +STATE +ROUNDS +accuracy/train +AT ROUND +local.batch +local.optimizer.rate" "^ +1 +s-" "^s-none-0.05: refused: "
run 0 fleet_admin job list --all --json
said 'len(d["jobs"])' 6
run 6 fleet_admin job sweep "$FLEET/job.json" --set name=a,b
run 6 fleet_admin job sweep "$FLEET/job.json" --set seed=1,1
run 2 fleet_admin job sweep "$FLEET/job.json" --set seed=1,2 --parallel 0
fleet_end
echo "$CHECKS checks"
