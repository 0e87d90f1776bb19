#!/bin/sh
# stages: gcc address
# A server's rate that follows the number of reports: four devices, then two, with the coordinator killed in between. The factors in the
# audit records follow from the reports, and rivulet verify folds each round again with them.
set -u
FLEET_NAME=38-scale
. tests/e2e/common.sh
rounds=12

fleet_start "
[retention]
keep_deltas = yes"
for i in 1 2 3 4; do glyph_device device$i $i 100; done
cat >"$FLEET/job.json" <<END
{"name": "scale", "seed": 7,
 "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc", "out": 10}], "loss": "cross_entropy"},
 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
 "local": {"steps": 1, "batch": 0, "optimizer": {"name": "sgd", "rate": 0.1}},
 "round": {"goal": 4, "quorum": 2, "grace_s": 1, "deadline_s": 3600},
 "aggregate": {"server_optimizer": {"rate": 0.8, "momentum": 0.5, "scale": {"by": "linear", "reports": 4, "warmup": 3}}},
 "stop": {"rounds": $rounds}}
END
job_submit "$FLEET/job.json"
# Two of them leave after four rounds.
fleet_run device1 --rounds 4
fleet_run device2 --rounds 4
fleet_run device3
fleet_run device4
some() { [ "$(curl_admin "/v1/jobs/$JOB" 2>/dev/null | pick 'd["rounds_committed"]' 2>/dev/null || echo 0)" -ge "$1" ]; }
within 60 some 4 || fleet_fail "no four rounds: $(curl_admin "/v1/jobs/$JOB")"
fleet_kill KILL "$DAEMON_PID"
fleet_restart
within 60 some 7 || fleet_fail "no seven rounds: $(curl_admin "/v1/jobs/$JOB")"
fleet_kill KILL "$DAEMON_PID"
fleet_restart
job_done 120

fleet_admin verify fetch "$FLEET/audit" >"$FLEET/fetched" 2>&1 || fleet_fail "fetch: $(cat "$FLEET/fetched")"
python3 -S -E - "$FLEET/audit/bodies.jsonl" $rounds <<-'END' || fleet_fail "the factors do not follow from the reports"
	import json, sys
	rows = [d for d in map(json.loads, open(sys.argv[1])) if d["event"] == "round.committed"]
	assert len(rows) == int(sys.argv[2])
	used = start = to = 1.0
	step = 0
	for d in rows:
	    target = d["reports"] / 4
	    if target != to:
	        start, to, step = used, target, 0
	    step += 1
	    used = to if step >= 3 else start + (to - start) * (step / 3)
	    assert d["server_optimizer"]["factor"] == used, (d["round"], d["reports"], d["server_optimizer"], used)
	print("reports", [d["reports"] for d in rows], "factors", ["%.3f" % d["server_optimizer"]["factor"] for d in rows])
	assert rows[-1]["reports"] == 2 and len({d["reports"] for d in rows}) > 1
	assert len({d["server_optimizer"]["factor"] for d in rows}) > 3
END
"$RIVULET" verify "$FLEET/audit" --json >"$FLEET/verified" 2>"$FLEET/verify.err" || fleet_fail "verify: $(cat "$FLEET/verify.err")"
[ "$(pick 'd["rounds"]["folded"], d["rounds"]["not_folded"]' <"$FLEET/verified")" = "($rounds, 0)" ] || fleet_fail "not all folded: $(cat "$FLEET/verified")"
fleet_end
echo "ok: $rounds rounds fold to the same bits at the rates that the reports gave"
