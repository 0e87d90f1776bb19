#!/bin/sh
# stages: gcc address
# `rivulet doctor`: each fault is made for real, and what the doctor says about it, its exit code and its JSON are checked. It
# must change nothing in the home.
#   BUILD=build/mbedtls tests/e2e/28-doctor.sh
set -u
FLEET_NAME=28-doctor
. tests/e2e/common.sh
peer=$BUILD/tests/tools/wire_peer
command -v openssl >/dev/null || skip "needs openssl"
[ -x "$peer" ] || skip "needs $peer"
checks=0 stubs=

doctor() { # doctor HOME [OPTION...]: its output in SAID, its exit code in CODE
	doctor_home=$1
	shift
	SAID=$("$RIVULET" doctor --home "$doctor_home" "$@" 2>&1)
	CODE=$?
}
says() { # says WHAT CODE TEXT...: SAID has a line with each text, and CODE is that
	says_what=$1
	[ "$CODE" = "$2" ] || fleet_fail "$says_what: exit code $CODE instead of $2: $SAID"
	shift 2
	for text in "$@"; do
		checks=$((checks + 1))
		printf '%s\n' "$SAID" | grep -q -- "$text" || fleet_fail "$says_what: no \"$text\" in: $SAID"
	done
}
copy() { # copy NAME: a copy of the sound home
	rm -rf "${FLEET:?}/$1"
	cp -a "$FLEET/sound" "$FLEET/$1"
}
at() { # at HOME URL...: the addresses of a home
	at_home=$1
	shift
	{
		echo "[coordinator]"
		for at_url in "$@"; do echo "url = $at_url"; done
		sed '/^\[coordinator\]/,/^$/d' "$FLEET/sound/rivulet.conf"
	} >"$at_home/rivulet.conf"
}
stub() { # stub CERT KEY HOST [...]: sets STUB to its port
	stub_port=$(mktemp "$FLEET/stub.port.XXXXXX")
	tests/tools/tls_stub.py "$@" >"$stub_port" 2>>"$FLEET/stub.log" &
	FLEET_PIDS="$FLEET_PIDS $!" stubs="$stubs $!"
	within 20 test -s "$stub_port" || fleet_fail "the stub did not start"
	STUB=$(cat "$stub_port")
}
server_cert() { # server_cert NAME SAN: NAME.crt and NAME.key, of the fleet's CA
	openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=coordinator -keyout "$FLEET/$1.key" \
		-out "$FLEET/$1.csr" 2>/dev/null &&
		printf 'subjectAltName=%s\n' "$2" >"$FLEET/$1.ext" &&
		openssl x509 -req -in "$FLEET/$1.csr" -CA "$FLEET/state/keys/ca.crt" -CAkey "$FLEET/state/keys/ca.key" -days 2 \
			-set_serial 77 -extfile "$FLEET/$1.ext" -out "$FLEET/$1.crt" 2>/dev/null || fleet_fail "openssl: $1"
}
expired_cert() { # the same, but of the year 2020
	: >"$FLEET/index"
	echo 78 >"$FLEET/serial"
	cat >"$FLEET/ca.conf" <<-END
		[ca]
		default_ca = it
		[it]
		database = $FLEET/index
		serial = $FLEET/serial
		new_certs_dir = $FLEET
		default_md = sha256
		policy = any
		x509_extensions = ext
		[any]
		commonName = supplied
		[ext]
		subjectAltName = DNS:localhost
	END
	openssl ca -batch -notext -config "$FLEET/ca.conf" -cert "$FLEET/state/keys/ca.crt" -keyfile "$FLEET/state/keys/ca.key" \
		-startdate 20200101000000Z -enddate 20200201000000Z -in "$FLEET/named.csr" -out "$FLEET/old.crt" 2>"$FLEET/openssl.log" ||
		fleet_fail "openssl ca: $(cat "$FLEET/openssl.log")"
}
state_of() { # state_of HOME: everything in it but when files were read
	(cd "$1" && find . -type f ! -name lock | sort | xargs sha256sum && find . | sort | xargs stat -c '%n %a %Y')
}
device() { # device COMMAND HOME
	curl_admin "/v1/devices/$(pick 'd["device"]' <"$2/device.json")/$1" -X POST >/dev/null || fleet_fail "device $1"
}

