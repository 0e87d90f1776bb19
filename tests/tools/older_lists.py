#!/usr/bin/env python3
"""older_lists.py SOCKET PATHS MODE DEVICES.json: a coordinator whose list of devices is DEVICES.json, on a Unix socket. The paths asked for
go to PATHS, one a line. MODE: refuses (queries of lists, as 1.1.0 did), ignores (queries, as 1.0), picks (as now: it says where the list goes on).
"""
import http.server
import json
import os
import socketserver
import sys

path, paths, mode, devices = sys.argv[1], sys.argv[2], sys.argv[3], json.load(open(sys.argv[4], encoding="utf-8"))["devices"]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        with open(paths, "a", encoding="utf-8") as f:
            f.write(self.path + "\n")
        if mode == "refuses" and "?" in self.path:
            self.answer(400, {"type": "urn:rivulet:error:bad-request", "title": "Bad request", "status": 400, "detail": "unknown word"})
        else:
            self.answer(200, {"devices": devices, **({"next": None} if mode == "picks" else {})})

    def answer(self, status, document):
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if status == 200 else "application/problem+json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def address_string(self):
        return "client"

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


if os.path.exists(path):
    os.unlink(path)
Server(path, Handler).serve_forever()
