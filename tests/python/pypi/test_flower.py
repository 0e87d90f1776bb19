"""Flower's apps by rivulet.flower: the programs of docs/from-flower.md, a NumPyClient, a client_fn, and apps that fail.

FLOWER_QUICKSTART=DIR: a copy of Flower's examples/quickstart-pytorch; its client_app.py and task.py then run unchanged, too, with
stand-ins for the packages that would fetch CIFAR-10.
"""
import math
import os
import sys
import textwrap
import unittest
from typing import Any, Dict, List

from fleet import Fleet, within

import pages
from rivulet import Coordinator

TASK = '''
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.out = nn.Conv2d(3, 8, 5, 2), nn.BatchNorm2d(8), nn.Linear(8 * 196, 10)

    def forward(self, x):
        return self.out(F.relu(self.norm(self.conv(x))).flatten(1))


def pictures(seed, count):
    """Ten colours that a network can tell apart, with noise."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (count,), generator=random)
    tint = torch.linspace(-1, 1, 10)[labels].view(-1, 1, 1, 1)
    return tint * torch.tensor([1.0, -0.5, 0.2]).view(1, 3, 1, 1) + torch.randn(count, 3, 32, 32, generator=random) * 0.3, labels


def load_data(partition, partitions, batch):
    torch.set_num_threads(1)
    x, y = pictures(partition, 200)
    both = [{"img": a, "label": b} for a, b in zip(x, y)]
    return DataLoader(both[:160], batch_size=batch, shuffle=True), DataLoader(both[160:], batch_size=batch)


def train(net, loader, epochs, rate, device):
    net.train()
    optimizer, total = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9), 0.0
    for _ in range(epochs):
        for batch in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(batch["img"]), batch["label"])
            loss.backward()
            optimizer.step()
            total += loss.item()
    return total / (epochs * len(loader))


def test(net, loader, device):
    net.eval()
    loss = right = 0.0
    with torch.no_grad():
        for batch in loader:
            out = net(batch["img"])
            loss += F.cross_entropy(out, batch["label"]).item()
            right += (out.argmax(1) == batch["label"]).sum().item()
    return loss / len(loader), right / len(loader.dataset)
'''

# What flwr_datasets, datasets and torchvision would be, as far as the quickstart asks them.
STAND_INS = {
    "datasets.py": "load_dataset = None",
    "torchvision/__init__.py": "",
    "torchvision/transforms.py": """
        class ToTensor:
            def __call__(self, x):
                return x
        class Normalize(ToTensor):
            def __init__(self, mean, std):
                pass
        class Compose(ToTensor):
            def __init__(self, steps):
                self.steps = steps
            def __call__(self, x):
                for step in self.steps:
                    x = step(x)
                return x
        """,
    "flwr_datasets/partitioner.py": """
        class IidPartitioner:
            def __init__(self, num_partitions):
                self.count = num_partitions
        """,
    "flwr_datasets/__init__.py": """
        import task
        class Rows:
            def __init__(self, x, y, change=None):
                self.x, self.y, self.change = x, y, change
            def __len__(self):
                return len(self.y)
            def __getitem__(self, i):
                row = self.change({"img": [self.x[i]], "label": [self.y[i]]})
                return {name: values[0] for name, values in row.items()}
            def train_test_split(self, test_size, seed):
                at = round(len(self) * (1 - test_size))
                return Split(train=Rows(self.x[:at], self.y[:at]), test=Rows(self.x[at:], self.y[at:]))
        class Split(dict):
            def with_transform(self, change):
                return Split({name: Rows(rows.x, rows.y, change) for name, rows in self.items()})
        class FederatedDataset:
            def __init__(self, dataset, partitioners):
                assert dataset == "uoft-cs/cifar10"
            def load_partition(self, n):
                return Rows(*task.pictures(n, 200))
        """,
}

