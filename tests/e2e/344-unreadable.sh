#!/bin/sh
# stages: gcc address
# Files of a running coordinator that cannot be read (the disk fails, or the rights are gone), data sets of its own that somebody changes,
# parts of uploads and kept deltas that are gone, cut or flipped: it says why, sends and folds nothing wrong, and goes on by itself.
#   BUILD=build/mbedtls tests/e2e/344-unreadable.sh
set -u
umask 077
# shellcheck disable=SC2034 # for fleet.sh
FLEET_NAME=344-unreadable
. tests/e2e/common.sh
peer=$BUILD/tests/tools/wire_peer
[ -x "$peer" ] || skip "needs $peer"
shim=$PWD/$BUILD/tests/shim/faults.so
case ${SAN:-} in ?*) skip "a sanitizer's own calls come before the faults" ;; esac
[ -e "$shim" ] || skip "needs $shim"
checks=0

# set_of DIRECTORY FILL: pictures, so many that they stay in their file, and their labels
set_of() {
	python3 -S -E - "$1" "$2" <<-'END'
		import struct, sys
		count, fill = 86000, bytes([int(sys.argv[2])])
		with open(sys.argv[1] + "/images", "wb") as f:
		    f.write(struct.pack(">IIII", 0x803, count, 28, 28))
		    for i in range(count // 1000):
		        f.write(fill * 784000)
		with open(sys.argv[1] + "/labels", "wb") as f:
		    f.write(struct.pack(">II", 0x801, count) + bytes(i % 10 for i in range(count)))
	END
}
fleet_dir
mkdir "$FLEET/data" "$FLEET/other"
set_of "$FLEET/data" 0
set_of "$FLEET/other" 200
rules=$FLEET/rules
: >"$rules"
cat >"$FLEET/rivuletd.sh" <<END
#!/bin/sh
export LD_PRELOAD=$shim RIVULET_SHIM=$rules
exec $RIVULETD "\$@"
END
chmod +x "$FLEET/rivuletd.sh"
plain=$RIVULETD
RIVULETD=$FLEET/rivuletd.sh
fleet_start "reserve = 0
[limits]
retry_after = 1
[retention]
keep_deltas = yes
[data large]
format = idx
images = $FLEET/data/images
labels = $FLEET/data/labels"
for i in 1 2; do glyph_device device$i $i 60; done
fleet_join hand ""
glyph_job "$FLEET/job.json" measured 2 50
sed -i -e 's/{"type": "linear", "name": "fc1", "out": 50}, {"type": "relu"},//' \
	-e 's/"stop"/"aggregate": {"server_optimizer": {"name": "sgd", "momentum": 0.5}}, "evaluate": {"by": "coordinator", "data": "large"}, "stop"/' "$FLEET/job.json"
job_submit "$FLEET/job.json"
A=$JOB
log=$FLEET/rivuletd.log
state=$FLEET/state

want() { # want WHAT WANT GOT; * in WANT fits anything
	checks=$((checks + 1))
	# shellcheck disable=SC2254 # WANT is a pattern
	case $3 in $2) ;; *) fleet_fail "$1: want \"$2\", got \"$3\"" ;; esac
}
faults() { # faults RULE...: from now on
	printf '%s\n' "$@" >"$rules.new"
	mv "$rules.new" "$rules"
}
train() { # train DEVICE...
	for device; do
		timeout $((120 * TEST_PATIENCE)) "$RIVULET" run --home "$FLEET/$device" --rounds 1 2>>"$FLEET/$device.log" || fleet_fail "$what: $device"
	done
}
job() { curl_admin "/v1/jobs/$A" | pick "$1" 2>/dev/null; }
round_is() { [ "$(job "(d['open']['round'], d['open']['reports'])")" = "($1, $2)" ]; }
waits_for() { job "d['state'] == 'paused' and '$1' in d['reason']" | grep -qx True; }
runs() { [ "$(job "d['state']")" = running ]; }
# measured ROUND: "EXAMPLES LOSS" of the model of that round, or "none WHY"
measured() {
	curl_admin "/v1/jobs/$A" | pick "('%s %.6f' % (d['metric']['examples'], d['metric']['loss'])) if d['metric'] and d['metric']['round'] == $1 else 'none'"
}
round=1
next() { # a round more, by both
	train device1 device2
	round=$((round + 1))
	within 30 round_is $round 0 || fleet_fail "$what: not folded: $(curl_admin "/v1/jobs/$A")"
}
waits() { # waits WORDS: the job does, and the coordinator is well
	within 15 waits_for "$1" || fleet_fail "$what: the job does not wait: $(curl_admin "/v1/jobs/$A")"
	curl_admin /healthz >/dev/null || fleet_fail "$what: the coordinator is gone: $(tail -n 5 "$log")"
	checks=$((checks + 1))
}
goes_on() {
	within 45 runs || fleet_fail "$what: the job does not go on: $(curl_admin "/v1/jobs/$A")"
	checks=$((checks + 1))
}
ready() { curl_admin /readyz 2>/dev/null | grep -q "\"status\":\"ready\""; }
flip() { # flip FILE OFFSET
	python3 -S -E -c 'import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(int(sys.argv[2])); b = f.read(1); f.seek(int(sys.argv[2])); f.write(bytes([b[0] ^ 16]))' "$1" "$2"
}

