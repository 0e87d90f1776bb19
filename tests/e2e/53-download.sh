#!/bin/sh
# stages: gcc address
# `download`: devices fetch new models as differences. Fewer bytes, the same bytes everywhere, a device that slept catches up,
# a damaged difference costs a whole model and nothing else, `rivulet verify` folds the same models.
#   OTHER_BUILDS="DIR..."   as in 30-reproducible.sh
set -u
FLEET_NAME=53-download
. tests/e2e/common.sh
OTHER_BUILDS=${OTHER_BUILDS:-build/openssl build/mbedtls-clang}
rounds=5

fleet_start "
[retention]
keep_last = 100
keep_deltas = yes"
for i in 1 2 3; do
	glyph_device "device$i" "$i" 60
done
job() { # job NAME DOWNLOAD ROUNDS: submitted; goal 2
	glyph_job "$FLEET/job.json" "$1" 2 "$3"
	[ -z "$2" ] || sed -i "s/\"stop\"/\"download\": $2, \"stop\"/" "$FLEET/job.json"
	job_submit "$FLEET/job.json"
}
down() { # down FROM: bytes sent to devices in the rounds from that one on
	curl_admin "/v1/jobs/$JOB/rounds" | pick "sum(r['bytes_down'] for r in d['rounds'] if r['round'] >= $1)"
}
model_of() { # model_of ROUND
	curl_admin "/v1/jobs/$JOB/rounds/$1" | pick "d['model']"
}
log_of() { grep "$1" "$FLEET/$2.log"; }
agent_stop() { fleet_kill TERM "$1"; }

