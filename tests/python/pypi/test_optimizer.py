"""task.optimizer makes the steps of the built-in trainer; its state, and every tensor of PyTorch, can be kept."""
import json
import os
import subprocess
import tempfile
import unittest
from typing import Any, Dict

from fleet import PATIENCE, RIVULET

import numpy
import torch
from rivulet import _optimizer, _state, safetensors
from rivulet import task as tasks
from test_torch import Hand

EXAMPLES, STEPS = 40, 7


def recipe(optimizer: Dict[str, Any], **local: Any) -> Dict[str, Any]:
    return {"steps": STEPS, "batch": 0, "optimizer": {"rate": 0.3, **optimizer}, **local}


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = torch.nn.Linear(4, 8), torch.nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        return self.fc2(torch.relu(self.fc1(x)))


def task_of(net: torch.nn.Module, local: Dict[str, Any], roles: Any = None, variates: Any = None) -> tasks.Task:
    hand = Hand(net.state_dict(), roles or {})
    rate = local["optimizer"].get("rate", 0)
    hand.facts = hand.facts._replace(recipe={**hand.facts.recipe, "local": local}, rate=rate)
    hand.variates = lambda: variates or {}  # type: ignore[method-assign]
    task = tasks.Task(hand, None)  # type: ignore[arg-type]
    task.hand = hand  # type: ignore[attr-defined]
    return task


class Steps(unittest.TestCase):
    """Against `rivulet train` on all examples at once, so that both see the same batches."""

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        torch.manual_seed(3)
        cls.x, cls.y = torch.randn(EXAMPLES, 4), torch.randint(0, 3, (EXAMPLES,))
        cls.begin = {name: v.clone() for name, v in Net().state_dict().items()}
        safetensors.save(cls.path("init.safetensors"), cls.begin)
        numpy.save(cls.path("x.npy"), cls.x.numpy())
        numpy.save(cls.path("y.npy"), cls.y.numpy().astype("i4"))
        with open(cls.path("conf"), "w", encoding="utf-8") as f:
            f.write("[data rows]\nformat = npy\nx = %s\ny = %s\n" % (cls.path("x.npy"), cls.path("y.npy")))

    @classmethod
    def path(cls, name: str) -> str:
        return os.path.join(cls.folder, name)

    def built_in(self, local: Dict[str, Any]) -> Dict[str, Any]:
        layers = [{"type": "linear", "name": "fc1", "out": 8}, {"type": "relu"}, {"type": "linear", "name": "fc2", "out": 3}]
        job = {
            "name": "steps",
            "model": {"layers": layers, "loss": "cross_entropy"},
            "data": {"name": "rows", "shape": [4], "classes": 3},
            "local": local,
            "round": {"goal": 1},
            "stop": {"rounds": 1},
        }
        with open(self.path("job.json"), "w", encoding="utf-8") as f:
            json.dump(job, f)
        command = [RIVULET, "train", self.path("job.json"), "--config", self.path("conf")]
        command += ["--init", self.path("init.safetensors"), "--out", self.path("after.safetensors")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60 * PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {n: torch.from_numpy(v.copy()) for n, v in safetensors.load(self.path("after.safetensors")).items()}

    def loop(self, local: Dict[str, Any]) -> Dict[str, Any]:
        net = Net()
        net.load_state_dict(self.begin)
        task = task_of(net, local)
        optimizer = task.optimizer(net)
        for _ in range(STEPS):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(self.x), self.y).backward()
            optimizer.step()
            task.step(1.0, EXAMPLES)
        task.submit(net)
        self.figures = task.hand.figures  # type: ignore[attr-defined]
        return net.state_dict()

    def test_like_the_built_in_trainer(self) -> None:
        for optimizer, local, word in (
            ({}, {}, "sgd"),
            ({"momentum": 0.9}, {}, "sgd"),
            ({"momentum": 0.8, "nesterov": True, "weight_decay": 0.05}, {}, "sgd"),
            ({"weight_decay": 0.1}, {"clip_norm": 0.05}, "sgd"),
            ({}, {"prox": 0.5}, "sgd"),
            ({"momentum": 0.5}, {"prox": 1.0, "clip_norm": 0.2}, "sgd"),
            ({"name": "adam", "rate": 0.01}, {}, "adam"),
            ({"name": "adam", "rate": 0.01, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-4, "weight_decay": 0.1}, {}, "adam"),
            ({"name": "adamw", "rate": 0.02, "weight_decay": 0.3}, {"clip_norm": 0.1}, "adamw"),
        ):
            with self.subTest(optimizer=optimizer, local=local):
                said = recipe(optimizer, **local)
                wanted, found = self.built_in(said), self.loop(said)
                for name, value in wanted.items():
                    self.assertGreater(float((value - self.begin[name]).abs().max()), 1e-3)
                    self.assertLess(float((found[name] - value).abs().max()), 2e-6, name)
                self.assertEqual(self.figures.optimizer, word)

    def test_normaliser(self) -> None:
        """What a run gets to in which all gradients are 1."""
        for said, local in (
            ({"momentum": 0.9}, {}), ({"momentum": 0.9, "nesterov": True}, {}), ({}, {"prox": 0.5}), ({"momentum": 0.5}, {"prox": 1}),
        ):
            w = torch.zeros(1, requires_grad=True)
            task = task_of(Net(), recipe(said, **local))
            optimizer = task.optimizer([w])
            for _ in range(STEPS):
                w.grad = torch.ones(1)
                optimizer.step()
            found = _optimizer.normaliser(task.recipe["local"], 0.3, STEPS)
            self.assertAlmostEqual(found, -w.item() / 0.3, 4)
        self.assertEqual(_optimizer.normaliser({"optimizer": {"name": "adam"}}, 0.3, STEPS), 0)

    def test_what_is_trained(self) -> None:
        net = Net()
        task = task_of(net, recipe({}), {"fc1.*": "frozen", "fc2.bias": "local"}, {"fc2.bias": numpy.float32([1, 2, 3])})
        optimizer = task.optimizer(net)
        self.assertEqual([p.shape for g in optimizer.param_groups for p in g["params"]], [(3, 8), (3,)])
        before = net.fc2.bias.detach().clone()
        for p in net.parameters():
            p.grad = torch.zeros_like(p)
        optimizer.step()
        self.assertTrue(torch.allclose(net.fc2.bias, before - 0.3 * torch.tensor([1.0, 2, 3])))
        with self.assertRaisesRegex(ValueError, "give task.optimizer the module"):
            task.optimizer(net.parameters())

    def test_refused(self) -> None:
        net = Net()
        for said, words in (
            ({"name": "lion", "rate": 1}, "'lion': task.optimizer makes sgd, adam, adamw"),
            ({"name": "adam", "rate": 1, "momentum": 0.9}, "momentum is nothing for adam"),
            ({}, "no learning rate"),
        ):
            with self.assertRaisesRegex(ValueError, words):
                task_of(net, {"optimizer": said}).optimizer(net)
        with self.assertRaisesRegex(ValueError, "no parameters"):
            task_of(net, recipe({})).optimizer([])


