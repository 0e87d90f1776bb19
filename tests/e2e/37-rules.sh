#!/bin/sh
# stages: gcc
# Every rule and every server optimizer on a real fleet of seven, one of which is hostile: the models come where the honest ones
# want them, those of the plain mean do not. The coordinator is killed in the middle, with the optimizers' states on its disk: the
# same bits come out; and rivulet verify folds each round again.
set -u
FLEET_NAME=37-rules
. tests/e2e/common.sh
trainer=$(realpath "$BUILD/tests/tools/toy_trainer")
devices="toy1 toy2 toy3 toy4 toy5 toy6 toy7"
rounds=3

fleet_start "
[retention]
keep_deltas = yes
keep_last = 1
keep_every = 0"
for name in $devices; do
	glyph_device "$name" 1 20
	role=honest
	[ "$name" != toy4 ] || role=hostile
	printf '[trainer toy]\nexec = %s %s\n' "$trainer" $role >>"$FLEET/$name/rivulet.conf"
done

# jobs: NAME AGGREGATE CODEC; an adaptive optimizer moves a weight by its rate, whatever the delta
cat >"$FLEET/jobs" <<'END'
mean {} f32
bounded {"norm_bound": "median"} f32
bounded-fixed {"norm_bound": 25, "server_optimizer": {"rate": 0.5, "momentum": 0.5}} int8
median {"rule": {"name": "median", "hostile": 1}, "server_optimizer": {"name": "adagrad", "rate": 0.2}} f32
trimmed {"rule": {"name": "trimmed_mean", "hostile": 1}, "server_optimizer": {"name": "yogi", "rate": 0.05}} f32
krum {"rule": {"name": "krum", "hostile": 1}, "server_optimizer": {"name": "adam", "rate": 0.05}} f32
multi-krum {"rule": {"name": "krum", "hostile": 1, "picks": 3}, "server_optimizer": {"momentum": 0.3}} bf16
bulyan {"rule": {"name": "bulyan", "hostile": 1}, "server_optimizer": {"rate": 0.7, "momentum": 0.3, "nesterov": true}} f32
geometric {"rule": {"name": "geometric_median", "hostile": 1}} int8
clipping {"rule": {"name": "centered_clipping", "hostile": 1, "radius": 20, "iterations": 3}} f32
clipping-momentum {"rule": {"name": "centered_clipping", "hostile": 1, "radius": 20}, "server_optimizer": {"rate": 0.5, "momentum": 0.5}} f32
buckets {"rule": {"name": "median", "hostile": 1, "bucket": 2}} f32
nearest-trimmed {"rule": {"name": "trimmed_mean", "hostile": 1, "nearest": true}} f32
nearest-krum {"rule": {"name": "krum", "hostile": 1, "nearest": true}, "norm_bound": "median"} f32
END

submit_all() {
	: >"$FLEET/ids"
	while read -r name rest; do
		cat >"$FLEET/job.json" <<-END
			{"name": "$name", "seed": 3, "trainer": "toy",
			 "model": {"layers": [{"type": "maxpool2d", "kernel": 2}, {"type": "flatten"}, {"type": "linear", "name": "fc", "out": 21}], "loss": "cross_entropy"},
			 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 21},
			 "round": {"goal": 7, "deadline_s": 3600}, "aggregate": ${rest% *}, "upload": {"codec": "${rest##* }"},
			 "stop": {"rounds": $rounds}}
		END
		job_submit "$FLEET/job.json"
		echo "$name $JOB" >>"$FLEET/ids"
	done <"$FLEET/jobs"
}
rounds_done() { curl_admin /v1/jobs 2>/dev/null | pick "sum(j['rounds_committed'] for j in d['jobs'])" 2>/dev/null || echo 0; }
all_done() { [ "$(rounds_done)" -ge $((rounds * $(wc -l <"$FLEET/jobs"))) ]; }
moved() { all_done || [ "$(rounds_done)" -ge "$at" ]; }
histories() { # histories FILE
	: >"$1"
	while read -r name JOB; do
		echo "$name" >>"$1"
		history >>"$1"
	done <"$FLEET/ids"
}
run_all() { for name in $devices; do fleet_run "$name"; done; }

# shellcheck disable=SC2086 # a list
fleet_keep $devices
# shellcheck disable=SC2086
fleet_again $devices
submit_all
run_all
within 240 all_done || fleet_fail "not done: $(curl_admin /v1/jobs)"
histories "$FLEET/histories.all"

# --- where the models are

bad=
while read -r name JOB; do
	model=$(curl_admin "/v1/jobs/$JOB" | pick 'd["model"]')
	first=$(curl_admin "/v1/jobs/$JOB/rounds" | pick 'd["rounds"][0]["base"]')
	before=$("$trainer" distance "$FLEET/state/models/$first") && after=$("$trainer" distance "$FLEET/state/models/$model") ||
		fleet_fail "$name: no model to measure"
	near=$(awk -v before="$before" -v after="$after" 'BEGIN { print after != "inf" && after < 0.75 * before ? "True" : "False" }')
	echo "$name: mean distance from the honest target $before, after $rounds rounds $after"
	case $name:$near in mean:True | [!m]*:False | m[!e]*:False | median:False) bad="$bad $name" ;; esac
done <"$FLEET/ids"
[ -z "$bad" ] || fleet_fail "not as it must be:$bad"

# --- folded again

fleet_admin verify fetch "$FLEET/audit" >"$FLEET/fetched" 2>&1 || fleet_fail "fetch: $(cat "$FLEET/fetched")"
"$RIVULET" verify "$FLEET/audit" --json >"$FLEET/verified" 2>"$FLEET/verify.err" || fleet_fail "verify: $(cat "$FLEET/verify.err")"
pick "d['rounds']['folded'] == $((rounds * $(wc -l <"$FLEET/jobs"))) and d['rounds']['not_folded'] == 0" <"$FLEET/verified" | grep -qx True ||
	fleet_fail "folded again: $(cat "$FLEET/verified")"
echo "ok: $((rounds * $(wc -l <"$FLEET/jobs"))) rounds fold to the same bits"

# --- killed in between: jobs whose optimizer has a state

cp "$FLEET/jobs" "$FLEET/jobs.all"
grep server_optimizer "$FLEET/jobs.all" >"$FLEET/jobs"
# shellcheck disable=SC2086
fleet_again $devices
submit_all
run_all
kills=0
while [ $kills -lt 4 ]; do
	at=$(($(rounds_done) + 1))
	within 240 moved || fleet_fail "stands still: $(curl_admin /v1/jobs)"
	all_done && break
	fleet_kill KILL "$DAEMON_PID"
	kills=$((kills + 1))
	fleet_restart
done
[ $kills -ge 2 ] || fleet_fail "it was over after $kills kills, which shows little"
within 240 all_done || fleet_fail "not done: $(curl_admin /v1/jobs)"
histories "$FLEET/histories2"
grep -o '^[^ ]*' "$FLEET/jobs" | while read -r name; do grep -x -A $rounds -e "$name" "$FLEET/histories.all"; done >"$FLEET/histories1"
[ "$(wc -l <"$FLEET/histories1")" -eq $(((rounds + 1) * $(wc -l <"$FLEET/jobs"))) ] || fleet_fail "no histories to compare with"
cmp -s "$FLEET/histories1" "$FLEET/histories2" || fleet_fail "differs: $(diff "$FLEET/histories1" "$FLEET/histories2")"
fleet_end
echo "ok: the same after $kills kills"
