#!/bin/sh
# stages: gcc openssl address
# The audit log of a real fleet: what it holds, that it verifies offline, that every damage is named at the right entry, that
# rounds folded again from kept deltas give the same bits, also by other builds, what a device has touched, and that an erased
# device leaves a chain that verifies.
#   OTHER_BUILDS="DIR..."   as in 30-reproducible.sh
set -u
FLEET_NAME=70-audit
. tests/e2e/common.sh
command -v openssl >/dev/null || skip "needs openssl"

verify() { # verify DIR [ARGUMENT...]: offline, and says so with JSON
	"$RIVULET" verify "$@" --json >"$FLEET/verified" 2>"$FLEET/verify.err"
}
verified() { pick "$1" <"$FLEET/verified"; }
good() { # good DIR WHAT
	verify "$1" || fleet_fail "$2: $(cat "$FLEET/verify.err")"
}

# tamper WHAT SEQ: spoils a copy of the fetched chain, in $FLEET/bad
tamper() {
	rm -rf "$FLEET/bad"
	cp -a "$FLEET/audit" "$FLEET/bad"
	tamper_key=$FLEET/other.key
	[ "$1" != rewrite ] || tamper_key=$FLEET/state/keys/sign.key
	python3 -S -E - "$FLEET/bad" "$1" "$2" "$tamper_key" <<-'END' || fleet_fail "cannot tamper: $1 $2"
		import base64, hashlib, json, subprocess, sys
		where, what, seq, key = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
		chain = bytearray(open(where + "/chain", "rb").read())
		bodies = open(where + "/bodies.jsonl", "rb").read().split(b"\n")[:-1]
		details = open(where + "/details.jsonl", "rb").read().split(b"\n")[:-1]
		links = [bytes(chain[i:i + 256]) for i in range(0, len(chain), 256)]
		i = seq - 1
		def flip(b, at):
		    return b[:at] + bytes([b[at] ^ 1]) + b[at + 1:]
		def own(d, s):
		    return json.loads(d)["seq"] == s
		if what == "link":  # in the time it names
		    links[i] = flip(links[i], 16)
		elif what == "signature":
		    links[i] = flip(links[i], 240)
		elif what == "reserved":
		    links[i] = flip(links[i], 150)
		elif what == "body":
		    bodies[i] = flip(bodies[i], bodies[i].index(b"event") + 8)
		elif what == "detail":
		    at = [n for n, d in enumerate(details) if own(d, seq)][0]
		    d = json.loads(details[at])
		    d["data"] = base64.b64encode(flip(base64.b64decode(d["data"]), 3)).decode()
		    details[at] = json.dumps(d).encode()
		elif what == "salt":
		    at = [n for n, d in enumerate(details) if own(d, seq)][0]
		    details[at] = details[at].replace(b'"salt":"', b'"salt":"00')[:]
		elif what == "drop":
		    del links[i], bodies[i]
		    details = [d for d in details if not own(d, seq)]
		elif what == "swap":
		    links[i], links[i + 1] = links[i + 1], links[i]
		    bodies[i], bodies[i + 1] = bodies[i + 1], bodies[i]
		elif what == "cut":
		    links[-1] = links[-1][:100]
		elif what in ("signer", "forge", "rewrite"):  # everything right, but by another key; a changed body with a hash that fits
		    if what != "signer":
		        bodies[i] = bodies[i].replace(b'"event":"', b'"event":"x')
		        links[i] = links[i][:64] + hashlib.sha256(bodies[i]).digest() + links[i][96:]
		    der = subprocess.run(["openssl", "dgst", "-sha256", "-sign", key], input=links[i][:192],
		                         capture_output=True, check=True).stdout
		    rest = der[2:]
		    out = b""
		    for _ in range(2):
		        n = rest[1]
		        out += rest[2:2 + n].lstrip(b"\0").rjust(32, b"\0")
		        rest = rest[2 + n:]
		    links[i] = links[i][:192] + out
		else:
		    sys.exit("what is " + what)
		open(where + "/chain", "wb").write(b"".join(links))
		for name, lines in (("bodies", bodies), ("details", details)):
		    open(where + "/" + name + ".jsonl", "wb").write(b"".join(d + b"\n" for d in lines))
	END
}

