#!/bin/sh
# stages: gcc address
# `model_mirror` through a real nginx, with the configuration of docs/operators.md: one download from the coordinator serves a
# site, with Range as well; and no mirror, however it fails, is worse than a few seconds and a fall-back to the coordinator.
set -u
FLEET_NAME=45-mirror
. tests/e2e/common.sh
PATH=$PATH:/usr/sbin:/sbin
command -v nginx >/dev/null || skip "needs nginx (Debian package nginx-light; make deps-dev)"

fleet_start
site=$FLEET/site
mkdir "$site" "$site/cache" "$site/temp" "$site/lies"

# --- the mirror's own identity
fleet_admin token create --role "${MIRROR_ROLE:-reader}" -o "$FLEET/mirror.token" >/dev/null || fleet_fail "token create"
FLEET_TOKEN=$FLEET/mirror.token fleet_join mirror
"$RIVULET" status --url "$URL" --home "$FLEET/mirror" >"$FLEET/mirror.log" 2>&1 || fleet_fail "what keeps its certificate young does not work"

# --- nginx: the server of docs/operators.md, and others that go wrong. Free ports come from a relay that leaves at once.
"$BUILD/tests/tools/relay" -n 8 127.0.0.1:1 >"$FLEET/ports" 2>/dev/null &
relay=$!
ports() { [ -s "$FLEET/$1" ] && [ "$(wc -l <"$FLEET/$1")" -gt 0 ]; }
within 10 ports ports || fleet_fail "no free ports"
kill "$relay" && wait "$relay"
read -r good lie short long missing broken elsewhere down <"$FLEET/ports"

# The block between the marks in docs/operators.md, with this test's names.
sed -n '/^proxy_cache_path /,/^}$/p' docs/operators.md | sed "
	s,/var/cache/nginx/rivulet,$site/cache,
	s,listen 8080;,listen 127.0.0.1:$good;,
	s,coord.example:7443,localhost:$PORT,
	s,coord.example,localhost,
	s,/var/lib/rivulet-mirror,$FLEET/mirror," >"$site/mirror.conf"
