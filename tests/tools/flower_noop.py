"""A Flower app that trains nothing, for tests/tools/bench_flower.py, which makes its pyproject.toml: FedAvg over clients that send back the
weights they were given. After each round the server writes a line of JSON to the file ``report`` of the run's configuration: the time and what the kernel
counted for SuperLink and its children so far."""

import json
import os
import time

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg

client = ClientApp()
server = ServerApp()


@client.train()
def train(message, context):
    # Objects that SuperLink has already are not sent again: a number of its own makes each client send its weights.
    own = np.frombuffer(os.urandom(4), np.uint32).astype(np.float32) * np.float32(1e-12)
    arrays = [array + own for array in message.content["arrays"].to_numpy_ndarrays()]
    metrics = MetricRecord({"num-examples": 1})
    return Message(content=RecordDict({"arrays": ArrayRecord(arrays), "metrics": metrics}), reply_to=message)


def process(pid):
    with open(f"/proc/{pid}/stat") as f:
        name, fields = f.read().split("(", 1)[1].rsplit(")", 1)
    with open(f"/proc/{pid}/cmdline", "rb") as f:
        words = [os.path.basename(word.decode(errors="replace")) for word in f.read().split(b"\0")[:3]]
    name = next((word for word in words if word.startswith(("flower-", "flwr-"))), name)
    with open(f"/proc/{pid}/status") as f:
        peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM:"))
    fields = fields.split()
    ticks = sum(int(fields[i]) for i in (11, 12))
    return int(fields[1]), {"name": name, "pid": pid, "cpu": ticks / os.sysconf("SC_CLK_TCK"), "peak_kib": peak}


def processes():
    """This process and those above it, up to SuperLink, which starts SuperExec, which starts this one."""
    pid, found = os.getpid(), []
    while pid > 1:
        parent, one = process(pid)
        found.append(one)
        if one["name"] == "flower-superlink":
            return found
        pid = parent
    raise RuntimeError(f"no flower-superlink above this process: {found}")


class Timed(FedAvg):
    def __init__(self, report, clients):
        super().__init__(fraction_train=1.0, fraction_evaluate=0.0, min_train_nodes=clients, min_available_nodes=clients)
        self.report = report
        self.clients = clients

    def aggregate_train(self, server_round, replies):
        replies = list(replies)
        good = sum(1 for reply in replies if reply.has_content())
        result = super().aggregate_train(server_round, replies)
        line = {"round": server_round, "replies": good, "time": time.monotonic(), "processes": processes()}
        with open(self.report, "a") as f:
            f.write(json.dumps(line) + "\n")
        if good != self.clients:
            raise RuntimeError(f"round {server_round}: {good} of {self.clients} replies")
        return result


@server.main()
def main(grid, context):
    config = context.run_config
    strategy = Timed(config["report"], config["clients"])
    strategy.start(grid=grid, initial_arrays=ArrayRecord([np.zeros(config["elements"], np.float32)]), num_rounds=config["rounds"], timeout=600)