OLDER = """
    import sys
    import numpy, torch, rivulet
    from flwr.client import NumPyClient
    from task import Net, load_data, test, train

    class Client(NumPyClient):
        def __init__(self):
            self.net, (self.loader, self.held_out) = Net(), load_data(int(sys.argv[1]), 3, 32)
        def put(self, arrays):
            names = self.net.state_dict()
            self.net.load_state_dict({n: torch.from_numpy(numpy.array(a)) for n, a in zip(names, arrays)})
        def fit(self, arrays, config):
            assert config["server-round"] >= 1 and config["local-epochs"] == 1
            self.put(arrays)
            loss = train(self.net, self.loader, 1, config["lr"], "cpu")
            return [t.numpy() for t in self.net.state_dict().values()], 160, {"train_loss": loss, "note": "a text"}
        def evaluate(self, arrays, config):
            self.put(arrays)
            loss, accuracy = test(self.net, self.held_out, "cpu")
            return loss, 40, {"accuracy": accuracy}

    if sys.argv[2] == "client_fn":
        kept = Client().to_client()
        rivulet.flower.run(lambda context: kept, data="pictures", examples=160)
    else:
        rivulet.flower.run(Client(), data="pictures", examples=160)
"""

FAILING = """
    import sys
    import rivulet
    from flwr.app import Error, Message
    from flower_app import app as good
    from flwr.clientapp import ClientApp

    app = ClientApp()

    @app.train()
    def train(message, context):
        if message.content["config"]["server-round"] == 1:
            context.state["seen"] = message.content["config"]
            raise RuntimeError("the disk of partition 2 is gone")
        assert context.state["seen"]["server-round"] == 1
        if message.content["config"]["server-round"] == 2:
            return Message(Error(7, "no pictures today"), reply_to=message)
        return good(message, context)

    @app.evaluate()
    def evaluate(message, context):
        return good(message, context)

    node = {"partition-id": int(sys.argv[1]), "num-partitions": 3}
    rivulet.flower.run(app, data="pictures", examples=160, node_config=node)
"""


