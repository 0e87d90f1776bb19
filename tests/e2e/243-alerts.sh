#!/bin/sh
# stages: gcc
# The alerts of contrib/prometheus as promtool judges them, on what was recorded from a coordinator driven into each state; some states
# anew. Each alert has been seen to fire and names a heading of docs/operators.md, each kind of stuck job and each reason not to be ready has one
# alert, and rules and board ask for metrics that there are.
#   FULL=1 BUILD=build/mbedtls tests/e2e/243-alerts.sh      FULL=1: all states anew
set -u
# shellcheck disable=SC2034 # for fleet.sh
FLEET_NAME=243-alerts
. tests/e2e/common.sh
command -v promtool >/dev/null || skip "needs promtool (Debian: prometheus)"
python3 -c 'import yaml' 2>/dev/null || skip "needs python3-yaml"
alerts=contrib/prometheus

fleet_dir
run 0 promtool check rules $alerts/rivulet.rules.yml
tests/tools/alerts.py questions >"$FLEET/board.yml"
run 0 promtool check rules "$FLEET/board.yml"
# What is recorded waits for the most part.
promtool test rules $alerts/rules_test.yml >"$FLEET/committed" 2>&1 &
committed=$!
# shellcheck disable=SC2046 # no words: all
run 0 tests/tools/record_alerts.sh "$FLEET/recorded" $([ -n "${FULL:-}" ] || echo down agent devices_missing)
wait $committed || fleet_fail "$alerts/rules_test.yml: $(cat "$FLEET/committed")"
cp $alerts/rivulet.rules.yml "$FLEET"
tests/tools/alerts.py write "$FLEET/recorded" >"$FLEET/rules_test.yml" || fleet_fail "no test was written"
run 0 promtool test rules "$FLEET/rules_test.yml"
run 0 tests/tools/alerts.py check $alerts/rules_test.yml "$FLEET"/recorded/*.prom
told=$SAID
# And it can fail: with an expression that asks for something else, and with a kind that no alert asks for.
sed 's/up{job="rivulet"} == 0/up{job="rivulet"} == 2/; s/|too-slow"/|too-slow|fold"/' $alerts/rivulet.rules.yml >"$FLEET/rivulet.rules.yml"
run 1 promtool test rules "$FLEET/rules_test.yml"
says "RivuletDown"
says 'got: {kind="gave-up"}'
echo "$told; $(wc -l <"$FLEET/recorded/cases") cases anew"
