"""One row of `make bench BENCH=round` with Flower: SuperLink and SuperNodes, over HTTPS on loopback with node authentication.

    PYTHON bench_flower.py processes|threads CLIENTS ELEMENTS ROUNDS

processes: each client is a flower-supernode, which starts a process of its ClientApp for each message. threads: one process plays
all of them (flower_nodes.py). PYTHON has flwr 1.42 or newer and its programs beside it. Prints "seconds S cpu C superlink_kib K serverapp_kib K rounds N" per round of the timed
part: from the end of the first round to the end of the last. The time-outs and polls are Flower's own.
"""

import datetime
import ipaddress
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PROGRAMS = os.path.dirname(sys.executable)
HERE = os.path.dirname(os.path.abspath(__file__))
APP = os.path.join(HERE, "flower_noop.py")
START_S = 120
# `flwr supernode register KEY bench` for each key, in one process.
REGISTER = """import sys
from flwr.cli.app import app
for key in sys.argv[1:]:
    app(["supernode", "register", key, "bench"], standalone_mode=False)
"""
PROJECT = """[project]
name = "noop"
version = "1.0.0"
description = "Trains nothing"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "bench"

[tool.flwr.app.components]
serverapp = "flower_noop:server"
clientapp = "flower_noop:client"

[tool.flwr.app.config]
clients = {clients}
elements = {elements}
rounds = {rounds}
report = "{report}"
"""


