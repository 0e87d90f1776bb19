#!/usr/bin/env python3
"""tls_stub.py CERT KEY HOST [CLOCK_OFFSET [STATUS [WORD]]]: answers every request over TLS with that certificate (KEY "-": plain
HTTP), a Date header that is CLOCK_OFFSET seconds off, and STATUS with {} or with the problem WORD. Prints its port."""
import email.utils
import http.server
import json
import ssl
import sys
import time

cert, key, host = sys.argv[1:4]
offset = float(sys.argv[4]) if len(sys.argv) > 4 else 0
status = int(sys.argv[5]) if len(sys.argv) > 5 else 200
word = sys.argv[6] if len(sys.argv) > 6 else None


class Stub(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        doc = {"type": "urn:rivulet:error:" + word, "title": word, "status": status} if word else {}
        data = json.dumps(doc).encode()
        self.send_response_only(status)
        self.send_header("Date", email.utils.formatdate(time.time() + offset, usegmt=True))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *args):
        pass


server = Server((host, 0), Stub)
if key != "-":
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