class State(unittest.TestCase):
    def test_optimizers_come_back(self) -> None:
        """One that goes on from what was kept takes the steps of one that never stopped."""
        for make in (
            lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
            lambda p: torch.optim.AdamW(p, 0.01, amsgrad=True),
            lambda p: torch.optim.Adagrad(p, 0.1),
            lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.5, centered=True),
        ):
            torch.manual_seed(4)
            nets = [Net(), Net()]
            nets[1].load_state_dict(nets[0].state_dict())
            optimizers = [make(net.parameters()) for net in nets]
            x = torch.randn(9, 4)
            for step in range(6):
                if step == 3:
                    optimizers[1] = make(nets[1].parameters())
                    optimizers[1].load_state_dict(_state.load(_state.dump(optimizers[0])))
                for net, optimizer in zip(nets, optimizers):
                    optimizer.zero_grad()
                    (net(x) ** 2).sum().backward()
                    optimizer.step()
            for a, b in zip(nets[0].parameters(), nets[1].parameters()):
                self.assertTrue(torch.equal(a, b))

    def test_the_rate_is_the_rounds(self) -> None:
        """What was kept of an optimizer brings its moments along, and not the rate of its round."""
        net = Net()
        rates = []
        kept = None
        for rate in (0.5, 0.25):
            optimizer = task_of(net, recipe({"rate": rate, "momentum": 0.9})).optimizer(net)
            if kept is not None:
                optimizer.load_state_dict(_state.load(kept))
                self.assertTrue(optimizer.state)
            rates.append(optimizer.param_groups[0]["lr"])
            net(torch.ones(1, 4)).sum().backward()
            optimizer.step()
            kept = _state.dump(optimizer)
        self.assertEqual(rates, [0.5, 0.25])

    def test_types(self) -> None:
        words = "float32 float64 float16 bfloat16 int8 uint8 int16 int32 int64 bool".split()
        state = {w: torch.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(torch, w)).T for w in words}
        state.update(scalar=torch.tensor(0.5), empty=torch.zeros(0, 2), grad=torch.ones(2, requires_grad=True))
        found = _state.load(_state.dump(state))
        for name, value in state.items():
            self.assertEqual((found[name].dtype, found[name].shape), (value.dtype, value.shape))
            self.assertTrue(torch.equal(found[name], value.detach()), name)
        for bad in (torch.zeros(2, dtype=torch.complex64), torch.eye(2).to_sparse()):
            with self.assertRaisesRegex(ValueError, "a cannot be kept"):
                _state.dump({"a": bad})


if __name__ == "__main__":
    unittest.main()
