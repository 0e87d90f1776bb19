#!/bin/sh
# stages: gcc openssl address
# The file that the agent writes for node_exporter: while it trains, waits and cannot reach the coordinator, as promtool wants it, readable for all, and
# without a name of the device. A folder that is not there is told once, and the training goes on.
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
fleet_start "[limits]
long_poll = 1
retry_after = 1"
mkdir "$FLEET/node"
glyph_device a 1 60
sed -i "s,^\\[device\\],&\nmetrics_file = $FLEET/node/agent.prom," "$FLEET/a/rivulet.conf"
began=$(date +%s)
fleet_run a
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

# --- the coordinator is away; what is done then waits
fleet_kill KILL "$DAEMON_PID"
within 30 is 'waiting{reason="unreachable"}' 1 || fleet_fail "not unreachable: $(grep waiting "$FLEET/node/agent.prom")"
fleet_restart
reached() { is 'waiting{reason="unreachable"}' 0; }
within 60 reached || fleet_fail "still unreachable"

# --- a folder that goes away: said once, the work goes on, and the file comes back
mv "$FLEET/node" "$FLEET/elsewhere"
glyph_job "$FLEET/job.json" unseen 1 3
job_submit "$FLEET/job.json"
job_done 60
[ "$(log_lines 1 "$FLEET/a.log" 'warn metrics.failed reason=.*agent.prom')" = 1 ] || fleet_fail "not told once: $(grep metrics "$FLEET/a.log")"
mv "$FLEET/elsewhere" "$FLEET/node"
within 30 is rounds_total 5 || fleet_fail "the file does not come back: $(value rounds_total)"
[ "$(grep -c metrics.failed "$FLEET/a.log")" = 1 ] || fleet_fail "told again: $(grep metrics "$FLEET/a.log")"
[ "$(ls "$FLEET/node")" = agent.prom ] || fleet_fail "left behind: $(ls "$FLEET/node")"
fleet_end
echo "ok: $(grep -c '^rivulet' "$FLEET/node/agent.prom") series, ${promtool:-no promtool here}"
