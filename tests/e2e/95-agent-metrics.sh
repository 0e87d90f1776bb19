#!/bin/sh
# stages: gcc openssl address
# The file that the agent writes for node_exporter: while it trains, waits, cannot reach the coordinator and is refused by it, as promtool wants it,
# readable for all, and without a name of the device. What comes out of the outbox counts, too. A folder that is not there is told once, and the
# training goes on.
#   BUILD=build/mbedtls tests/e2e/95-agent-metrics.sh
set -u
FLEET_NAME=95-agent-metrics
. tests/e2e/common.sh
promtool=$(command -v promtool)

is() { # is SERIES VALUE: does the file say so?
	grep -qxF "rivulet_agent_$1 $2" "$FLEET/node/agent.prom" 2>/dev/null
}
value() {
	sed -n "s/^rivulet_agent_$1 //p" "$FLEET/node/agent.prom"
}
why() { # why REASON: it is that, and nothing else
	[ "$(sed -n 's/^rivulet_agent_waiting{reason="\(.*\)"} 1$/\1/p' "$FLEET/node/agent.prom" 2>/dev/null)" = "$1" ]
}
fleet_start "[limits]
long_poll = 1
retry_after = 1
retry_after_suspended = 1"
mkdir "$FLEET/node"
glyph_device a 1 60
sed -i "s,^\\[device\\],&\nmetrics_file = $FLEET/node/agent.prom," "$FLEET/a/rivulet.conf"
cat >"$FLEET/late" <<-'END'
	cd "$1" || exit 1
	sleep 3
	cat base.safetensors >after.safetensors
	echo '{"examples": 60, "steps": 1, "loss": 1}' >report.json
END
printf '[trainer late]\nexec = /bin/sh %s\n' "$FLEET/late" >>"$FLEET/a/rivulet.conf"
began=$(date +%s)

# --- before the first answer
fleet_kill TERM "$DAEMON_PID"
fleet_run a
within 30 why unreachable || fleet_fail "not unreachable: $(cat "$FLEET/node/agent.prom")"
is last_contact_timestamp_seconds NaN || fleet_fail "a contact before the first answer: $(value last_contact_timestamp_seconds)"
start=$(value start_time_seconds)
[ "${start%.*}" -ge "$began" ] && [ "${start%.*}" -le "$(date +%s)" ] || fleet_fail "started at $start, begun $began"
if [ -n "$promtool" ]; then
	"$promtool" check metrics <"$FLEET/node/agent.prom" >"$FLEET/said" 2>&1 && [ ! -s "$FLEET/said" ] || fleet_fail "promtool: $(cat "$FLEET/said")"
fi
fleet_restart

# --- at work
within 20 is 'waiting{reason="no-job"}' 1 || fleet_fail "no reason: $(cat "$FLEET/node/agent.prom")"
is 'task{task="none"}' 1 && is rounds_total 0 || fleet_fail "before the first task: $(cat "$FLEET/node/agent.prom")"
[ "$(stat -c %a "$FLEET/node/agent.prom")" = 644 ] || fleet_fail "mode $(stat -c %a "$FLEET/node/agent.prom")"
glyph_job "$FLEET/job.json" metered 1 2
job_submit "$FLEET/job.json"
job_done 30
within 30 is rounds_total 2 || fleet_fail "two rounds: $(cat "$FLEET/node/agent.prom")"
[ "$(value sent_bytes_total)" -gt 300000 ] && [ "$(value received_bytes_total)" -gt 300000 ] || fleet_fail "bytes: $(cat "$FLEET/node/agent.prom")"
contact=$(value last_contact_timestamp_seconds)
[ "${contact%.*}" -ge "$began" ] && [ "${contact%.*}" -le "$(date +%s)" ] || fleet_fail "contact $contact, begun $began"
end=$(date -d "$(openssl x509 -in "$FLEET/a/cert.pem" -noout -enddate | sed 's/.*=//')" +%s)
is certificate_expiry_timestamp_seconds "$end" || fleet_fail "the certificate ends $end: $(value certificate_expiry_timestamp_seconds)"
is outbox_deltas 0 || fleet_fail "the outbox is not empty: $(value outbox_deltas)"
if [ -n "$promtool" ]; then
	"$promtool" check metrics <"$FLEET/node/agent.prom" >"$FLEET/said" 2>&1 || fleet_fail "promtool: $(cat "$FLEET/said")"
	[ ! -s "$FLEET/said" ] || fleet_fail "promtool: $(cat "$FLEET/said")"
