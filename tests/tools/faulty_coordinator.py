#!/usr/bin/env python3
"""faulty_coordinator.py STATE_DIR DEVICE_HOME UPSTREAM_PORT RULES LOG: a coordinator with faults, played by a proxy.

It ends TLS with the coordinator's own server key and passes each request on with the device's key, but for those that the
file RULES, read anew for each request, names; one rule a line:

    METHOD PREFIX STATUS WORD [first]   answers with that problem, passing nothing on; first: only the path that came first
    METHOD PREFIX spoil BYTE            passes it on and flips a bit of that byte of the answer
    METHOD PREFIX swap OLD NEW          passes it on and writes NEW for each OLD in the answer
    METHOD PREFIX 200 file FILE         answers with what the file holds, passing nothing on
    METHOD PREFIX lose                  passes it on and ends the connection without an answer

Writes "TIME METHOD PATH STATUS" to LOG for each request and prints its port.
"""
import http.client
import http.server
import json
import os
import ssl
import sys
import time

state, home, upstream, rules, log = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5]
first = {}


def rule_of(method, path):
    with open(rules) as f:
        lines = [line.split() for line in f]
    for words in lines:
        if words[0] != method or not path.startswith(words[1]):
            continue
        if words[-1] == "first" and first.setdefault(words[1], path) != path:
            continue
        return words[2:]
    return None


def connect():
    context = ssl.create_default_context(cafile=state + "/keys/ca.crt")
    if os.path.exists(home + "/cert.pem"):
        context.load_cert_chain(home + "/cert.pem", home + "/key.pem")
    return http.client.HTTPSConnection("localhost", upstream, context=context, timeout=600)


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, headers, data):
        with open(log, "a") as f:
            f.write("%.3f %s %s %d\n" % (time.time(), self.command, self.path, status))
        self.send_response(status)
        for key, value in headers:
            self.send_header(key, value)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        rule = rule_of(self.command, self.path)
        if rule and len(rule) == 3 and rule[1] == "file":
            with open(rule[2], "rb") as f:
                self.answer(int(rule[0]), [("Content-Type", "application/json")], f.read())
            return
        if rule and rule[0] not in ("spoil", "lose", "swap"):
            problem = {"type": "urn:rivulet:error:" + rule[1], "title": "fault", "status": int(rule[0]), "detail": "fault"}
            # Without it a suspended device asks once a minute.
            after = [("Retry-After", "1")] if rule[1] == "device-suspended" else []
            self.answer(int(rule[0]), [("Content-Type", "application/problem+json"), *after], json.dumps(problem).encode())
            return
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "expect", "connection")}
        link = connect()
        link.request(self.command, self.path, body, headers)
        answer = link.getresponse()
        data = bytearray(answer.read())
        link.close()
        if rule and rule[0] == "lose":
            with open(log, "a") as f:
                f.write("%.3f %s %s lost\n" % (time.time(), self.command, self.path))
            self.close_connection = True
            return
        if rule and rule[0] == "swap":
            data = data.replace(rule[1].encode(), rule[2].encode())
        elif rule and len(data) > int(rule[1]):
            data[int(rule[1])] ^= 1
        kept = [(k, v) for k, v in answer.getheaders() if k.lower() not in ("content-length", "connection", "date", "server")]
        self.answer(answer.status, kept, bytes(data))

    do_GET = do_PUT = do_POST = pass_on

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(state + "/keys/server.crt", state + "/keys/server.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