# --- the coordinator's own data set
what="the first rounds"
next
want "$what" '86000 *' "$(measured 1)"
for how in gone cut replaced written; do
	what="the data set is $how"
	cp -p "$FLEET/data/images" "$FLEET/good"
	case $how in
	gone) rm "$FLEET/data/images" ;;
	cut) truncate -s 30000000 "$FLEET/data/images" ;;
	replaced) cp "$FLEET/other/images" "$FLEET/data/new" && mv "$FLEET/data/new" "$FLEET/data/images" ;;
	written) cat "$FLEET/other/images" >"$FLEET/data/images" ;;
	esac
	next
	case $how in
	gone) want "$what: what is mapped is there" '86000 *' "$(measured $((round - 1)))" ;;
	cut)
		want "$what" none "$(measured $((round - 1)))"
		grep -q "evaluate.failed.*$FLEET/data/images" "$log" || fleet_fail "$what: nobody says why: $(grep evaluate "$log")"
		;;
	*) want "$what: it is read anew" '86000 *' "$(measured $((round - 1)))" ;;
	esac
	[ $how = gone ] || [ "$(log_lines 1 "$log" 'warn data.changed data=large')" -ge 1 ] || fleet_fail "$what: nobody says so"
	mv "$FLEET/good" "$FLEET/data/images"
	next
	want "$what: it is back" '86000 *' "$(measured $((round - 1)))"
done
rm -r "$FLEET/other"
what="the rights of the data set are gone"
faults "look EACCES /data/images"
fleet_kill TERM "$DAEMON_PID"
fleet_restart
next
want "$what" none "$(measured $((round - 1)))"
faults ""
next
want "$what: they are back" '86000 *' "$(measured $((round - 1)))"
what="the disk of the data set fails"
fleet_kill TERM "$DAEMON_PID"
fleet_restart
faults "map EIO /data/images"
next
want "$what" none "$(measured $((round - 1)))"
faults ""
next
want "$what: it is well again" '86000 *' "$(measured $((round - 1)))"

# --- models and optimizer states that cannot be read: the rights are gone, the disk fails
base() { job "d['model']"; }
for file in model state; do
	for rule in "look EACCES" "map EIO" "read EIO"; do
		what="$file: $rule"
		case $file in model) pattern=$(base) ;; *) pattern=.state ;; esac
		# Nobody has it in use or has hashed it.
		fleet_kill TERM "$DAEMON_PID"
		fleet_restart
		train device1
		within 30 round_is $round 1 || fleet_fail "$what: $(curl_admin "/v1/jobs/$A")"
		touch "$state/models/"*"$pattern"
		faults "$rule $pattern"
		case $file:$rule in
		model:"read EIO" | state:"map EIO") ;; # models are mapped, states are read
		*)
			[ $file = state ] ||
				{ curl_admin "/v1/models/$pattern" -o "$FLEET/got" >/dev/null 2>&1 && fleet_fail "$what: it was sent"; }
			[ $file = model ] || timeout $((60 * TEST_PATIENCE)) "$RIVULET" run --home "$FLEET/device2" --rounds 1 2>>"$FLEET/device2.log"
			waits "$file"
			;;
		esac
		faults ""
		goes_on
		round_is $round 1 && train device2
		round=$((round + 1))
		within 45 round_is $round 0 || fleet_fail "$what: not folded: $(curl_admin "/v1/jobs/$A")"
	done
done

# --- accepted deltas
for rule in "look EACCES" "read EIO"; do
	what="delta: $rule"
	train device1
	within 30 round_is $round 1 || fleet_fail "$what: $(curl_admin "/v1/jobs/$A")"
	delta=$(find "$state/spool" -name '*.delta')
	touch "$delta"
	faults "$rule ${delta##*/}"
	train device2
	waits "delta "
	faults ""
	goes_on
	round=$((round + 1))
	within 45 round_is $round 0 || fleet_fail "$what: not folded: $(curl_admin "/v1/jobs/$A")"
