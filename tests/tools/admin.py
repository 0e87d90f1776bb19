"""The admin socket of a coordinator, for tests and benches."""
import http.client
import json
import os
import socket
import sys


class Admin(http.client.HTTPConnection):
    """A connection; what `call` is refused ends the program."""

    def __init__(self, path, timeout=120):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def call(self, verb, path, body=None):
        self.request(verb, path, body)
        answer = self.getresponse()
        data = answer.read()
        if answer.status >= 400:
            sys.exit(f"{os.path.basename(sys.argv[0])}: {verb} {path}: {answer.status} {data[:300]!r}")
        return data

    def get(self, path):
        return json.loads(self.call("GET", path))

    def metrics(self):
        """Those without labels."""
        rows = (line.split() for line in self.call("GET", "/metrics").decode().splitlines() if line[0] != "#")
        return {row[0]: float(row[1]) for row in rows if len(row) == 2}