fleet_start "[limits]
long_poll = 1"
glyph_device sound 1 60
glyph_device other 2 60

# --- nothing wrong, with and without a running agent; nothing is changed
before=$(state_of "$FLEET/sound")
doctor "$FLEET/sound"
says "a sound home" 0 "all fine" "ok *key .*key.pem is private and fits cert.pem" "valid for 364 days\|valid for 365 days" \
	"ok *coordinator .*answers, and knows this device" "agrees with the coordinator's" "\[data digits\]: 60 examples" \
	"no delta waits" "no agent runs"
[ "$(state_of "$FLEET/sound")" = "$before" ] || fleet_fail "the doctor changed the home"
doctor "$FLEET/sound" --json
[ "$(printf '%s' "$SAID" | pick 'd["code"], len(d["device"]), [f["level"] for f in d["findings"] if f["level"] not in ("ok", "note")]')" = "(0, 64, [])" ] ||
	fleet_fail "the JSON of a sound home: $SAID"
fleet_run sound
within 20 grep -q '^waiting no-job' "$FLEET/sound/last" 2>/dev/null || fleet_fail "the agent did not say why it waits"
doctor "$FLEET/sound"
says "a running agent" 0 "an agent runs, process $AGENT_PID" "latest word, .*waiting no-job: there is no job"
fleet_kill TERM "$AGENT_PID"

# --- the home
doctor "$FLEET/nothing"
says "no home" 3 "FAULT *home .*does not exist" "rivulet join"
mkdir "$FLEET/empty"
doctor "$FLEET/empty"
says "not joined" 3 "FAULT *identity .*has not joined" "rivulet join URL"
copy bad
printf '{"device": ' >"$FLEET/bad/device.json"
doctor "$FLEET/bad"
says "a damaged device.json" 7 "FAULT .*device.json is damaged"

# --- key and certificate
copy bad
chmod 644 "$FLEET/bad/key.pem"
doctor "$FLEET/bad"
says "a key for all to read" 4 "FAULT *key " "chmod 600 key.pem"
copy bad
cp -p "$FLEET/other/key.pem" "$FLEET/bad/key.pem"
doctor "$FLEET/bad"
says "another device's key" 7 "FAULT *key .*key.pem does not belong to cert.pem" "files of one device"
timeout $((20 * TEST_PATIENCE)) "$RIVULET" run --home "$FLEET/bad" 2>"$FLEET/bad.log"
[ $? -eq 78 ] && grep -q "does not belong to cert.pem" "$FLEET/bad.log" || fleet_fail "an agent with another device's key: $(cat "$FLEET/bad.log")"
copy bad
rm "$FLEET/bad/cert.pem"
doctor "$FLEET/bad"
says "no certificate" 3 "cert.pem is missing"
copy bad
rm "$FLEET/bad/signer.pem"
doctor "$FLEET/bad"
says "no signer" 0 "note *signer .*signer.pem is missing"
"$peer" cert "$FLEET/sound" "$FLEET/expired" expired "$FLEET/state" || fleet_fail "wire_peer cert"
cp "$FLEET/sound/device.json" "$FLEET/sound/rivulet.conf" "$FLEET/expired/"
at "$FLEET/expired" "$URL"
doctor "$FLEET/expired"
says "an expired certificate" 4 "WARNING *certificate .*cert.pem expired .* ago" "renews it by itself" "refuses the certificate as expired"
copy bad
: >"$FLEET/bad/rotate"
doctor "$FLEET/bad" --offline
says "a requested rotation" 0 "a new key was asked for"
rm "$FLEET/bad/rotate"
cp -p "$FLEET/other/key.pem" "$FLEET/bad/key.new.pem"
doctor "$FLEET/bad" --offline
says "an unfinished rotation" 4 "change of key was begun"