done
curl_admin "/v1/jobs/$A/stop" -X POST >/dev/null || fleet_fail "stop"

# --- kept deltas: what is sent is what the device signed, or nothing
what="kept"
kept=$(find "$state/kept" -name '*.delta' | head -n 1)
task=$(basename "$kept" .delta)
get() { curl_admin "/v1/deltas/$task?at=${1:-0}" -o "$FLEET/got" -w '%{http_code}' 2>/dev/null; }
want "$what" 200 "$(get)"
cp "$FLEET/got" "$FLEET/payload"
cp -p "$kept" "$FLEET/good"
for how in gone cut flipped folder; do
	case $how in
	gone) rm "$kept" ;;
	cut) truncate -s -100 "$kept" ;;
	flipped) flip "$kept" 700 ;;
	folder) rm "$kept" && mkdir "$kept" ;;
	esac
	want "$what: $how" "[45]0[0-9]" "$(get)"
	[ $how != flipped ] || grep -q "kept.damaged task=$task" "$log" || fleet_fail "$what: nobody says so"
	rm -rf "$kept"
	cp -p "$FLEET/good" "$kept"
	want "$what: back" 200 "$(get)"
	cmp -s "$FLEET/got" "$FLEET/payload" || fleet_fail "$what: other bytes"
done
for rule in "look EACCES" "read EIO"; do
	faults "$rule ${kept##*/}"
	want "$what: $rule" '[45]*' "$(get)"
	faults ""
	want "$what: $rule is over" 200 "$(get)"
	ready || fleet_fail "$what: $(curl_admin /readyz)"
done

# --- a part of an upload
cat >"$FLEET/job.json" <<-END
	{"name": "large",
	 "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc1", "out": 1200}, {"type": "relu"},
	                      {"type": "linear", "name": "fc2", "out": 10}], "loss": "cross_entropy"},
	 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
	 "local": {"steps": 2, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
	 "round": {"goal": 1, "deadline_s": 3600}, "stop": {"rounds": 1}}
END
job_submit "$FLEET/job.json"
elements=954010 leaves=128 # 4 chunks
mkdir "$FLEET/good.d"
words=$("$peer" ask "$FLEET/hand" "$PORT") || fleet_fail "no task"
task=${words%% *}
# shellcheck disable=SC2086 # four words
"$peer" put "$FLEET/hand" "$PORT" $elements "save:$FLEET/good.d" none $words
peer() { python3 -S -E tests/tools/resume_peer.py "$FLEET/hand" "$PORT" "$task" "$FLEET/good.d" "$@" 2>&1; }
chunk() { echo $((leaves + $1 * 1048576)); }
part=$state/spool/$task.part
for how in gone cut flipped replaced folder "open EACCES" "read EIO"; do
	what="a part: $how"
	want "$what: PUT" cut "$(peer put $(($(chunk 2) + 5)))"
	case $how in
	gone) rm "$part" ;;
	cut) truncate -s $((512 + $(chunk 1) + 3)) "$part" ;;
	flipped) flip "$part" $((512 + $(chunk 1) + 77)) ;;
	replaced) cp "$FLEET/job.json" "$part.new" && mv "$part.new" "$part" ;;
	folder) rm "$part" && mkdir "$part" ;;
	*) touch "$part" && faults "$how ${part##*/}" ;;
	esac
	case $how in
	cut | flipped) want "$what: HEAD" "204 $(chunk 1) 0" "$(peer head)" ;;
	*) want "$what: HEAD" "[45]0[0-9]*" "$(peer head)" ;;
	esac
	want "$what: PATCH further on" "[45]*" "$(peer patch "$(chunk 2)" end)"
	faults ""
	[ "$how" != folder ] || rmdir "$part"
	within 30 ready || fleet_fail "$what: not ready again: $(curl_admin /readyz)"
done
what="the rest of a part"
want "$what" "201 receipt -" "$(peer put end)"
job_done 30
within 20 spool_empty || fleet_fail "$what: $(ls "$state/spool")"
fleet_end
RIVULETD=$plain
"$RIVULETD" --config "$FLEET/rivuletd.conf" check >"$FLEET/out" 2>&1 || fleet_fail "the state afterwards: $(cat "$FLEET/out")"
echo "$checks checks"
