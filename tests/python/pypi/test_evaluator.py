"""A PyTorch network that only programs know, measured on a test set that only its owner has: as the pages say it."""
import os
import sys
import unittest

from fleet import BUILD, Fleet, within

from rivulet import Coordinator

os.environ.setdefault("RIVULET_LIBRARY", os.path.join(BUILD, "librivulet.so.1"))

SHARED = """
import sys
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
import rivulet

torch.set_num_threads(1)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.out = nn.Linear(2, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.out(torch.sin(self.inner(x)))

def points(seed, count):
    random = torch.Generator().manual_seed(seed)
    x = torch.rand(count, 2, generator=random) * 4 - 2
    return TensorDataset(x, (x.pow(2).sum(1).sqrt()).long().clamp(max=2))

net = Net()
"""
LOOP = (
    SHARED
    + """
data = points(int(sys.argv[2]), 300)
for task in rivulet.tasks("rings", "points", len(data), home=sys.argv[1]):
    with task:
        torch.manual_seed(task.seed)
        net.load_state_dict(task.state_dict())
        opt = torch.optim.Adam(net.parameters(), lr=task.lr)
        for x, y in task.batches(DataLoader(data, batch_size=task.batch, shuffle=True)):
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            task.step(loss, len(y))
        task.submit(net, optimizer=opt)
"""
)
EVALUATOR = (
    SHARED
    + """
test_set = points(99, 400)
for task in rivulet.evaluations("rings", examples=len(test_set), home=sys.argv[1]):
    with task, torch.no_grad():
        net.load_state_dict(task.state_dict())
        for x, y in task.batches(DataLoader(test_set, batch_size=64)):
            scores = net(x)
            task.step(F.cross_entropy(scores, y), len(y), right=(scores.argmax(1) == y).sum())
        outer = test_set.tensors[1] == 2
        found = net(test_set.tensors[0]).argmax(1)[outer] == 2
        task.report(metrics={"recall_of_outer": found.float().mean()})
"""
)


@unittest.skipIf(os.environ.get("SAN"), "a sanitized library cannot be loaded into python3")
class Evaluator(unittest.TestCase):
    def test_until_its_target_is_reached(self) -> None:
        job = {
            "name": "rings",
            "trainer": "rings",
            "data": {"name": "points", "classes": 3},
            "local": {"epochs": 2, "batch": 20, "optimizer": {"name": "adam", "rate": 0.02}},
            "round": {"goal": 2, "deadline_s": 600},
            "evaluate": {"by": "program", "devices": ["central"]},
            "stop": {"rounds": 60, "target": {"accuracy": 0.85}},
        }
        names: dict = {}
        exec(SHARED, names)
        with Fleet() as fleet:
            for seed, name in enumerate(("one", "two")):
                fleet.start(name, [sys.executable, "-c", LOOP, fleet.join(name), str(seed)])
            home = fleet.join("central", token=fleet.token("named", "--name", "central"))
            fleet.start("central", [sys.executable, "-c", EVALUATOR, home])
            coordinator = Coordinator(socket=fleet.socket)
            name = coordinator.submit(job, init=names["net"])["job"]
            done = within(60, "the target is reached", lambda: (j := coordinator.job(name))["state"] == "done" and j)
            self.assertEqual(done["reason"], "target reached", fleet.log("central")[-2000:])
            rounds = [r for r in coordinator.rounds(name) if r["state"] == "committed"]
            last = rounds[-1]
            self.assertGreaterEqual(last["evaluate"]["accuracy"], 0.85)
            self.assertTrue(all(r["evaluate"]["examples"] == 400 for r in rounds))
            self.assertTrue(all(r["evaluate"]["accuracy"] < 0.85 for r in rounds[:-1]))
            self.assertEqual(done["metric"]["accuracy"], last["evaluate"]["accuracy"])
            self.assertEqual((done["best"]["round"], done["best"]["model"]), (last["round"], last["model"]))
            self.assertTrue(0 < last["metrics"]["recall_of_outer"]["mean"] <= 1)


if __name__ == "__main__":
    unittest.main()