# --- names, ports, and who answers there
copy net
at "$FLEET/net" https://no-such-name.invalid:7443
doctor "$FLEET/net"
says "a name that is none" 5 "FAULT *dns .*no-such-name.invalid has no address"
at "$FLEET/net" https://localhost:1 "$URL"
doctor "$FLEET/net"
says "a closed port beside a good address" 5 "FAULT *tcp .*nobody answers on port 1: Connection refused" "ok *coordinator"
stub - - 127.0.0.1
at "$FLEET/net" "https://localhost:$STUB"
doctor "$FLEET/net"
says "plain HTTP" 5 "FAULT *tls .*speaks plain HTTP, not TLS" "captive portal"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=Hotel Portal" -addext subjectAltName=DNS:localhost \
	-days 2 -keyout "$FLEET/portal.key" -out "$FLEET/portal.crt" 2>/dev/null || fleet_fail "openssl req"
stub "$FLEET/portal.crt" "$FLEET/portal.key" 127.0.0.1
at "$FLEET/net" "https://localhost:$STUB"
doctor "$FLEET/net"
says "a portal's certificate" 4 "FAULT *tls .*not of this device's CA; its issuer is \"CN *= *Hotel Portal\"" "captive portal"
server_cert named DNS:elsewhere.example
stub "$FLEET/named.crt" "$FLEET/named.key" 127.0.0.1
at "$FLEET/net" "https://localhost:$STUB"
doctor "$FLEET/net"
says "a certificate for another name" 4 "FAULT *tls .*not for the name localhost" "rivuletd init --name"
expired_cert
stub "$FLEET/old.crt" "$FLEET/named.key" 127.0.0.1
at "$FLEET/net" "https://localhost:$STUB"
doctor "$FLEET/net"
says "an expired server certificate" 4 "FAULT *tls .*coordinator's certificate has expired (Feb"
server_cert good DNS:localhost
stub "$FLEET/good.crt" "$FLEET/good.key" 127.0.0.1 7300
at "$FLEET/net" "https://localhost:$STUB"
doctor "$FLEET/net"
says "a clock that is wrong" 1 "WARNING *clock .*is 2 hours slow by the coordinator's"
stub "$FLEET/good.crt" "$FLEET/good.key" 127.0.0.1 -5
at "$FLEET/net" "https://localhost:$STUB"
doctor "$FLEET/net"
says "a clock that is right" 0 "ok *clock"
# A coordinator whose clock stands years ahead, or behind: nobody is told to set this machine's.
stub "$FLEET/good.crt" "$FLEET/good.key" 127.0.0.1 315360000 403 expired-certificate
at "$FLEET/net" "https://localhost:$STUB"
doctor "$FLEET/net"
says "a coordinator years ahead" 4 "WARNING *standing .*refuses the certificate as expired, or as not valid yet" \
	"WARNING *certificate .*by the coordinator's clock it is .*; by this machine's it is still good" "if that is not the date, set the coordinator's clock"
stub "$FLEET/good.crt" "$FLEET/good.key" 127.0.0.1 -315360000 403 expired-certificate
at "$FLEET/net" "https://localhost:$STUB"
doctor "$FLEET/net"
says "a coordinator years behind" 4 "WARNING *certificate .*cert.pem begins on .*by the coordinator's clock it is 201" "set the coordinator's clock"
stub "$FLEET/good.crt" "$FLEET/good.key" 127.0.0.1 0 503 no-space
at "$FLEET/net" "https://localhost:$STUB"
doctor "$FLEET/net"
says "a coordinator in trouble" 5 "WARNING *standing .*cannot serve now: no-space"
stub "$FLEET/good.crt" "$FLEET/good.key" 127.0.0.1 0 404
at "$FLEET/net" "https://localhost:$STUB"
doctor "$FLEET/net"
says "something else that answers" 5 "FAULT *standing .*what answers there is no coordinator"
copy net
sed -i "1i [coordinator]\nmodel_mirror = http://127.0.0.1:1\n" "$FLEET/net/rivulet.conf"
doctor "$FLEET/net"
says "a dead mirror" 5 "WARNING *mirror .*http://127.0.0.1:1 does not serve" "models come from the coordinator"