broken() { # broken WHAT SEQ WORDS [TAMPERED]: the damage is named there, with these words
	tamper "$1" "${4:-$2}"
	verify "$FLEET/bad" && fleet_fail "$1 of entry $2 was not seen"
	[ $? -eq 7 ] || fleet_fail "$1 of entry $2: not exit code 7"
	[ "$(verified 'd["broken"]')" = "$2" ] || fleet_fail "$1 of entry $2 named wrongly: $(cat "$FLEET/verify.err")"
	grep -q "entry $2 is the first that does not check: .*$3" "$FLEET/verify.err" ||
		fleet_fail "$1 of entry $2: not \"$3\" but: $(cat "$FLEET/verify.err")"
	echo "ok: $1 of entry $2: $(cut -d : -f 3- "$FLEET/verify.err")"
}

seq_of() { # seq_of EVENT: the first entry of that event
	grep -n "^{\"event\":\"$1\"" "$FLEET/audit/bodies.jsonl" | head -n 1 | cut -d : -f 1
}

fetch() {
	fleet_admin verify fetch "$FLEET/audit" >"$FLEET/fetched" 2>&1 || fleet_fail "fetch: $(cat "$FLEET/fetched")"
}

# --- a fleet at work

fleet_start "
[audit]
refusals = 1
[retention]
keep_last = 1
keep_every = 0
keep_deltas = yes"
for i in 1 2 3; do
	glyph_device device$i $i 200
done
glyph_job "$FLEET/job.json" audited 3 4
sed -i 's/"stop"/"aggregate": {"server_optimizer": {"name": "sgd", "rate": 0.9, "momentum": 0.5}}, "stop"/' "$FLEET/job.json"
job_submit "$FLEET/job.json"
fleet_admin job pause "$JOB" >/dev/null
fleet_admin job resume "$JOB" >/dev/null
# It ends by its reports, and not by the rounds of its document.
fleet_admin job set "$JOB" stop.rounds=100 stop.reports=12 >/dev/null || fleet_fail "job set"
for i in 1 2 3; do fleet_run device$i; done
curl_admin /v1/jobs/00000000000000000000000000000000 >/dev/null 2>&1
curl_admin /v1/nothing >/dev/null 2>&1
fleet_admin token create -o "$FLEET/token2" >/dev/null
job_done 120
refused() { curl_admin '/v1/audit' | grep -q '\\"event\\":\\"refused\\"'; }
within 30 refused || fleet_fail "refusals were not counted"
fetch
good "$FLEET/audit" "the chain"
[ "$(verified 'd["rounds"]["committed"], d["erased"], d["manifests"], d["manifests_without_key"]')" = "(4, 0, 12, 0)" ] ||
	fleet_fail "not 4 rounds of 3 devices: $(cat "$FLEET/verified")"
for event in coordinator.initialised token.created coordinator.started device.joined job.submitted job.state job.set round.committed refused; do
	[ -n "$(seq_of $event)" ] || fleet_fail "the log lacks $event"
done
grep -q '"unknown-job":1' "$FLEET/audit/bodies.jsonl" || fleet_fail "the refusal class unknown-job was not counted"
grep -q 'device[123]' "$FLEET/audit/bodies.jsonl" && fleet_fail "a body names a device"
echo "ok: $(wc -l <"$FLEET/audit/bodies.jsonl") entries verify offline"
head=$(verified '"%d:%s" % (d["entries"], d["head"])')

# The round's record over HTTP is the entry.
curl_admin "/v1/jobs/$JOB/rounds/2/record" | python3 -S -E -c "
import base64, json, sys
d = json.load(sys.stdin)
link = base64.b64decode(d['link'])
assert link == open('$FLEET/audit/chain', 'rb').read()[(d['seq'] - 1) * 256:][:256]
assert json.loads(d['body'])['round'] == 2 and len(d['details']) == 3
assert json.loads(d['body'])['overrides'] == {'stop.rounds': 100, 'stop.reports': 12}" || fleet_fail "the record of round 2"

# --- every damage is named at the right entry

