#!/bin/sh
# stages: gcc
# rivulet simulate is the fleet: for the same job document, data and device ids it names the same models, to the bit, and
# measures the same, round by round, as a coordinator with devices does; and repeats rounds from the coordinator's records. Rules, server optimizers and codecs of several kinds. And
# settings that are neutral leave a job's weights as they are without them.
set -u
FLEET_NAME=52-simulate
. tests/e2e/common.sh
devices=5

fleet_start "
[data digits]
format = glyphs
seed = 1
count = 500"
for i in $(seq $devices); do
	glyph_device "device$i" "$i" 200
	fleet_run "device$i"
done
fleet_table device1 device2 device3 device4 device5
cat >"$FLEET/fleet.conf" <<END
[data digits]
format = glyphs
seed = 1
count = 200
skew = 0.2
[data test]
format = glyphs
seed = 1
count = 500
END

# compare NAME MEMBERS [LOCAL]: a job of 4 rounds with these further members, and of "local"
compare() {
	glyph_job "$FLEET/job.json" "$1" $devices 4
	sed -i "s/\"epochs\": 1/${3:-\"epochs\": 1}/;s/\"stop\"/$2, \"evaluate\": {\"by\": \"coordinator\", \"data\": \"digits\"}, \"stop\"/" "$FLEET/job.json"
	job_submit "$FLEET/job.json"
	job_done 120
	as_simulated 4 "$1"
	echo "ok: $1: $MODEL"
}

compare mean '"aggregate": {"server_optimizer": {"name": "sgd", "rate": 0.9, "momentum": 0.5}}'
compare trimmed '"aggregate": {"rule": {"name": "trimmed_mean", "hostile": 1}, "server_optimizer": {"name": "yogi", "rate": 0.02}}, "upload": {"codec": "int8"}'
compare krum '"aggregate": {"rule": {"name": "krum", "hostile": 1, "picks": 3}, "norm_bound": 2}, "upload": {"codec": "int4"}'
compare clipping '"aggregate": {"rule": {"name": "centered_clipping", "hostile": 1, "radius": 1, "bucket": 2}}, "upload": {"codec": "sign"}'
compare nova '"aggregate": {"normalise": true}, "upload": {"codec": "bf16"}'
compare scaffold '"upload": {"codec": "int8"}' "\"epochs\": 1, \"control_variates\": {\"devices\": $devices}"
compare share '"aggregate": {"max_examples": 60}'
[ "$(curl_admin "/v1/jobs/$JOB/rounds/2" | pick "d['examples']")" = 300 ] || fleet_fail "more than 60 examples of a device: $(curl_admin "/v1/jobs/$JOB/rounds/2")"
compare share-batch '"aggregate": {"max_examples": 25}' '"epochs": 2'
compare sparse '"upload": {"codec": "sparse", "share": 0.05}'
compare feedback '"upload": {"codec": "sign", "feedback": true}'
compare download '"download": {"codec": "int4", "feedback": true}, "aggregate": {"rule": {"name": "median", "hostile": 0}}'

