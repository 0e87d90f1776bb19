"""The load of tests/tools/bench_flower.py where SuperNodes and their ClientApps would not fit the machine: one process plays many nodes.

    PYTHON flower_nodes.py HOST:PORT CA_FILE KEY_FILE...

Each node is a thread that talks as flower-supernode does, by the same functions and with the same wait between two questions; what
flower_noop.py's ClientApp does is called in the thread, so no process is started for a message. Ends at SIGTERM.
"""

import signal
import sys
import threading
import time

from cryptography.hazmat.primitives.serialization import load_ssh_private_key
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree, iterate_object_tree, no_object_id_recompute
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents, pull_objects, push_object_contents_from_iterable
from flwr.supercore.run import RunNotRunningException
from flwr.supernode.fleet_http_connection import http_request_response

import flower_noop

IDLE_S = 3  # flower-supernode's


def answer(connection, message, tree):
    _, _, send, _, _, pull_object, push_object, confirm = connection
    run = message.metadata.run_id
    ids = [part.object_id for part in iterate_object_tree(tree)]
    contents = pull_objects(ids, pull_object_fn=lambda object_id: pull_object(run, object_id))
    confirm(run, message.metadata.message_id)
    whole = inflate_object_from_contents(tree.object_id, contents)
    whole.metadata.__dict__["_message_id"] = tree.object_id
    start = time.monotonic()
    reply = flower_noop.train(whole, None)
    took = time.monotonic() - start
    reply.metadata.__dict__["_message_id"] = reply.object_id
    with no_object_id_recompute():
        parts = get_all_nested_objects(reply)
        wanted, session = send(reply, get_object_tree(reply), took)
        deflated = ((object_id, parts[object_id].deflate()) for object_id in parts if object_id in wanted)
        push_object_contents_from_iterable(deflated, push_object_fn=lambda object_id, content: push_object(run, session, object_id, content))


def play(address, ca, key):
    public = key.public_key()
    with http_request_response(address, False, ca, (key, public)) as connection:
        while True:
            received = connection[1]()
            if received is None:
                time.sleep(IDLE_S)
                continue
            try:
                answer(connection, *received)
            except RunNotRunningException:
                pass


def main():
    address, ca_file, *key_files = sys.argv[1:]
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with open(ca_file, "rb") as f:
        ca = f.read()
    for key_file in key_files:
        with open(key_file, "rb") as f:
            key = load_ssh_private_key(f.read(), None)
        threading.Thread(target=play, args=(address, ca, key), daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
