#!/bin/sh
# Tasks of kind evaluate: the last model of a job whose devices evaluate gets its figure, also when the coordinator is killed on the
# way.
set -u
FLEET_NAME=56-evaluate-task
. tests/e2e/common.sh

fleet_start
for n in 1 2; do
	glyph_device device$n $n 200
done
glyph_job "$FLEET/plain.json" measured 2 2
python3 - "$FLEET/plain.json" "$FLEET/job.json" <<'END'
import json, sys
job = json.load(open(sys.argv[1]))
job["data"]["validation"] = 0.25
job["evaluate"] = {"by": "devices"}
json.dump(job, open(sys.argv[2], "w"))
END
fleet_run device1
fleet_run device2
job_submit "$FLEET/job.json"
job_done 60
curl_admin "/v1/jobs/$JOB"
curl_admin "/v1/jobs/$JOB/rounds"
tail -5 $FLEET/device1.log
fleet_end