fi
grep -qE "instance=|job=|$(pick 'd["device"][:8]' <"$FLEET/a/device.json")|127.0.0.1|localhost|[^a-z]a[^a-z.]*\"" "$FLEET/node/agent.prom" && fleet_fail "a name: $(cat "$FLEET/node/agent.prom")"
# Every metric is in the page, and none there is made up.
grep -o '^rivulet_agent_[a-z_]*' "$FLEET/node/agent.prom" | sort -u >"$FLEET/there"
grep -o 'rivulet_agent_[a-z_]*' docs/devices.md | sort -u >"$FLEET/told"
cmp -s "$FLEET/there" "$FLEET/told" || fleet_fail "the page and the file differ: $(diff "$FLEET/told" "$FLEET/there")"

# --- the coordinator is away; what is done then waits, and counts once it is taken
glyph_job "$FLEET/job.json" late 1 1
sed -i 's/"local"/"trainer": "late", "local"/' "$FLEET/job.json"
job_submit "$FLEET/job.json"
within 30 is 'task{task="train"}' 1 || fleet_fail "no task: $(cat "$FLEET/node/agent.prom")"
fleet_kill KILL "$DAEMON_PID"
within 30 why unreachable || fleet_fail "not unreachable: $(grep waiting "$FLEET/node/agent.prom")"
is outbox_deltas 1 && is rounds_total 2 || fleet_fail "nothing waits: $(cat "$FLEET/node/agent.prom")"
[ "$(value start_time_seconds)" = "$start" ] || fleet_fail "another start: $(value start_time_seconds), not $start"

# --- there again, but it refuses the device, and then takes what waited
kill -STOP "$AGENT_PID"
fleet_restart
fleet_admin device suspend a >/dev/null || fleet_fail "cannot suspend"
kill -CONT "$AGENT_PID"
within 60 why suspended || fleet_fail "not suspended: $(grep waiting "$FLEET/node/agent.prom")"
fleet_admin device resume a >/dev/null || fleet_fail "cannot resume"
within 60 is rounds_total 3 || fleet_fail "what waited does not count: $(cat "$FLEET/node/agent.prom")"
job_done 30
within 30 why no-job || fleet_fail "still refused: $(grep waiting "$FLEET/node/agent.prom")"
is outbox_deltas 0 || fleet_fail "it still waits: $(value outbox_deltas)"
fleet_admin device suspend a >/dev/null || fleet_fail "cannot suspend"
within 30 why suspended || fleet_fail "not suspended: $(grep waiting "$FLEET/node/agent.prom")"
fleet_admin device resume a >/dev/null || fleet_fail "cannot resume"
within 30 why no-job || fleet_fail "still suspended: $(grep waiting "$FLEET/node/agent.prom")"

# --- a folder that goes away: said once, the work goes on, and the file comes back
mv "$FLEET/node" "$FLEET/elsewhere"
glyph_job "$FLEET/job.json" unseen 1 3
job_submit "$FLEET/job.json"
job_done 60
[ "$(log_lines 1 "$FLEET/a.log" 'warn metrics.failed reason=.*agent.prom')" = 1 ] || fleet_fail "not told once: $(grep metrics "$FLEET/a.log")"
mv "$FLEET/elsewhere" "$FLEET/node"
within 30 is rounds_total 6 || fleet_fail "the file does not come back: $(value rounds_total)"
[ "$(grep -c metrics.failed "$FLEET/a.log")" = 1 ] || fleet_fail "told again: $(grep metrics "$FLEET/a.log")"
[ "$(ls "$FLEET/node")" = agent.prom ] || fleet_fail "left behind: $(ls "$FLEET/node")"

# --- for good
fleet_admin device revoke a >/dev/null || fleet_fail "cannot revoke"
within 60 why revoked || fleet_fail "not revoked: $(grep waiting "$FLEET/node/agent.prom")"
fleet_end
echo "ok: $(grep -c '^rivulet' "$FLEET/node/agent.prom") series, ${promtool:-no promtool here}"
