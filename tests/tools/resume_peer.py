#!/usr/bin/env python3
"""A device that sends a delta in pieces, for tests of resumed uploads.

  resume_peer.py HOME PORT TASK DIR head                   prints "204 OFFSET COMPLETE" or "404"
  resume_peer.py HOME PORT TASK DIR put UNTIL              sends the body's bytes up to UNTIL, then the connection ends
  resume_peer.py HOME PORT TASK DIR patch FROM UNTIL       the same from FROM; both print "STATUS WORD OFFSET", or "cut"
  resume_peer.py HOME PORT TASK DIR race FROM              a transfer begins and pauses, HEAD comes, the transfer goes on:
                                                           prints "HEAD's status, its offset, the transfer's status"
DIR holds manifest (the header's value) and body, as wire_peer writes them. UNTIL may be "end"; it may be beyond it: "end-1".
HOME's "MANIFEST" in the environment names another file to take the header's value from.
"""
import os
import re
import socket
import ssl
import sys

HOME, PORT, TASK, DIR, COMMAND = sys.argv[1:6]
with open(f"{DIR}/body", "rb") as f:
    BODY = f.read()
with open(os.environ.get("MANIFEST", f"{DIR}/manifest"), encoding="ascii") as f:
    MANIFEST = f.read().strip()
PIECE = 100000  # no divisor of a chunk


def connect():
    context = ssl.create_default_context(cafile=f"{HOME}/ca.pem")
    context.load_cert_chain(f"{HOME}/cert.pem", f"{HOME}/key.pem")
    raw = socket.create_connection(("127.0.0.1", int(PORT)), 30)
    return context.wrap_socket(raw, server_hostname="localhost")


def head_of(method, start, length):
    lines = [f"{method} /v1/deltas/{TASK} HTTP/1.1", "Host: localhost", f"Rivulet-Manifest: {MANIFEST}", f"Content-Length: {length}"]
    lines.append("Expect: 100-continue")
    if method == "PATCH":
        lines.append(f"Upload-Offset: {start}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def answer(c, got=b""):
    """Status, error word or receipt, Upload-Offset and Upload-Complete of what comes; None if nothing does."""
    try:
        while True:
            head, end, rest = got.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            if end and (not length or len(rest) >= int(length[1])):
                break
            piece = c.recv(65536)
            if not piece:
                break
            got += piece
    except OSError:
        pass
    head, _, rest = got.partition(b"\r\n\r\n")
    if not got.startswith(b"HTTP/1.1 "):
        return None
    word = re.search(rb"urn:rivulet:error:([a-z-]+)", got)
    offset = re.search(rb"(?i)upload-offset: *(\d+)", head)
    complete = re.search(rb"(?i)upload-complete: *\?(\d)", head)
    text = word[1].decode() if word else "receipt" if rest[:4] == b"RVR1" else "-"
    return head[9:12].decode(), text, offset[1].decode() if offset else "-", complete[1].decode() if complete else "-"


def head():
    with connect() as c:
        c.sendall(f"HEAD /v1/deltas/{TASK} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        return answer(c) or ("000", "-", "-", "-")


def ask(c, method, start):
    """None if the body may come, else the answer."""
    c.sendall(head_of(method, start, len(BODY) - start))
    got = b""
    while b"\r\n\r\n" not in got:
        piece = c.recv(1)
        if not piece:
            break
        got += piece
    return None if got.startswith(b"HTTP/1.1 100 ") else answer(c, got)


def until_of(text):
    return len(BODY) + int(text[3:] or "0") if text.startswith("end") else int(text)


def send(method, start, until):
    """Returns the answer, or None if the connection was ended before one came."""
    with connect() as c:
        try:
            early = ask(c, method, start)
            if early:
                return early
            for at in range(start, until, PIECE):
                c.sendall(BODY[at : min(at + PIECE, until)])
        except OSError:
            return answer(c)
        if until == len(BODY):
            return answer(c)
        # The other end takes all that was sent before it sees this end.
        c.settimeout(10)
        raw = c.detach()
        s = socket.socket(fileno=raw)
        s.settimeout(30)
        s.shutdown(socket.SHUT_WR)
        try:
            while s.recv(65536):
                pass
        except ConnectionError:
            pass
        s.close()
        return None


def race(start):
    with connect() as c:
        if ask(c, "PATCH" if start else "PUT", start):
            return "refused"
        c.sendall(BODY[start : start + 3000])
        status, _, offset, _ = head()
        try:
            for at in range(start + 3000, len(BODY), PIECE):
                c.sendall(BODY[at : at + PIECE])
        except OSError:
            pass
        late = answer(c)
        return f"{status} {offset} {late[0] if late else 'cut'}"


if COMMAND == "head":
    status, _, offset, complete = head()
    print(status if status != "204" else f"204 {offset} {complete}")
elif COMMAND == "race":
    print(race(int(sys.argv[6])))
else:
    first = 0 if COMMAND == "put" else int(sys.argv[6])
    last = until_of(sys.argv[6 if COMMAND == "put" else 7])
    result = send(COMMAND.upper(), first, last)
    print(" ".join(result[:3]) if result else "cut")