grep -q "proxy_pass https://localhost:$PORT" "$site/mirror.conf" || fleet_fail "docs/operators.md has no server for nginx"
user=
[ "$(id -u)" -ne 0 ] || user='user root;'
cat >"$site/nginx.conf" <<END
$user
daemon off;
pid $site/pid;
error_log $FLEET/nginx.log;
events { }
http {
	access_log off;
	client_body_temp_path $site/temp/body;
	proxy_temp_path $site/temp/proxy;
	fastcgi_temp_path $site/temp/fastcgi;
	uwsgi_temp_path $site/temp/uwsgi;
	scgi_temp_path $site/temp/scgi;
	log_format cache '\$status \$upstream_cache_status \$body_bytes_sent \$http_range \$request_uri';
	include $site/mirror.conf;
	server { listen 127.0.0.1:$lie; root $site/lies/same; }
	server { listen 127.0.0.1:$short; root $site/lies/short; }
	server { listen 127.0.0.1:$long; root $site/lies/long; }
	server { listen 127.0.0.1:$missing; location / { return 404; } }
	server { listen 127.0.0.1:$broken; location / { return 500; } }
	server { listen 127.0.0.1:$elsewhere; location / { return 302 http://127.0.0.1:$good\$request_uri; } }
}
END
sed -i "s,listen 127.0.0.1:$good;,& access_log $FLEET/access cache;," "$site/mirror.conf"
nginx -p "$site" -e "$FLEET/nginx.log" -c "$site/nginx.conf" &
nginx=$!
FLEET_PIDS="$FLEET_PIDS $nginx"
answers() { [ "$(curl -sS -o /dev/null -w '%{http_code}' "http://127.0.0.1:$missing/")" = 404 ]; }
within 10 answers || fleet_fail "nginx did not start"

mirrored() { # mirrored NAME HAND PORT
	glyph_device "$1" "$2" 50
	printf '[coordinator]\nmodel_mirror = http://127.0.0.1:%s\n' "$3" >>"$FLEET/$1/rivulet.conf"
}
hits() { grep -c "^[0-9]* $1 .* $2\$" "$FLEET/access"; }
log_of() { grep "$1" "$FLEET/$2.log"; }

# --- a site of four: every model comes from the coordinator once, the second as a difference
for i in 1 2 3 4; do
	mirrored "near$i" "$i" "$good"
done
glyph_job "$FLEET/job.json" site 4 2
sed -i 's/"out": 50/"out": 300/; s/"stop"/"download": {"codec": "int8"}, "stop"/' "$FLEET/job.json"
job_submit "$FLEET/job.json"
first=$(curl_admin "/v1/jobs/$JOB" | pick 'd["model"]')
agents=
for i in 1 2 3 4; do
	fleet_run "near$i"
	agents="$agents $AGENT_PID"
done
job_done 60
for i in 1 2 3 4; do
	[ "$(log_of model.fetched "near$i" | grep -c from=mirror)" -eq 1 ] || fleet_fail "near$i did not ask the mirror: $(log_of model. "near$i")"
	[ "$(log_of difference.fetched "near$i" | grep -c from=mirror)" -eq 1 ] || fleet_fail "near$i: $(log_of difference. "near$i")"
done
misses=$(hits MISS /v1/models/.*) hits=$(grep -c "^200 HIT" "$FLEET/access")
[ "$misses" -eq 2 ] && [ "$hits" -eq 6 ] || fleet_fail "$misses misses and $hits hits: $(cat "$FLEET/access")"
down_bytes=$(curl_admin "/v1/jobs/$JOB/rounds" | pick 'sum(r["bytes_down"] for r in d["rounds"])')
[ "$down_bytes" -eq 0 ] || fleet_fail "devices had $down_bytes bytes of models from the coordinator"
for pid in $agents; do
	fleet_kill TERM "$pid"
done

# --- a part of a range, and what a device does with half a model
curl -sS -r 1000-1999 -o "$FLEET/part" -w '%{http_code}' "http://127.0.0.1:$good/v1/models/$first" | grep -qx 206 || fleet_fail "no part"
tail -c +1001 "$FLEET/near1/models/$first.safetensors" | head -c 1000 | cmp -s - "$FLEET/part" || fleet_fail "the part is another one"
curl -sS -o /dev/null -w '%{http_code}' "http://127.0.0.1:$good/v1/status" | grep -qx 404 || fleet_fail "the mirror passes more than models on"

# --- every way to be a bad mirror at once, a device each; they finish as if there were none
"$BUILD/tests/tools/relay" -n 3 -c "$FLEET/relay.control" "127.0.0.1:$good" >"$FLEET/ways" 2>>"$FLEET/relay.log" &
FLEET_PIDS="$FLEET_PIDS $!"
within 10 ports ways || fleet_fail "no relay"
read -r stall cut slow <"$FLEET/ways"
printf '1 stall=1\n2 cutbytes=200000\n3 rate=4000\n' >"$FLEET/relay.control"
hand=10
for name in lie short long missing broken elsewhere slow down stall cut; do
	hand=$((hand + 1))
	eval "port=\$$name"
	mirrored "$name" $hand "$port"
done
mirrored half 30 "$good"
glyph_job "$FLEET/job.json" bad 11 2
sed -i 's/"out": 50/"out": 300/; s/"seed": 7/"seed": 8/' "$FLEET/job.json"
job_submit "$FLEET/job.json"
model=$(curl_admin "/v1/jobs/$JOB" | pick 'd["model"]')
mkdir -p "$FLEET/half/models"
for kind in same short long; do
	mkdir -p "$site/lies/$kind/v1/models"
done
curl_admin "/v1/models/$model" -o "$FLEET/model" || fleet_fail "no model"
bytes=$(stat -c %s "$FLEET/model")
head -c "$bytes" /dev/urandom >"$site/lies/same/v1/models/$model"
head -c $((bytes - 1000)) "$FLEET/model" >"$site/lies/short/v1/models/$model"
cat "$FLEET/model" "$FLEET/part" >"$site/lies/long/v1/models/$model"
head -c 500000 "$FLEET/model" >"$FLEET/half/models/$model.part"
rm "$FLEET/model"
bad="lie short long missing broken elsewhere slow down stall cut"
start=$(date +%s)
for name in $bad half; do
	case $name in slow | stall) sed -i 's/^model_mirror/mirror_timeout = 4\n&/' "$FLEET/$name/rivulet.conf" ;; esac
	fleet_run "$name"
done
job_done 90
took=$(($(date +%s) - start))
for name in $bad; do
	[ "$(log_of mirror.failed "$name" | wc -l)" -eq 1 ] || fleet_fail "$name: not one mirror.failed: $(log_of mirror.failed "$name")"
	[ "$(log_of model.fetched "$name" | grep -c from=coordinator)" -eq 2 ] || fleet_fail "$name: $(log_of model "$name")"
done
log_of "model.fetched .*model=$model from=coordinator at=[1-9]" cut >"$FLEET/cut.line" ||
	fleet_fail "what came through a broken mirror was asked for again: $(log_of model cut)"
for name in lie short long; do
	log_of "model.fetched .*model=$model from=coordinator at=0" "$name" >"$FLEET/at.line" || fleet_fail "$name: $(log_of model "$name")"
done
log_of "model.fetched .*model=$model from=mirror at=500000" half >"$FLEET/half.line" || fleet_fail "half a model: $(log_of model half)"
grep -q "^206 [A-Z]* .*bytes=500000- /v1/models/$model" "$FLEET/access" || fleet_fail "no part came from the mirror: $(cat "$FLEET/access")"
fleet_end
echo "2 models came once each for 4 devices; 10 bad mirrors cost at most $took s"
