#!/bin/sh
# stages: gcc address
# Defaults of new jobs: what a coordinator notes beside a job is in force in its rounds, in their records and when they are folded again or
# repeated; a job that was submitted to an earlier version folds to what its document always meant, to the bit.
set -u
FLEET_NAME=78-defaults
. tests/e2e/common.sh
CHECKS=0

fleet_start "
[retention]
keep_deltas = yes
[data digits]
format = glyphs
seed = 1
count = 50"
# Twenty times the examples, twenty times the steps: the few are to count for 10.5 times as much, or for as much as the bound says.
glyph_device few 1 20
glyph_device many 2 400
fleet_table few many

# unequal NAME AGGREGATE: a job of two rounds, submitted; nobody works on it yet
unequal() {
	glyph_job "$FLEET/$1.json" "$1" 2 2
	sed -i "s/\"stop\"/\"aggregate\": {\"normalise\": true$2}, \"stop\"/" "$FLEET/$1.json"
	job_submit "$FLEET/$1.json"
}
noted() { curl_admin "/v1/jobs/$JOB" | pick "d['defaults']"; }
weights() { # of the job's last model, without its header, which names the job
	fleet_admin model get "$JOB" -o "$FLEET/$1.safetensors" >/dev/null || fleet_fail "$1 has no model"
	python3 -S -E -c 'import hashlib, struct, sys
b = open(sys.argv[1], "rb").read()
print(hashlib.sha256(b[8 + struct.unpack("<Q", b[:8])[0]:]).hexdigest())' "$FLEET/$1.safetensors"
}

unequal old ''
old=$JOB
[ "$(noted)" = "{'aggregate.normalise_max': 2}" ] || fleet_fail "noted: $(noted)"
fleet_kill TERM "$DAEMON_PID"
python3 -S -E -c 'import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as db:
    assert db.execute("DELETE FROM job_stamp").rowcount == 1' "$FLEET/state/rivulet.db" || fleet_fail "there is no row"
fleet_restart
[ "$(noted)" = "{}" ] || fleet_fail "noted: $(noted)"
unequal new ''
new=$JOB
unequal two ', "normalise_max": 2'
two=$JOB
[ "$(noted)" = "{}" ] || fleet_fail "noted although the document says it: $(noted)"
unequal none ', "normalise_max": 0'
none=$JOB
# Work by measured speed normalises of itself, but not in new jobs of buffered rounds.
glyph_job "$FLEET/sized.json" sized 2 3
sed -i 's/"epochs": 1/"target_s": 1, "min_steps": 2, "max_steps": 40/; s/"goal": 2/"goal": 2, "mode": "buffered", "concurrency": 2/' "$FLEET/sized.json"
job_submit "$FLEET/sized.json"
sized=$JOB
[ "$(noted)" = "{'aggregate.normalise': False}" ] || fleet_fail "noted beside buffered rounds: $(noted)"
fleet_run few
fleet_run many
for JOB in $old $new $two $none $sized; do job_done 60; done
for word in old new two none; do
	eval "JOB=\$$word"
	eval "$word=$(weights $word)"
	eval "job_$word=$JOB"
done
[ "$new" = "$two" ] || fleet_fail "the noted bound is not that of the document"
[ "$old" = "$none" ] || fleet_fail "a job of before has another model than without a bound"
[ "$new" != "$old" ] || fleet_fail "the bound changes nothing here: the test cannot fail"
echo "ok: new jobs have the bound, older ones what they had"

run 0 fleet_admin verify fetch "$FLEET/audit"
run 0 "$RIVULET" verify "$FLEET/audit" --json
printf '%s\n' "$SAID" >"$FLEET/verified"
[ "$(pick 'd["rounds"]["not_folded"]' <"$FLEET/verified")" = 0 ] || fleet_fail "not all rounds were folded again: $SAID"
for word in old new; do
	eval "JOB=\$job_$word"
	curl_admin "/v1/jobs/$JOB/rounds/2/record" >"$FLEET/$word.record" || fleet_fail "no record"
done
grep -q 'defaults.*aggregate.normalise_max.*:2}' "$FLEET/new.record" || fleet_fail "the record does not say it: $(cat "$FLEET/new.record")"
grep -q 'defaults' "$FLEET/old.record" && fleet_fail "a record of before says it"
JOB=$sized
curl_admin "/v1/jobs/$JOB/rounds/3/record" >"$FLEET/sized.record" || fleet_fail "no record"
grep -q 'defaults.*aggregate.normalise.*:false}' "$FLEET/sized.record" || fleet_fail "the record does not say it: $(cat "$FLEET/sized.record")"
echo "ok: folded again by the records"

cat >"$FLEET/fleet.conf" <<END
[data digits]
format = glyphs
seed = 1
skew = 0.2
END
sed -i '1s/$/,examples/; 2s/$/,20/; 3s/$/,400/' "$FLEET/fleet.csv"
for word in old new; do
	run 0 "$RIVULET" simulate "$FLEET/$word.json" --replay "$FLEET/audit" --fleet "$FLEET/fleet.csv" --config "$FLEET/fleet.conf" --test digits
	says '"rounds":2,'
done
fleet_end
echo "ok: repeated"