# --- bytes by codec: the first model goes out whole, the others as differences
fleet_run device1
first=$AGENT_PID
fleet_run device2
second=$AGENT_PID
whole=
for row in ' 1 1' '{"codec":"f16"} 1.9 2.1' '{"codec":"int8"} 3.6 3.8' '{"codec":"int4"} 7 8' '{"codec":"sign","feedback":true} 24 32'; do
	codec=${row%% *} bounds=${row#* }
	job "d$(echo "$codec" | tr -cd a-z0-9)" "$codec" $rounds
	job_done 120
	got=$(down 2)
	[ -n "$whole" ] || whole=$got
	python3 -S -E -c 'import sys; w, g, low, high = map(float, sys.argv[1:]); sys.exit(not low <= w / g <= high)' \
		"$whole" "$got" "${bounds% *}" "${bounds#* }" || fleet_fail "${codec:-none}: $got bytes down, whole models $whole"
	echo "ok: ${codec:-none}: $got bytes down in $((rounds - 1)) rounds, $(python3 -S -E -c "print('%.2f' % ($whole / $got))") x less"
done
[ "$(log_of difference.failed device1 | wc -l)" -eq 0 ] || fleet_fail "$(log_of difference.failed device1)"

agent_stop "$first"
agent_stop "$second"

# --- a device that slept three rounds comes back by four differences; what it holds is what the others hold
in_round() { [ "$(curl_admin "/v1/jobs/$JOB" | pick "d['rounds_committed'] >= $1")" = True ]; }
by_one() { # by_one DEVICE: one task
	timeout $((60 * TEST_PATIENCE)) "$RIVULET" run --home "$FLEET/$1" --once 2>>"$FLEET/$1.log" ||
		fleet_fail "$1 did not do its part"
}
by() { # by ROUND DEVICE...: these make that round
	made=$1
	shift
	for name; do
		by_one "$name"
	done
	within 60 in_round "$made" || fleet_fail "round $made was not committed: $(curl_admin "/v1/jobs/$JOB")"
}
got() { # got DEVICE: by what it got its latest model: "difference BYTES" or "model BYTES"
	sed -n 's/.* \([a-z]*\)\.fetched model=.* bytes=\([0-9]*\).*/\1 \2/p' "$FLEET/$1.log" | tail -n 1
}
same_bytes() { # same_bytes DEVICE...: every model file of theirs is what its name says
	for name; do
		for f in "$FLEET/$name"/models/*.safetensors; do
			[ "$(sha256sum <"$f" | cut -d ' ' -f 1)" = "$(basename "$f" .safetensors)" ] || fleet_fail "$f is another model"
		done
		[ -z "$(find "$FLEET/$name/models" -name '*.diff')" ] || fleet_fail "$name keeps differences"
	done
}
job sleeper '{"codec":"int4"}' 8
by 1 device1 device2
by 2 device1 device2
one=$(got device2)
[ "${one% *}" = difference ] || fleet_fail "device2 got $one"
for round in 3 4 5; do
	by $round device1 device3
done
by 6 device1 device2
[ "$(got device2)" = "difference $((4 * ${one#* }))" ] || fleet_fail "device2 slept three rounds and got $(got device2), one step is $one"
[ "$(got device1)" = "$one" ] || fleet_fail "device1 got $(got device1)"
same_bytes device1 device2 device3
echo "ok: back after three rounds with $(got device2)"

# --- a difference that is damaged on the coordinator: found by the device, and by check
by 7 device1 device3
base=$(curl_admin "/v1/jobs/$JOB" | pick 'd["model"]')
printf 'spoiled' | dd of="$FLEET/state/models/$base.diff" bs=1 seek=3000 conv=notrunc 2>/dev/null
by 8 device1 device3
for name in device1 device3; do
	log_of "difference.broken.*model=$base" $name >/dev/null || fleet_fail "$name did not notice a spoiled difference"
	log_of "model.fetched.*model=$base" $name >/dev/null || fleet_fail "$name did not fetch $base whole"
done
"$RIVULETD" --config "$FLEET/rivuletd.conf" check >"$FLEET/check" 2>&1
grep -q "difference-damaged.*$base" "$FLEET/check" || fleet_fail "check did not find the spoiled difference: $(cat "$FLEET/check")"
same_bytes device1 device3

# --- what the device holds is not what its name says: the difference makes another model, which nobody uses
job base '{"codec":"int8"}' 3
by 1 device1 device2
by 2 device1 device2
held=$(curl_admin "/v1/jobs/$JOB/rounds/2" | pick "d['base']")
printf 'spoiled' | dd of="$FLEET/device2/models/$held.safetensors" bs=1 seek=9000 conv=notrunc 2>/dev/null
by 3 device1 device2
log_of "difference.failed.*was damaged" device2 >/dev/null || fleet_fail "device2 did not notice that its base is damaged: $(log_of difference device2)"
[ "$(got device1)" != "$(got device2)" ] || fleet_fail "device2 got $(got device2)"
[ ! -e "$FLEET/device2/models/$held.safetensors" ] || fleet_fail "device2 keeps a damaged model"
same_bytes device1 device2

# --- who has the differences of another back end or compiler has the same models
for other in $OTHER_BUILDS; do
	[ -x "$other/rivulet" ] && [ "$(realpath "$other")" != "$(realpath "$BUILD")" ] || continue
	if find aggregator base client crypto daemon data model round wire -name '*.[ch]' -newer "$other/rivulet" | grep -q .; then
		echo "skipped: $other is older than the sources"
		continue
	fi
	own=$RIVULET
	job "other$(echo "$other" | tr -cd '[:lower:]')" '{"codec":"int4"}' 3
	for round in 1 2 3; do
		RIVULET=$own
		by_one device1
		RIVULET=$other/rivulet
		by_one device2
		RIVULET=$own
		within 60 in_round $round || fleet_fail "round $round was not committed"
	done
	last=$(model_of 2)
	cmp "$FLEET/device1/models/$last.safetensors" "$FLEET/device2/models/$last.safetensors" || fleet_fail "$other: another model"
	log_of "difference.fetched.*model=$last" device2 >/dev/null || fleet_fail "$other: no difference"
	echo "ok: a device of $other"
done

# --- folded again from the kept deltas
fleet_admin verify fetch "$FLEET/audit" >"$FLEET/fetched" 2>&1 || fleet_fail "fetch: $(cat "$FLEET/fetched")"
"$RIVULET" verify "$FLEET/audit" --json >"$FLEET/verified" 2>&1 || fleet_fail "verify: $(cat "$FLEET/verified")"
pick "d['rounds']['folded'] >= 5 * $rounds and d['rounds']['not_folded'] == 0" <"$FLEET/verified" | grep -qx True ||
	fleet_fail "verify: $(cat "$FLEET/verified")"
grep -q '"download":{"codec":"sign","feedback":true}' "$FLEET/audit/bodies.jsonl" || fleet_fail "the record does not name the download"

# --- a restart forgets nothing: the next task still names the way
job restart '{"codec":"int8"}' 4
by 1 device1 device2
by 2 device1 device2
fleet_kill KILL "$DAEMON_PID"
fleet_restart
# Half of it is here from a connection that broke; what comes is the rest.
base=$(model_of 2) held=$(model_of 1)
curl_admin "/v1/models/$base/from/$held" >"$FLEET/whole.diff" || fleet_fail "no difference from $held"
head -c 20000 "$FLEET/whole.diff" >"$FLEET/device2/models/$base.diff"
by 3 device1 device2
got device1 | grep -q difference || fleet_fail "after a restart device1 got $(got device1)"
log_of "difference.fetched.*model=$base.* at=20000 bytes=$(($(wc -c <"$FLEET/whole.diff") - 20000))" device2 >/dev/null ||
	fleet_fail "device2 did not go on at 20000: $(log_of "$base" device2)"
same_bytes device1 device2

# --- as HTTP serves it: immutable, by ranges, named by both models
answer() { # answer NAME [CURL OPTION...]: status and headers of the last difference into $FLEET/NAME
	name=$1
	shift
	curl_admin "/v1/models/$base/from/$held" -D "$FLEET/$name" -o "$FLEET/$name.body" "$@" 2>/dev/null
	tr -d '\r' <"$FLEET/$name" >"$FLEET/$name.head"
}
answer range -r 300-399
grep -q "^HTTP/1.1 206" "$FLEET/range.head" && grep -qi "^content-range: bytes 300-399/$(wc -c <"$FLEET/whole.diff")$" "$FLEET/range.head" ||
	fleet_fail "a range: $(cat "$FLEET/range.head")"
tail -c +301 "$FLEET/whole.diff" | head -c 100 | cmp - "$FLEET/range.body" || fleet_fail "a range has other bytes"
grep -qi "^etag: \"$base-$held\"$" "$FLEET/range.head" && grep -qi "^cache-control: .*immutable" "$FLEET/range.head" ||
	fleet_fail "no ETag: $(cat "$FLEET/range.head")"
answer same -H "If-None-Match: \"$base-$held\""
grep -q "^HTTP/1.1 304" "$FLEET/same.head" || fleet_fail "If-None-Match: $(cat "$FLEET/same.head")"
answer behind -r 99999999-
grep -q "^HTTP/1.1 416" "$FLEET/behind.head" && grep -qi "^content-range: bytes \*/$(wc -c <"$FLEET/whole.diff")$" "$FLEET/behind.head" ||
	fleet_fail "a range behind it: $(cat "$FLEET/behind.head")"
held=$(echo "$held" | tr 0-9a-f 1-9a-f0)
answer none
grep -q "^HTTP/1.1 404" "$FLEET/none.head" && grep -q no-difference "$FLEET/none.body" || fleet_fail "no such difference: $(cat "$FLEET/none.head")"

# --- refused
glyph_job "$FLEET/job.json" refused 2 1
for download in '{"codec":"sign"}' '{"codec":"sparse"}' '{"codec":"zip"}' '{}'; do
	sed "s/\"stop\"/\"download\": $download, \"stop\"/" "$FLEET/job.json" >"$FLEET/refused.json"
	curl_admin /v1/jobs --data-binary "@$FLEET/refused.json" >"$FLEET/answer" 2>/dev/null && fleet_fail "taken: $download"
	grep -q bad-job "$FLEET/answer" || fleet_fail "$download: $(cat "$FLEET/answer")"
done
fleet_end