class Flower(unittest.TestCase):
    def setUp(self) -> None:
        self.fleet = Fleet().__enter__()
        self.addCleanup(self.fleet.__exit__)
        self.files = pages.write("from-flower.md", self.fleet.folder)
        self.write("task.py", TASK)
        for n in range(3):
            self.fleet.join("device%d" % n)
        self.addCleanup(self.devices_end)
        self.coordinator = Coordinator(socket=self.fleet.socket)
        self.addCleanup(self.coordinator.close)

    def devices_end(self) -> None:
        """Before the coordinator does, each with exit code 0."""
        self.fleet.processes.pop("job", None)
        for name in [name for name in self.fleet.processes if name != "rivuletd"]:
            self.fleet.end(name)

    def write(self, name: str, text: str) -> str:
        path = self.fleet.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(textwrap.dedent(text))
        return path

    def start(self, name: str, program: str, *arguments: str, **variables: str) -> None:
        home = self.fleet.path(name) if name != "job" else ""
        variables.update(RIVULET_HOME=home, RIVULET_SOCKET=self.fleet.socket)
        self.fleet.start(name, [sys.executable, program, *arguments], **variables)

    def run_job(self, **changes: str) -> List[Dict[str, Any]]:
        """Runs job.py, in which texts may be changed, and returns the job's rounds."""
        with open(self.files["job.py"], encoding="utf-8") as f:
            text = f.read().replace('"final_model.pt"', repr(self.fleet.path("final_model.pt")))
        for old, new in changes.items():
            self.assertIn(old, text)
            text = text.replace(old, new)
        self.start("job", self.write("job.py", text))
        within(100, "the job", lambda: self.fleet.processes["job"].poll() is not None or self.fail_early())
        self.assertEqual(self.fleet.processes["job"].wait(), 0, self.fleet.log("job"))
        rounds = self.coordinator.rounds("quickstart")
        # The last model's own evaluation, where as many as the quorum can make it, comes behind the rounds.
        self.evaluated = [r for r in rounds if r["state"] == "evaluated"]
        return [r for r in rounds if r["state"] != "evaluated"]

    def fail_early(self) -> bool:
        for name, process in self.fleet.processes.items():
            if process.poll() not in (None, 0):
                raise AssertionError("%s: %s" % (name, self.fleet.log(name)[-3000:]))
        return False

    def check(self, rounds: List[Dict[str, Any]], devices: int = 3) -> None:
        self.assertEqual([r["state"] for r in rounds], ["committed"] * 3)
        self.assertEqual([r["examples"] for r in rounds], [160 * devices] * 3)
        self.assertEqual([r["evaluate"]["examples"] for r in rounds], [40 * devices] * 3)
        self.assertLess(rounds[2]["loss"], rounds[0]["loss"] * 0.9, rounds)
        self.assertTrue(all(math.isfinite(r["evaluate"]["loss"]) for r in rounds))

    def test_the_page(self) -> None:
        for n in (0, 1):
            self.start("device%d" % n, self.files["device.py"], str(n))
        self.start("device2", self.files["native.py"], "2")
        rounds = self.run_job()
        self.check(rounds)
        # The model that was saved is the last one; running statistics travelled, what was counted did not.
        import torch

        saved = torch.load(self.fleet.path("final_model.pt"))
        roles = self.coordinator.job("quickstart")["document"]["tensors"]
        self.assertEqual(roles, {"*.running_mean": "average", "*.running_var": "average"})
        self.assertEqual(saved["norm.num_batches_tracked"], 0)
        self.assertGreater(float(saved["norm.running_mean"].abs().max()), 0)
        # The device's own figure, made again with the saved model of the round before.
        sys.path.insert(0, self.fleet.folder)
        import task

        net, losses = task.Net(), []
        net.load_state_dict(self.coordinator.model("quickstart", round=2))
        for n in range(3):
            losses.append(task.test(net, task.load_data(n, 3, 32)[1], "cpu")[0])
        self.assertAlmostEqual(sum(losses) / 3, rounds[2]["evaluate"]["loss"], delta=1e-6)

    def test_older_clients(self) -> None:
        older = self.write("older.py", OLDER)
        for n, kind in enumerate(("client", "client_fn", "client_fn")):
            self.start("device%d" % n, older, str(n), kind)
        self.check(self.run_job())
        self.assertEqual([r["evaluate"]["examples"] for r in self.evaluated], [120])

    def test_failures_give_the_task_back(self) -> None:
        failing = self.write("failing.py", FAILING)
        for n, program in enumerate((self.files["device.py"], self.files["device.py"], failing)):
            self.start("device%d" % n, program, str(n))
            if n == 2:
                with open(self.fleet.path("device2", "rivulet.conf"), "a", encoding="utf-8") as f:
                    f.write("[device]\nsend_log = tail\n")
        rounds = self.run_job(**{'"goal": 3': '"goal": 3, "quorum": 2, "grace_s": 0.1'})
        self.assertEqual([r["reports"] for r in rounds[:2]], [2, 2])
        self.assertEqual([r["aborted"] for r in rounds[:2]], [1, 1])
        failure = self.coordinator.job("quickstart")["failures"][0]
        self.assertEqual((failure["name"], failure["reason"]), ("device2", "trainer-failed"))
        self.assertIn("no pictures today", failure["log"])
        self.assertIn("the disk of partition 2 is gone", self.fleet.log("device2"))

    @unittest.skipUnless(os.environ.get("FLOWER_QUICKSTART"), "FLOWER_QUICKSTART names no copy of quickstart-pytorch")
    def test_quickstart(self) -> None:
        for name, text in STAND_INS.items():
            self.write("standins/" + name, text)
        device = """
            import sys, rivulet
            from pytorchexample.client_app import app
            node = {"partition-id": int(sys.argv[1]), "num-partitions": 3}
            run = {"batch-size": 32, "local-epochs": 1}
            rivulet.flower.run(app, data="pictures", examples=160, node_config=node, run_config=run)
            """
        path = os.pathsep.join([os.environ["FLOWER_QUICKSTART"], self.fleet.path("standins"), os.environ["PYTHONPATH"]])
        for n in range(3):
            self.start("device%d" % n, self.write("quickstart.py", device), str(n), PYTHONPATH=path, OMP_NUM_THREADS="1")
        with open(self.files["job.py"], encoding="utf-8") as f:
            text = f.read().replace("from task import", "from pytorchexample.task import")
        self.files["job.py"] = self.write("job.py", "import sys; sys.path[1:1] = %r\n%s" % (path.split(os.pathsep), text))
        rounds = self.run_job(**{'"rounds": 3': '"rounds": 10'})
        print("quickstart-pytorch:", [(r["round"], r["loss"], r["evaluate"]["accuracy"]) for r in rounds])
        self.assertEqual([r["examples"] for r in rounds], [480] * 10)
        self.assertLess(rounds[-1]["evaluate"]["loss"], rounds[0]["evaluate"]["loss"])


if __name__ == "__main__":
    unittest.main()