# --- what the coordinator thinks of the device
device suspend "$FLEET/sound"
doctor "$FLEET/sound"
says "a suspended device" 4 "FAULT *standing .*has suspended this device" "rivulet device resume"
device resume "$FLEET/sound"
doctor "$FLEET/sound"
says "a device that may go on" 0 "all fine"
copy stale
"$RIVULET" rotate --home "$FLEET/sound" >/dev/null || fleet_fail "rotate"
doctor "$FLEET/stale"
says "an old copy of the home" 4 "FAULT *standing .*knows this device by a newer key" "old copy"
copy left
"$RIVULET" leave --home "$FLEET/sound" >/dev/null || fleet_fail "leave"
doctor "$FLEET/left"
says "a device that left" 4 "FAULT *standing .*has left"
device revoke "$FLEET/other"
doctor "$FLEET/other"
says "a revoked device" 4 "FAULT *standing .*has revoked this device"
rm -rf "$FLEET/sound"
glyph_device sound 1 60

# --- settings, data, trainers, disk, outbox
copy bad
echo "colour = blue" >>"$FLEET/bad/rivulet.conf"
doctor "$FLEET/bad" --offline
says "an unknown key" 6 "FAULT *settings .*colour"
copy bad
mkdir "$FLEET/bad/rivulet.conf.d"
printf '[limits]\nepoch = 1\nepochs = 0\n' >"$FLEET/bad/rivulet.conf.d/10-x.conf"
doctor "$FLEET/bad" --offline
says "an unknown key in a file beside it" 6 "FAULT *settings .*rivulet.conf.d/10-x.conf:2: limits.epoch: unknown key (did you mean epochs?)" \
	"rivulet.conf.d/10-x.conf:3: limits.epochs: .0. is not a whole number from 1 to 1000000"
cp "$FLEET/sound/rivulet.conf" "$FLEET/bad/rivulet.conf.d/10-x.conf"
rm "$FLEET/bad/rivulet.conf"
doctor "$FLEET/bad" --offline
says "all settings in files beside it" 0 "ok *data "
case $SAID in *"no data set is named"*) fleet_fail "data sets of a file beside it are not seen: $SAID" ;; esac
copy bad
printf '[data mnist]\nformat = idx\nimages = /no/images\nlabels = /no/labels\n[trainer torch]\nexec = %s/trainer.sh --fast\n' "$FLEET" >>"$FLEET/bad/rivulet.conf"
echo >"$FLEET/trainer.sh"
doctor "$FLEET/bad" --offline
says "data and trainer" 3 "FAULT *data .*rivulet.conf:[0-9]*: data mnist.images: \[data mnist\] does not load: .*/no/" \
	"FAULT *trainer .*rivulet.conf:[0-9]*: trainer torch.exec: .*trainer.sh is not there or not executable"
chmod +x "$FLEET/trainer.sh"
doctor "$FLEET/bad" --offline
says "a trainer that is executable" 3 "ok *trainer .*trainer.sh"
copy bad
printf '[trainer torch]\nexec = /bin/sh %s/no.py 5\n[trainer near]\nexec = /bin/sh near.py\n' "$FLEET" >>"$FLEET/bad/rivulet.conf"
doctor "$FLEET/bad" --offline
says "scripts that will not be found" 3 "FAULT *trainer .*trainer torch.exec: .*/no.py is not there or not readable" \
	"FAULT *trainer .*trainer near.exec: near.py is no whole path"
: >"$FLEET/no.py"
sed -i "s| near.py| $FLEET/no.py --lr=0.1 org/model|" "$FLEET/bad/rivulet.conf"
doctor "$FLEET/bad" --offline
says "scripts that are there" 0 "ok *trainer .*trainer torch" "ok *trainer .*trainer near" \
	"note *trainer .*trainer near. cannot list $FLEET, for this home lies in it"
