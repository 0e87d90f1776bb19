"""connect_proxy.py LOG [USER:PASSWORD]: an HTTP proxy on loopback that knows CONNECT alone; prints its port.

Each request is a line in LOG: "REQUEST-LINE STATUS". With USER:PASSWORD others get 407. A file LOG.down makes it answer 503.
"""
import base64
import os
import select
import socket
import sys
import threading

LOG, ACCOUNT = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None


def head_of(peer):
    head = b""
    while b"\r\n\r\n" not in head and len(head) < 65536:
        piece = peer.recv(4096)
        if not piece:
            return None
        head += piece
    return head.decode("latin-1")


def judge(head):
    method, target, _ = head.split("\r\n")[0].split(" ")
    if os.path.exists(LOG + ".down"):
        return 503, None
    if ACCOUNT:
        wanted = "proxy-authorization: basic " + base64.b64encode(ACCOUNT.encode()).decode()
        if wanted.lower() not in head.lower():
            return 407, None
    if method != "CONNECT":
        return 405, None
    return 200, target.rsplit(":", 1)


def pass_on(a, b):
    while True:
        for source in select.select([a, b], [], [])[0]:
            data = source.recv(65536)
            if not data:
                return
            (b if source is a else a).sendall(data)


def serve(peer):
    with peer:
        head = head_of(peer)
        if not head:
            return
        status, target = judge(head)
        with open(LOG, "a", encoding="utf-8") as log:
            log.write(f"{head.splitlines()[0]} {status}\n")
        if not target:
            peer.sendall(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            return
        with socket.create_connection((target[0].strip("[]"), int(target[1]))) as on:
            peer.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            try:
                pass_on(peer, on)
            except OSError:
                pass


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


main()
