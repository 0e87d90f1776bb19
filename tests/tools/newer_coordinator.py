#!/usr/bin/env python3
"""newer_coordinator.py STATE_DIR DEVICE_HOME UPSTREAM_PORT [FEATURE...]: a coordinator of a later version, played by a proxy.

It ends TLS with the coordinator's own server key, passes each request on with the device's key, and adds fields that no
device of today knows to every JSON object of every answer. With FEATUREs the device is one of an earlier version instead: they are
taken out of its offers, and "evaluators" with them. Prints its port.
"""
import http.client
import http.server
import json
import os
import ssl
import sys

state, home, upstream, features = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]


def newer(value):
    if isinstance(value, dict):
        out = {"a_later_field": {"of": ["some", "kind"]}}
        out.update({k: newer(v) for k, v in value.items()})
        out["another"] = 1
        return out
    return [newer(v) for v in value] if isinstance(value, list) else value


def older(body):
    offer = json.loads(body)
    offer.pop("evaluators", None)
    offer["features"] = [name for name in offer.get("features", []) if name not in features]
    return json.dumps(offer).encode()


def connect():
    context = ssl.create_default_context(cafile=state + "/keys/ca.crt")
    if os.path.exists(home + "/cert.pem"):
        context.load_cert_chain(home + "/cert.pem", home + "/key.pem")
    return http.client.HTTPSConnection("localhost", upstream, context=context, timeout=600)


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if features and self.path == "/v1/tasks":
            body = older(body)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "expect", "connection", "content-length")}
        headers["Content-Length"] = str(len(body))
        link = connect()
        link.request(self.command, self.path, body, headers)
        answer = link.getresponse()
        data = answer.read()
        if not features and answer.getheader("Content-Type", "").endswith("json"):
            data = json.dumps(newer(json.loads(data))).encode()
        self.send_response(answer.status)
        for key, value in answer.getheaders():
            if key.lower() not in ("content-length", "connection", "date", "server"):
                self.send_header(key, value)
        if answer.status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        link.close()

    do_GET = do_PUT = do_POST = pass_on

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(state + "/keys/server.crt", state + "/keys/server.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