# replayed ROUNDS [ARGUMENTS...]: the rounds of JOB come out of the coordinator's records again
replayed() {
	fleet_admin verify fetch "$FLEET/records" --no-deltas >/dev/null || fleet_fail "no records"
	replayed_rounds=$1
	shift
	"$RIVULET" simulate "$FLEET/job.json" --replay "$FLEET/records" --config "$FLEET/fleet.conf" --fleet "$FLEET/names.csv" "$@" >"$FLEET/lines" ||
		return 1
	python3 -S -E -c 'import json, sys
print(*(r["round"] for r in map(json.loads, sys.stdin) if "summary" not in r))' <"$FLEET/lines" >"$FLEET/numbers"
	[ "$(cat "$FLEET/numbers")" = "$(seq -s ' ' "$replayed_rounds")" ] || fleet_fail "repeated: $(cat "$FLEET/numbers")"
}
# Three of the five in each round, whichever comes first: nothing but the records says who.
printf '%s\n' name device1 device2 device3 device4 device5 >"$FLEET/names.csv"
glyph_job "$FLEET/job.json" some 3 4
sed -i 's/"stop"/"upload": {"codec": "sign", "feedback": true}, "evaluate": {"by": "coordinator", "data": "digits"}, "stop"/' "$FLEET/job.json"
job_submit "$FLEET/job.json"
job_done 120
replayed 4 || fleet_fail "not repeated: $(cat "$FLEET/lines")"
replayed 4 --out "$FLEET/last" --threads 1 && [ "$(sha256sum <"$FLEET/last" | cut -d ' ' -f 1)" = "$MODEL" ] || fleet_fail "the file written is not the model"
# On other data it is another model, and said to be.
sed -i 's/^count = 200/count = 201/' "$FLEET/fleet.conf"
replayed 4 2>"$FLEET/said"
[ $? -eq 1 ] && grep -q "round 1: model .* comes out, the record says" "$FLEET/said" || fleet_fail "other data: $(cat "$FLEET/said")"
sed -i 's/^count = 201/count = 200/' "$FLEET/fleet.conf"
echo "ok: repeated from the records"
# Rounds that take what arrives, each delta by its age.
glyph_job "$FLEET/job.json" buffered 2 6
sed -i 's/"goal": 2/"mode": "buffered", "goal": 2, "concurrency": 5/;s/"stop"/"upload": {"codec": "int8"}, "evaluate": {"by": "coordinator", "data": "digits"}, "stop"/' "$FLEET/job.json"
job_submit "$FLEET/job.json"
job_done 120
replayed 6 --out "$FLEET/last" && [ "$(sha256sum <"$FLEET/last" | cut -d ' ' -f 1)" = "$MODEL" ] || fleet_fail "buffered, not repeated: $(cat "$FLEET/lines")"
tail -n 1 "$FLEET/lines" | grep -q '"staleness":{[^}]*"max":[1-9]' || fleet_fail "no delta was late: $(tail -n 1 "$FLEET/lines")"
echo "ok: buffers repeated from the records"
# With a rate that soon is too large, so that the guard goes back by what devices measured of a base; and with more reports wanted than
# there are devices, until somebody lets two of them do: records say what was in force.
glyph_job "$FLEET/job.json" branches 2 8
sed -i 's/"goal": 2/"mode": "buffered", "goal": 6, "concurrency": 4/;s/"classes": 10/"classes": 10, "validation": 0.2/;s/"stop"/"aggregate": {"server_optimizer": {"rate": 1, "momentum": 0.5, "schedule": {"type": "step", "every": 2, "gamma": 10}}}, "evaluate": {"by": "devices"}, "guard": {"metric": "loss", "factor": 1.3, "do": "rollback", "times": 1000}, "stop"/' "$FLEET/job.json"
job_submit "$FLEET/job.json"
fleet_admin job set branches round.goal=2 >/dev/null || fleet_fail "the goal cannot be lowered"
job_done 120
replayed 8 --out "$FLEET/last" && [ "$(sha256sum <"$FLEET/last" | cut -d ' ' -f 1)" = "$MODEL" ] || fleet_fail "branches, not repeated: $(cat "$FLEET/lines")"
grep -q '"guard":"rollback"' "$FLEET/lines" || fleet_fail "the guard never went back: $(cat "$FLEET/lines")"
"$RIVULET" verify "$FLEET/records" >"$FLEET/verified" 2>&1 || fleet_fail "verify: $(cat "$FLEET/verified")"
curl_admin "/v1/jobs/$JOB/rounds" | pick "all(r['goal'] == 2 and r['overrides'] == {'round.goal': 2} for r in d['rounds'])" | grep -qx True ||
	fleet_fail "what was in force: $(curl_admin "/v1/jobs/$JOB/rounds")"
echo "ok: a guard of buffers repeated from the records"

# A model's file names its job, whose id is that of its document: so what jobs come to is the hash of the weights.
weights() {
	python3 -S -E -c 'import hashlib, sys
d = open(sys.argv[1], "rb").read()
print(hashlib.sha256(d[8 + int.from_bytes(d[:8], "little"):]).hexdigest())' "$1"
}
# simulated MEMBERS LOCAL: the weights after 4 rounds
simulated() {
	glyph_job "$FLEET/job.json" plain $devices 4
	sed -i "s/\"epochs\": 1/$2/;s/\"stop\"/${1:+$1, }\"stop\"/" "$FLEET/job.json"
	"$RIVULET" simulate "$FLEET/job.json" --fleet "$FLEET/fleet.csv" --config "$FLEET/fleet.conf" --test test --threads 2 \
		--out "$FLEET/last" >"$FLEET/lines" || fleet_fail "simulate {$1} {$2} ended with status $?"
	weights "$FLEET/last"
}
# neutral MEMBERS [LOCAL]
plain=$(simulated '' '"epochs": 1')
neutral() {
	[ "$(simulated "$1" "${2:-\"epochs\": 1}")" = "$plain" ] || fleet_fail "not neutral: $1 ${2:-}"
	echo "ok: neutral: $1${2:+ }${2:-}"
}
neutral '"upload": {"codec": "f32"}'
neutral '"upload": {"codec": "f32", "feedback": true}'
neutral '"upload": {"codec": ["f32", "sparse"], "feedback": true}'
neutral '"aggregate": {"rule": {"name": "mean", "bucket": 1}, "norm_bound": 1e29, "server_optimizer": {"rate": 1, "schedule": {"warmup": 0}}}'
neutral '' '"epochs": 1, "prox": 0, "accumulate": 1, "clip_norm": 1e29'
[ "$(simulated '"upload": {"codec": "sign", "feedback": true}' '"epochs": 1')" != "$plain" ] || fleet_fail "the weights of one bit are those of f32"

# A guard that finds nothing bad, in a coordinator.
glyph_job "$FLEET/job.json" guarded $devices 4
sed -i 's/"stop"/"guard": {"metric": "loss", "factor": 100, "do": "rollback"}, "evaluate": {"by": "coordinator", "data": "digits"}, "stop"/' "$FLEET/job.json"
job_submit "$FLEET/job.json"
job_done 120
[ "$(weights "$FLEET/state/models/$MODEL")" = "$plain" ] || fleet_fail "a guard that never acts changes the model"
curl_admin "/v1/jobs/$JOB" | pick 'd["guard"]["bad"] == 0 and d["guard"]["best"]["round"] > 0' | grep -qx True ||
	fleet_fail "the guard saw nothing: $(curl_admin "/v1/jobs/$JOB")"
echo "ok: neutral: a guard that never acts"
fleet_end