openssl ecparam -name prime256v1 -genkey -noout -out "$FLEET/other.key" 2>/dev/null || fleet_fail "openssl made no key"
committed=$(seq_of round.committed)
joined=$(seq_of device.joined)
last=$(wc -l <"$FLEET/audit/bodies.jsonl")
broken link "$joined" "signature"
broken link 1 "signature"
broken signature "$last" "signature"
broken reserved 3 "reserved"
broken body "$committed" "body"
broken detail "$committed" "detail 0"
broken detail "$joined" "detail 0"
broken salt "$joined" "damaged"
broken drop "$joined" "missing or out of order"
broken swap "$committed" "missing or out of order"
broken cut "$last" "ends inside"
broken signer "$committed" "signature"
broken forge "$committed" "signature"
# Rewritten by the coordinator itself, with its key: the entry is good, but the next one knew another.
broken rewrite $((joined + 1)) "hash of the entry before" "$joined"
# A signer of another CA is none.
rm -rf "$FLEET/bad"
cp -a "$FLEET/audit" "$FLEET/bad"
openssl req -x509 -key "$FLEET/other.key" -subj /CN=other -out "$FLEET/bad/signer.pem" 2>/dev/null
verify "$FLEET/bad" && fleet_fail "a signer that the CA did not certify was taken"
grep -q "not issued by this CA" "$FLEET/verify.err" || fleet_fail "another signer: $(cat "$FLEET/verify.err")"
verify "$FLEET/audit" --ca "$FLEET/bad/signer.pem" && fleet_fail "a CA that did not certify the signer was taken"
# A chain that was cut off at its end is good by itself, but not for who has seen more of it.
python3 -S -E - "$FLEET/bad" "$FLEET/audit" <<-'END'
	import json, shutil, sys
	bad, good = sys.argv[1:]
	shutil.copy(good + "/signer.pem", bad)
	open(bad + "/chain", "wb").write(open(good + "/chain", "rb").read()[:-256])
	bodies = open(good + "/bodies.jsonl").readlines()
	open(bad + "/bodies.jsonl", "w").writelines(bodies[:-1])
	details = open(good + "/details.jsonl").readlines()
	open(bad + "/details.jsonl", "w").writelines(d for d in details if json.loads(d)["seq"] < len(bodies))
END
good "$FLEET/bad" "a shortened chain"
verify "$FLEET/bad" --contains "$head" && fleet_fail "a head that is gone was not missed"
verify "$FLEET/audit" --contains "$head" || fleet_fail "its own head: $(cat "$FLEET/verify.err")"
# Nor does it go on from one that was changed.
tamper link 2
mv "$FLEET/bad/chain" "$FLEET/audit/chain"
fleet_admin verify fetch "$FLEET/audit" >"$FLEET/fetched" 2>&1 && fleet_fail "a chain with another past was fetched over ours"
grep -q "entry 2 is not the one fetched before" "$FLEET/fetched" || fleet_fail "another past: $(cat "$FLEET/fetched")"
rm -r "$FLEET/audit"
fetch
good "$FLEET/audit" "fetched anew"
echo "ok: shortened and rewritten chains are seen by who knew them before"

# --- restarts and kills leave no gap

fleet_kill KILL "$DAEMON_PID"
fleet_restart
started() { [ "$(curl_admin /v1/audit | grep -o 'coordinator.started' | wc -l)" -eq 2 ]; }
within 20 started || fleet_fail "the second start is not in the log"
fetch
good "$FLEET/audit" "after a kill"
echo "ok: goes on after a kill"

# --- rounds folded again

good "$FLEET/audit" "with deltas"
[ "$(verified 'd["rounds"]["folded"], d["rounds"]["not_folded"]')" = "(4, 0)" ] || fleet_fail "not all folded: $(cat "$FLEET/verified")"
[ "$(find "$FLEET/audit/models" -type f | wc -l)" -eq 1 ] || fleet_fail "more than the first model was needed"
[ "$(curl_admin /v1/status | pick 'd["kept"]["deltas"]')" -eq 12 ] || fleet_fail "not 12 deltas are kept"
echo "ok: 4 rounds with momentum fold to the same bits from the first model and 12 kept deltas"
found=
for other in ${OTHER_BUILDS:-build/mbedtls build/openssl build/mbedtls-clang build/openssl-clang}; do
	[ -x "$other/rivulet" ] || continue
	[ "$(realpath "$other")" != "$(realpath "$BUILD")" ] || continue
	if find aggregator base client crypto round wire -name '*.[ch]' -newer "$other/rivulet" | grep -q .; then
		echo "skipped: $other is older than the sources"
		continue
	fi
	found=1
	"$other/rivulet" verify "$FLEET/audit" --json >"$FLEET/verified" 2>&1 || fleet_fail "$other: $(cat "$FLEET/verified")"
	[ "$(verified 'd["rounds"]["folded"]')" -eq 4 ] || fleet_fail "$other folded not all: $(cat "$FLEET/verified")"
	echo "ok: $other folds them to the same bits"
done
[ -n "$found" ] || echo "skipped: no other build to fold with"