mkdir "$FLEET/scripts"
mv "$FLEET/no.py" "$FLEET/scripts"
sed -i "s|$FLEET/no.py|$FLEET/scripts/no.py|" "$FLEET/bad/rivulet.conf"
doctor "$FLEET/bad" --offline
says "scripts apart from the home" 0 "ok *trainer .*trainer near"
case $SAID in *"cannot list"*) fleet_fail "a directory without the home is said to have it: $SAID" ;; esac
copy bad
printf '[trainer builtin]\nexec = /bin/sh -c "echo no gadget >&2; exit 3"\n' >>"$FLEET/bad/rivulet.conf"
doctor "$FLEET/bad" --offline
says "a program that offers nothing" 6 "FAULT *trainer .*\[trainer builtin\] offers nothing: exited with 3: no gadget"
glyph_job "$FLEET/job.json" doctor 1 1
job_submit "$FLEET/job.json"
copy full
mkdir -p "$FLEET/full/outbox"
for task in $("$peer" ask "$FLEET/sound" "$PORT" | cut -d' ' -f1); do
	head -c 3000 /dev/zero >"$FLEET/full/outbox/$task.delta"
done
doctor "$FLEET/full" --offline
says "a damaged delta" 7 "WARNING *outbox .*head and size do not agree" "1 delta waits"
rm "$FLEET"/full/outbox/*
mkdir -p "$FLEET/full/residual"
head -c 1572864 /dev/zero >"$FLEET/full/residual/$(printf '%032d' 1).sum"
printf '[limits]\nresidual_bytes = 3M\n' >>"$FLEET/full/rivulet.conf"
doctor "$FLEET/full" --offline
says "what error feedback keeps" 0 "ok *residual .*keeps 1.5 MiB; residual_bytes allows 3.0 MiB"
if mkdir "$FLEET/small" && mount -t tmpfs -o size=4m none "$FLEET/small" 2>/dev/null; then
	cp -a "$FLEET/sound/." "$FLEET/small/"
	doctor "$FLEET/small" --offline
	umount "$FLEET/small"
	says "a small disk" 1 "FAULT *disk .*MiB are free where the home is"
	disk=", a small disk"
fi

# --- another CA is no firewall: a coordinator of another one, and this one with the CA replaced, and put back
"$RIVULETD" --config "$FLEET/rivuletd.conf" keys export "$FLEET/keys.tar" 2>/dev/null || fleet_fail "keys export"
printf '[server]\nlisten = 127.0.0.1:0\nstate_dir = %s\nadmin_socket = %s\n' "$FLEET/other.state" "$FLEET/other.sock" >"$FLEET/other.conf"
"$RIVULETD" --config "$FLEET/other.conf" init >/dev/null 2>"$FLEET/out" || fleet_fail "a second coordinator: $(cat "$FLEET/out")"
there=$(sed -n 's/.*\[identity\] ca: \(.\{16\}\).*/\1/p' "$FLEET/out")
"$RIVULETD" --config "$FLEET/other.conf" 2>"$FLEET/other.err" &
other=$!
FLEET_PIDS="$FLEET_PIDS $other"
within 20 test -s "$FLEET/other.state/port" || fleet_fail "a second coordinator does not start: $(cat "$FLEET/other.err")"
copy net
at "$FLEET/net" "https://localhost:$(cat "$FLEET/other.state/port")"
doctor "$FLEET/net"
says "another coordinator's CA" 4 "FAULT *ca .*a coordinator of another CA ($there\.\.\.) than this device's" "no firewall" "rivuletd ca status"
fleet_kill TERM "$other"
copy late
"$RIVULETD" --config "$FLEET/rivuletd.conf" ca rotate >/dev/null && "$RIVULETD" --config "$FLEET/rivuletd.conf" ca finish --force >/dev/null 2>&1 ||
	fleet_fail "no new CA"
fleet_kill TERM "$DAEMON_PID"
fleet_restart
at "$FLEET/late" "$URL"
doctor "$FLEET/late"
says "a device that slept through a change of the CA" 4 "FAULT *ca .*answers, but not to this device's certificate, whose CA it does not know" "no firewall"
for pid in $stubs; do fleet_kill KILL "$pid"; done
fleet_end
echo "$checks sayings${disk:-}"
