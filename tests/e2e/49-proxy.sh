#!/bin/sh
# stages: gcc openssl address
# Behind a load balancer that speaks the PROXY protocol: devices work through it, logs and limits see their own addresses, and
# nobody else may write such a head.
#   BUILD=build/mbedtls tests/e2e/49-proxy.sh
set -u
FLEET_NAME=49-proxy
. tests/e2e/common.sh

fleet_start "proxy_from = 127.0.0.9
[limits]
handshakes_per_address = 8
header_timeout = $((3 * TEST_SLOW))
[data digits]
format = glyphs
seed = 1
count = 100"
direct=$PORT

# A balancer on 127.0.0.1 that connects from 127.0.0.9, says VERSION's head for SOURCE and passes everything through.
cat >"$FLEET/balancer.py" <<'END'
import os, signal, socket, struct, sys, threading

PORT, VERSION, SOURCE = int(sys.argv[1]), sys.argv[2], sys.argv[3]


def head():
    if VERSION == "1":
        return f"PROXY TCP4 {SOURCE} 10.0.0.1 40000 7443\r\n".encode()
    body = socket.inet_pton(socket.AF_INET6, SOURCE) + socket.inet_pton(socket.AF_INET6, "::1") + struct.pack(">HH", 40000, 7443)
    body += b"\x04\x00\x03abc"  # a TLV of no meaning
    return b"\r\n\r\n\0\r\nQUIT\n\x21\x21" + struct.pack(">H", len(body)) + body


def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass


signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
print(listener.getsockname()[1], flush=True)
while True:
    down, _ = listener.accept()
    up = socket.create_connection(("127.0.0.1", PORT), 20, ("127.0.0.9", 0))
    up.settimeout(None)
    up.sendall(head())
    for pair in ((down, up), (up, down)):
        threading.Thread(target=pump, args=pair, daemon=True).start()
END
balancer() { # balancer NAME VERSION SOURCE: sets URL to it
	python3 -S -E "$FLEET/balancer.py" "$direct" "$2" "$3" >"$FLEET/$1.port" 2>"$FLEET/$1.balancer.log" &
	FLEET_PIDS="$FLEET_PIDS $!"
	within 20 test -s "$FLEET/$1.port" || fleet_fail "the balancer did not start"
	URL=https://localhost:$(cat "$FLEET/$1.port")
}

# Two devices, each through a balancer of its own, and a job.
balancer one 1 203.0.113.7
glyph_device device1 1 40
fleet_run device1
balancer two 2 2001:db8::7
glyph_device device2 2 40
fleet_run device2
URL=https://localhost:$direct
glyph_job "$FLEET/job.json" behind 2 2
job_submit "$FLEET/job.json"
job_done 20
for source in 203.0.113.7 2001:db8::7; do
	grep -q "device.joined.*peer=\"\{0,1\}$source" "$FLEET/rivuletd.log" || fleet_fail "no device joined from $source, for the log"
done
echo "ok: two devices did a job behind balancers, and the log knows them"

DAEMON_PID=$DAEMON_PID timeout $((60 * TEST_PATIENCE)) python3 -S -E - "$direct" "$FLEET" "$TEST_PATIENCE" <<'END' || fleet_fail "see above"
import os, socket, ssl, sys, time

PORT, HOME, PATIENCE = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
PID = os.environ["DAEMON_PID"]


def tcp(source):
    return socket.create_connection(("127.0.0.1", PORT), 10 * PATIENCE, (source, 0))


def head(address):
    return f"PROXY TCP4 {address} 10.0.0.1 40000 7443\r\n".encode()


def secure(s):
    return ssl.create_default_context(cafile=HOME + "/device1/ca.pem").wrap_socket(s, server_hostname="localhost")


def ask(source, first=b"", path="/v1/status"):
    """The status of the answer; None if the connection ends without one."""
    try:
        with tcp(source) as s:
            for piece in first if isinstance(first, list) else [first]:
                s.sendall(piece)
                time.sleep(0.02)
            with secure(s) as t:
                t.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic x\r\nConnection: close\r\n\r\n".encode())
                return int(t.recv(100).split()[1])
    except (OSError, IndexError):
        return None


def cpu():
    with open(f"/proc/{PID}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check(what, good):
    print(("ok: " if good else "FAILED: ") + what)
    if not good:
        sys.exit(1)


check("a balancer's connection without a head is not answered", ask("127.0.0.9") is None)
check("with a head it is", ask("127.0.0.9", head("203.0.113.50"), "/healthz") == 200)
check("a head in pieces", ask("127.0.0.9", [bytes([b]) for b in head("203.0.113.50")], "/healthz") == 200)
check("a head of nobody's connection, the balancer's own", ask("127.0.0.9", b"PROXY UNKNOWN\r\n", "/healthz") == 200)
check("somebody else's head is not taken", ask("127.0.0.1", head("203.0.113.50"), "/healthz") is None)
check("somebody else needs none", ask("127.0.0.1", b"", "/healthz") == 200)
check("a head that is too long", ask("127.0.0.9", b"PROXY UNKNOWN " + b"x" * 200 + b"\r\n", "/healthz") is None)

with tcp("127.0.0.9") as s:
    s.sendall(b"PROXY TCP4 ")
    time.sleep(0.5)
    before = cpu()
    time.sleep(1)
    check("half a head costs no processor", cpu() - before < 0.5)
    s.settimeout(20 * PATIENCE)
    try:
        end = s.recv(1)
    except ConnectionResetError:
        end = b""
    check("and has the time of a header", end == b"")

# Silent ones have the time of a header, and a busy machine may stop us for as long: there are always fresh ones.
silent = []
end = time.time() + 20 * PATIENCE
while answered := ask("127.0.0.9", head("203.0.113.66")):
    if time.time() > end:
        break
    for s in (fresh := [tcp("127.0.0.9") for _ in range(16)]):
        s.sendall(head("203.0.113.66"))
    silent += fresh
check(f"handshakes count against the address in the head ({len(silent)} silent)", answered is None)
check("not against others behind the balancer", ask("127.0.0.9", head("203.0.113.67")) == 401)
check("nor against the balancer", ask("127.0.0.9", b"PROXY UNKNOWN\r\n") == 401)
END
log_lines 1 "$FLEET/rivuletd.log" "proxy.refused" >/dev/null
fleet_end
echo "two devices, their addresses, and 12 connections"