# A coordinator that died after a round's commit, before its deltas were put away, does that after its start.
fleet_kill TERM "$DAEMON_PID"
for delta in $(find "$FLEET/state/kept" -name '*.delta' | sort); do
	if python3 -S -E -c "import sys; sys.exit(int.from_bytes(open('$delta', 'rb').read(4096).split(b'RVD1')[1][20:28], 'little') != 4)"; then
		mv "$delta" "$FLEET/state/spool/"
	fi
done
[ "$(find "$FLEET/state/spool" -name '*.delta' | wc -l)" -eq 3 ] || fleet_fail "round 4 has not 3 deltas in kept/"
fleet_restart
put_away() { [ "$(curl_admin /v1/status | pick 'd["kept"]["deltas"]')" -eq 12 ] && spool_empty; }
within 10 put_away || fleet_fail "deltas of a committed round were not put away at the start: $(ls "$FLEET/state/spool")"

# A delta that is not the signed one, a missing one, a model that is not the recorded one.
some=$(find "$FLEET/audit/deltas" -name '*.delta' | sort | head -n 1)
cp "$some" "$FLEET/delta"
printf 'xx' | dd of="$some" bs=1 seek=1000 conv=notrunc 2>/dev/null
verify "$FLEET/audit" && fleet_fail "a changed delta was folded"
grep -q "is not the delta that was signed" "$FLEET/verify.err" || fleet_fail "a changed delta: $(cat "$FLEET/verify.err")"
rm "$some"
good "$FLEET/audit" "without one delta"
[ "$(verified 'd["rounds"]["not_folded"] > 0')" = True ] || fleet_fail "a round was folded without its delta"
cp "$FLEET/delta" "$some"
# The coordinator signs a record whose model does not follow from its deltas: here with the real signing key, so that nothing but
# folding again can tell.
rm -rf "$FLEET/bad"
cp -a "$FLEET/audit" "$FLEET/bad"
python3 -S -E - "$FLEET/bad" "$(seq_of round.committed)" "$FLEET/state/keys/sign.key" <<-'END' || fleet_fail "cannot forge"
	import hashlib, json, subprocess, sys
	where, first, key = sys.argv[1], int(sys.argv[2]), sys.argv[3]
	chain = open(where + "/chain", "rb").read()
	links = [chain[i:i + 256] for i in range(0, len(chain), 256)]
	bodies = open(where + "/bodies.jsonl", "rb").read().split(b"\n")[:-1]
	last = max(i for i, b in enumerate(bodies) if b.startswith(b'{"event":"round.committed"'))
	model = json.loads(bodies[last])["model"].encode()
	bodies[last] = bodies[last].replace(model, b"00" + model[2:])
	for i in range(last, len(links)):
	    head = links[i][:32] + (hashlib.sha256(links[i - 1][:192]).digest()) + hashlib.sha256(bodies[i]).digest() + links[i][96:192]
	    der = subprocess.run(["openssl", "dgst", "-sha256", "-sign", key], input=head, capture_output=True, check=True).stdout
	    rest, out = der[2:], b""
	    for _ in range(2):
	        n = rest[1]
	        out += rest[2:2 + n].lstrip(b"\0").rjust(32, b"\0")
	        rest = rest[2 + n:]
	    links[i] = head + out
	open(where + "/chain", "wb").write(b"".join(links))
	open(where + "/bodies.jsonl", "wb").write(b"".join(b + b"\n" for b in bodies))
END
verify "$FLEET/bad" && fleet_fail "a model that does not follow from its deltas was taken"
grep -q "folding its deltas again gives model" "$FLEET/verify.err" || fleet_fail "another model: $(cat "$FLEET/verify.err")"
echo "ok: a record signed by the coordinator itself with another model is seen: $(cat "$FLEET/verify.err")"

# --- without a device: the same weights as a run that never had it

verify "$FLEET/audit" --without device3 -o "$FLEET/clean" || fleet_fail "--without: $(cat "$FLEET/verify.err")"
[ "$(verified '[t["round"] for t in d["touched"]], len(set(t["without"] for t in d["touched"]))')" = "([1, 2, 3, 4], 4)" ] ||
	fleet_fail "what device3 touched: $(cat "$FLEET/verified")"