class Failed(Exception):
    pass


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def write_key(path, key, form):
    with open(path, "wb") as f:
        f.write(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    os.chmod(path, 0o600)


def make_certificates(folder):
    """ca.pem, server.pem and server.key, for 127.0.0.1; P-256, as Rivulet's."""
    now = datetime.datetime.now(datetime.timezone.utc)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench CA")])

    def certificate(name, public, extension):
        made = x509.CertificateBuilder(ca_name, name, public, x509.random_serial_number(), now - datetime.timedelta(1), now + datetime.timedelta(1))
        return made.add_extension(*extension).sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    with open(f"{folder}/ca.pem", "wb") as f:
        f.write(certificate(ca_name, ca_key.public_key(), (x509.BasicConstraints(True, None), True)))
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")])
    with open(f"{folder}/server.pem", "wb") as f:
        f.write(certificate(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench")]), key.public_key(), (names, False)))
    write_key(f"{folder}/server.key", key, serialization.PrivateFormat.PKCS8)


def make_node_key(path):
    """As `ssh-keygen -t ecdsa -b 384`, which Flower's guide takes."""
    key = ec.generate_private_key(ec.SECP384R1())
    write_key(path, key, serialization.PrivateFormat.OpenSSH)
    with open(path + ".pub", "wb") as f:
        f.write(key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH) + b"\n")


class Flower:
    def __init__(self, folder):
        self.folder = folder
        self.started = []
        self.log = open(f"{folder}/log", "ab")
        home = f"{folder}/home"
        os.mkdir(home)
        self.environment = dict(os.environ, PATH=PROGRAMS + os.pathsep + os.environ.get("PATH", ""), HOME=home, FLWR_HOME=home,
            FLWR_TELEMETRY_ENABLED="0", FLWR_DISABLE_UPDATE_CHECK="1", PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

    def start(self, *words):
        words = (os.path.join(PROGRAMS, words[0]), *map(str, words[1:]))  # an absolute path stays
        p = subprocess.Popen(words, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)
        self.started.append(p)
        return p

    def supernode(self, address, port, key):
        self.start("flower-supernode", "--root-certificates", "ca.pem", "--superlink", address, "--auth-supernode-private-key", key,
            "--host", "127.0.0.1", "--port", port)

    def finish(self, what, *words):
        done = subprocess.run(words, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, check=False)
        if done.returncode:
            raise Failed(f"{what}: exit status {done.returncode}")

    def superlink(self, port):
        self.start("flower-superlink", "--host", "127.0.0.1", "--port", port, "--ssl-ca-certfile", "ca.pem", "--ssl-certfile", "server.pem", "--ssl-keyfile",
            "server.key", "--enable-supernode-auth", "--disable-runtime-dependency-installation")
        with open(f"{self.folder}/home/config.toml", "w") as f:
            f.write(f'[superlink]\ndefault = "bench"\n[superlink.bench]\naddress = "127.0.0.1:{port}"\nroot-certificates = "{self.folder}/ca.pem"\n')
        self.wait_for(port)

    def wait_for(self, port):
        until = time.monotonic() + START_S
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                self.look()
                if time.monotonic() > until:
                    raise Failed("SuperLink does not listen") from None
                time.sleep(0.1)

    def look(self):
        for p in self.started:
            if p.poll() is not None:
                raise Failed(f"{os.path.basename(p.args[0])} ended with {p.returncode}")

    def stop(self):
        # SuperNodes first, which say goodbye to SuperLink. Each heads a session, with the processes it started.
        for p in reversed(self.started):
            p.terminate()
        until = time.monotonic() + 10
        for p in reversed(self.started):
            try:
                p.wait(max(0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            p.wait()
        self.log.close()


def rows_of(report):
    try:
        with open(report) as f:
            return [json.loads(line) for line in f if line.endswith("\n")]
    except FileNotFoundError:
        return []


def start_clients(flower, kind, clients):
    ports = free_ports(clients + 1)
    address = f"127.0.0.1:{ports[0]}"
    flower.superlink(ports[0])
    keys = [f"node{i}" for i in range(clients)]
    for key in keys:
        make_node_key(f"{flower.folder}/{key}")
    flower.finish("flwr supernode register", sys.executable, "-c", REGISTER, *[f"{key}.pub" for key in keys])
    if kind == "processes":
        for key, port in zip(keys, ports[1:]):
            flower.supernode(address, port, key)
    if kind == "threads":
        flower.start(sys.executable, f"{HERE}/flower_nodes.py", address, "ca.pem", *keys)


def measure(flower, kind, clients, elements, rounds):
    report = f"{flower.folder}/report"
    make_certificates(flower.folder)
    start_clients(flower, kind, clients)
    os.mkdir(f"{flower.folder}/app")
    shutil.copy(APP, f"{flower.folder}/app")
    with open(f"{flower.folder}/app/pyproject.toml", "w") as f:
        f.write(PROJECT.format(clients=clients, elements=elements, rounds=rounds + 1, report=report))
    flower.finish("flwr run", os.path.join(PROGRAMS, "flwr"), "run", "app", "bench")
    until = time.monotonic() + START_S + 60 * (rounds + 1)
    while len(rows_of(report)) < rounds + 1:
        flower.look()
        if time.monotonic() > until:
            raise Failed(f"{len(rows_of(report))} of {rounds + 1} rounds were done")
        time.sleep(0.2)
    rows = rows_of(report)
    if any(row["replies"] != clients for row in rows):
        raise Failed("a round without all of its replies")
    return rows


def result(rows):
    first, last = rows[0], rows[-1]
    rounds = len(rows) - 1
    peaks = {p["name"]: p["peak_kib"] for p in last["processes"]}
    cpu = sum(p["cpu"] for p in last["processes"]) - sum(p["cpu"] for p in first["processes"])
    return (f"seconds {(last['time'] - first['time']) / rounds:.4f} cpu {cpu / rounds:.4f} superlink_kib {peaks['flower-superlink']} "
        f"serverapp_kib {peaks['flwr-serverapp']} rounds {rounds}")


def main():
    kind = sys.argv[1]
    clients, elements, rounds = map(int, sys.argv[2:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="rivulet.flower.") as folder:
        flower = Flower(folder)
        try:
            print(result(measure(flower, kind, clients, elements, rounds)))
        except (Failed, OSError) as e:
            with open(f"{folder}/log", errors="replace") as f:
                print("".join(f.readlines()[-20:]), f"bench_flower: {e}", sep="", file=sys.stderr)
            return 1
        finally:
            flower.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
