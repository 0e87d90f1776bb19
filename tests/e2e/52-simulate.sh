#!/bin/sh
# tests/tools/simulate is the fleet: for the same job document, data and device ids it names the same models, to the bit, and
# measures the same, round by round, as a coordinator with devices does. Rules, server optimizers and codecs of several kinds.
set -u
FLEET_NAME=52-simulate
. tests/e2e/common.sh
simulate=$BUILD/tests/tools/simulate
[ -x "$simulate" ] || skip "needs $simulate"
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
id_of() { curl_admin /v1/devices | pick "[x['device'] for x in d['devices'] if x['name'] == '$1'][0]"; }
ids=
for i in $(seq $devices); do
	ids="$ids${ids:+, }\"$(id_of "device$i")\""
done
cat >"$FLEET/fleet.json" <<END
{"ids": [$ids], "data": {"format": "glyphs", "seed": 1, "count": 200, "skew": 0.2, "test_count": 500}}
END

# compare NAME MEMBERS [LOCAL]: a job of 4 rounds with these further members, and of "local"
compare() {
	glyph_job "$FLEET/job.json" "$1" $devices 4
	sed -i "s/\"epochs\": 1/${3:-\"epochs\": 1}/;s/\"stop\"/$2, \"evaluate\": {\"by\": \"coordinator\", \"data\": \"digits\"}, \"stop\"/" "$FLEET/job.json"
	job_submit "$FLEET/job.json"
	job_done 120
	curl_admin "/v1/jobs/$JOB/rounds" |
		pick "'\n'.join('%d %s %r %r' % (r['round'], r['model'], r['evaluate']['accuracy'], r['evaluate']['loss']) for r in d['rounds'])" >"$FLEET/real"
	"$simulate" "$FLEET/job.json" "$FLEET/fleet.json" --models --threads 2 --out "$FLEET/last" >"$FLEET/lines" ||
		fleet_fail "$1: simulate ended with status $?"
	python3 -c 'import json, sys
for line in sys.stdin:
    r = json.loads(line)
    print(r["round"], r["model"], repr(r["accuracy"]), repr(r["loss"]))' <"$FLEET/lines" >"$FLEET/simulated"
	[ "$(wc -l <"$FLEET/real")" -eq 4 ] || fleet_fail "$1: not 4 rounds: $(cat "$FLEET/real")"
	cmp -s "$FLEET/real" "$FLEET/simulated" || fleet_fail "$1: differs: $(diff "$FLEET/real" "$FLEET/simulated")"
	[ "$(sha256sum <"$FLEET/last" | cut -d ' ' -f 1)" = "$MODEL" ] || fleet_fail "$1: the file written is not the model"
	echo "ok: $1: $MODEL"
}

compare mean '"aggregate": {"server_optimizer": {"name": "sgd", "rate": 0.9, "momentum": 0.5}}'
compare trimmed '"aggregate": {"rule": {"name": "trimmed_mean", "hostile": 1}, "server_optimizer": {"name": "yogi", "rate": 0.02}}, "upload": {"codec": "int8"}'
compare krum '"aggregate": {"rule": {"name": "krum", "hostile": 1, "picks": 3}, "norm_bound": 2}, "upload": {"codec": "int4"}'
compare clipping '"aggregate": {"rule": {"name": "centered_clipping", "hostile": 1, "radius": 1, "bucket": 2}}, "upload": {"codec": "sign"}'
compare nova '"aggregate": {"normalise": true}, "upload": {"codec": "bf16"}'
compare scaffold '"upload": {"codec": "int8"}' "\"epochs\": 1, \"control_variates\": {\"devices\": $devices}"
compare sparse '"upload": {"codec": "sparse", "share": 0.05}'
compare feedback '"upload": {"codec": "sign", "feedback": true}'
compare download '"download": {"codec": "int4", "feedback": true}, "aggregate": {"rule": {"name": "median"}}'
fleet_end