first=$JOB
fleet_kill TERM "$AGENT_PID"
glyph_job "$FLEET/job2.json" clean 2 1
sed -i 's/"stop"/"aggregate": {"server_optimizer": {"name": "sgd", "rate": 0.9, "momentum": 0.5}}, "stop"/' "$FLEET/job2.json"
job_submit "$FLEET/job2.json"
job_done 60
fleet_admin model get "$MODEL" -o "$FLEET/clean.safetensors" >/dev/null || fleet_fail "model get"
python3 -S -E - "$FLEET/clean/$first-1.safetensors" "$FLEET/clean.safetensors" <<-'END' || fleet_fail "--without gives other weights than a run without the device"
	import sys
	def data(path):
	    b = open(path, "rb").read()
	    return b[8 + int.from_bytes(b[:8], "little"):]
	assert len(data(sys.argv[1])) > 100000 and data(sys.argv[1]) == data(sys.argv[2])
END
[ -f "$FLEET/clean/$first-4.safetensors" ] || fleet_fail "no model of the last round without the device"
verify "$FLEET/audit" --without nobody && fleet_fail "an unknown device was found"
[ $? -eq 3 ] || fleet_fail "an unknown device: not exit code 3"
echo "ok: round 1 without device3 has the weights of a run that never had it"

# --- erasing

id=$(curl_admin /v1/devices/device3 | pick 'd["device"]')
[ "$(curl_admin /v1/devices/device3/erase -X POST -o /dev/null -w '%{http_code}' 2>/dev/null)" = 409 ] || fleet_fail "an active device was erased"
fleet_admin device revoke device3 >/dev/null || fleet_fail "revoke"
cp -r "$FLEET/state/kept" "$FLEET/kept.before"
fleet_admin device erase device3 --json >"$FLEET/erased" || fleet_fail "erase: $(cat "$FLEET/erased")"
# Joined, revoked, four manifests; four reports, four deltas.
[ "$(pick 'd["details"], d["reports"], d["deltas"]' <"$FLEET/erased")" = "(6, 4, 4)" ] || fleet_fail "erased: $(cat "$FLEET/erased")"
[ "$(curl_admin "/v1/devices/$id" | pick 'd["name"], d["state"], d["labels"], d["reports"]')" = "('erased', 'revoked', {}, 0)" ] ||
	fleet_fail "the row of the erased device: $(curl_admin "/v1/devices/$id")"
[ "$(curl_admin /v1/status | pick 'd["kept"]["deltas"]')" -eq 10 ] || fleet_fail "kept deltas: $(curl_admin /v1/status)"
rm -r "$FLEET/audit"
fetch
good "$FLEET/audit" "after erasing"
[ "$(verified 'd["erased"], d["rounds"]["folded"], d["rounds"]["not_folded"]')" = "(6, 1, 4)" ] || fleet_fail "after erasing: $(cat "$FLEET/verified")"
python3 -S -E - "$FLEET/audit" "$id" device3 <<-'END' || fleet_fail "something still names the erased device"
	import base64, json, sys
	where, id, name = sys.argv[1:]
	texts = [open(where + "/bodies.jsonl", "rb").read()]
	texts += [base64.b64decode(json.loads(d)["data"]) for d in open(where + "/details.jsonl")]
	for t in texts:
	    assert name.encode() not in t and id.encode() not in t and bytes.fromhex(id) not in t
END
fleet_kill TERM "$DAEMON_PID"
grep -aq "device3" "$FLEET"/state/rivulet.db* && fleet_fail "the database still holds the name of the erased device"
"$RIVULETD" --config "$FLEET/rivuletd.conf" check >"$FLEET/check" 2>&1 || fleet_fail "rivuletd check: $(cat "$FLEET/check")"
# A crash between rows and files leaves files that no row names: asking again finds them.
cp -n "$FLEET/kept.before/"* "$FLEET/state/kept/"
fleet_restart
[ "$(curl_admin "/v1/devices/$id" | pick 'd["name"], d["state"]')" = "('erased', 'revoked')" ] || fleet_fail "erased only until the restart"
fleet_admin device erase "$id" --json >"$FLEET/erased" || fleet_fail "erase again: $(cat "$FLEET/erased")"
[ "$(pick 'd["details"], d["reports"], d["deltas"]' <"$FLEET/erased")" = "(0, 0, 4)" ] || fleet_fail "erased again: $(cat "$FLEET/erased")"
[ "$(curl_admin /v1/status | pick 'd["kept"]["deltas"]')" -eq 10 ] || fleet_fail "kept deltas after erasing again: $(curl_admin /v1/status)"
"$RIVULET" run --home "$FLEET/device3" --once 2>"$FLEET/erased.log" && fleet_fail "an erased device still works"
echo "ok: after erasing a device the chain verifies and nothing names it"
fleet_end
