#!/bin/sh
# stages: gcc address
# Jobs whose tasks fail on a device rest there, each alone: a good one beside a dozen of them goes on. What diverges, is refused by the
# coordinator, or finds no data of its shape fails; everybody can see why.
set -u
FLEET_NAME=721-failing-jobs
. tests/e2e/common.sh
fleet_start
fleet_join dev "[data d]
format = csv
path = $FLEET/d.csv
[data numbers]
format = csv
kind = regression
path = $FLEET/d.csv"
awk 'BEGIN { print "a,b,c,y"; for (i = 0; i < 40; i++) printf "%d,%d,%d,%d\n", i % 7, i % 5, i % 3, i % 2 }' >"$FLEET/d.csv"
# submit NAME RATE SHAPE MORE
submit() {
	case $1 in
	diverges*) out=1 loss=mse data='"name": "numbers"' ;;
	*) out=2 loss=cross_entropy data='"name": "d", "classes": 2' ;;
	esac
	cat >"$FLEET/$1.json" <<-END
		{"name": "$1", "seed": 1, "model": {"layers": [{"type": "linear", "name": "fc", "out": $out}], "loss": "$loss"},
		 "data": {$data, "shape": [$3]},
		 "local": {"epochs": 30, "batch": 8, "optimizer": {"rate": $2}},
		 "round": {"goal": 1, "deadline_s": 1}, $4 "stop": {"rounds": 0}}
	END
	job_submit "$FLEET/$1.json"
}
rounds() { curl_admin "/v1/jobs/$1" | pick 'd["rounds_committed"]'; }
gave_up() { [ "$(curl_admin "/v1/jobs/$1" | pick 'd["devices"]["gave_up"]')" = "{'$2': 1}" ]; }
for n in 1 2 3 4 5 6 7 8 9 10; do
	submit "diverges$n" "9999$n" 3 ""
done
diverges=$JOB
submit refused 0.1 3 '"aggregate": {"max_norm": 1e-9},'
refused=$JOB
submit shapeless 0.1 7 ""
shapeless=$JOB
submit good 0.01 3 ""
good=$JOB
fleet_run dev
enough() { [ "$(rounds "$good")" -gt 200 ]; }
within 30 enough || fleet_fail "beside twelve that fail: $(rounds "$good") rounds"
within 30 gave_up "$diverges" not-finite || fleet_fail "not seen: $(curl_admin "/v1/jobs/$diverges")"
within 30 gave_up "$refused" other || fleet_fail "not seen: $(curl_admin "/v1/jobs/$refused")"
within 30 gave_up "$shapeless" data-mismatch || fleet_fail "not seen: $(curl_admin "/v1/jobs/$shapeless")"

# Alone, one that fails over and over rests for longer each time, and the agent says so.
for n in 1 2 3 4 5 6 7 8 9 10; do fleet_admin job stop "diverges$n" >/dev/null; done
fleet_admin job stop good >/dev/null
fleet_admin job stop shapeless >/dev/null
often() { [ "$(grep -c "job.rests job=$refused" "$FLEET/dev.log")" -ge 4 ]; }
within 60 often || fleet_fail "it is not tried again: $(tail -5 "$FLEET/dev.log")"
told() { [ "$(curl_admin /v1/devices/dev | pick 'd["reason"]')" = resting ]; }
within 30 told || fleet_fail "the coordinator does not say so: $(curl_admin /v1/devices/dev)"
fleet_end
echo "ok: jobs that fail rest alone"
