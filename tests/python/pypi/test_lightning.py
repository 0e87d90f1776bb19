"""Lightning's Trainer as the loop of a task: with the real one where it is installed, else with a stand-in of what a callback sees."""
import sys
import types
import unittest
from typing import Any, Dict, List, Tuple
from unittest import mock

import torch
from rivulet import Error, _state, safetensors
from rivulet import task as tasks
from torch.utils.data import DataLoader, TensorDataset

from test_torch import Hand

EXAMPLES, BATCH = 50, 8

try:
    from lightning import LightningModule, Trainer
except ImportError:

    class LightningModule(torch.nn.Module):  # type: ignore[no-redef]
        """A stand-in."""

        def log(self, name: str, value: Any) -> None:
            self.logged[name] = value

    class Trainer:  # type: ignore[no-redef]
        """What a callback sees of a Trainer, and when it is called."""

        def __init__(self, callbacks: Any, max_epochs: int = -1, max_steps: int = -1, accumulate_grad_batches: int = 1, **_: Any):
            self.callbacks, self.epochs, self.steps, self.every = callbacks, max_epochs, max_steps, accumulate_grad_batches
            self.accumulate_grad_batches = accumulate_grad_batches
            self.global_step, self.should_stop, self.callback_metrics = 0, False, {}

        def fit(self, module: Any, loader: Any) -> None:
            module.logged = self.callback_metrics
            self.train_dataloader, self.optimizers = loader, [module.configure_optimizers()]
            per_pass = -(-len(loader) // self.every)
            self.estimated_stepping_batches = self.steps if self.steps > 0 else self.epochs * per_pass
            self.call("on_train_start", module)
            while self.global_step < self.estimated_stepping_batches and not self.should_stop:
                self.one_pass(module, loader)
            self.call("on_train_end", module)

        def one_pass(self, module: Any, loader: Any) -> None:
            optimizer = self.optimizers[0]
            for i, batch in enumerate(loader):
                loss = module.training_step(batch, i)
                loss = loss / self.every
                loss.backward()
                if (i + 1) % self.every == 0 or i + 1 == len(loader):
                    optimizer.step()
                    optimizer.zero_grad()
                    self.global_step += 1
                self.call("on_train_batch_end", module, {"loss": loss.detach()}, batch, i)
                if self.should_stop or self.global_step >= self.estimated_stepping_batches:
                    return

        def call(self, name: str, *arguments: Any) -> None:
            for callback in self.callbacks:
                getattr(callback, name)(self, *arguments)

    stand_in = types.ModuleType("lightning.pytorch")
    stand_in.Callback = object  # type: ignore[attr-defined]
    sys.modules.update({"lightning": types.ModuleType("lightning"), "lightning.pytorch": stand_in})

from rivulet import lightning  # noqa: E402


class Module(LightningModule):  # type: ignore[misc,valid-type,unused-ignore]
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.fc = torch.nn.Linear(4, 3)
        self.task: Any = None

    def training_step(self, batch: Any, index: int) -> Any:
        loss = torch.nn.functional.cross_entropy(self.fc(batch[0]), batch[1])
        self.log("own", float(index))
        return loss

    def configure_optimizers(self) -> Any:
        return self.task.optimizer(self)


class KeepingHand(Hand):
    state: Any = None

    def keep(self, state: Any) -> None:
        KeepingHand.state = _state.dump(state)

    def kept(self) -> Any:
        return _state.Kept(KeepingHand.state, 1, "m")


class Fit(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(2)
        self.data = TensorDataset(torch.randn(EXAMPLES, 4), torch.randint(0, 3, (EXAMPLES,)))
        KeepingHand.state = None

    def task(self, module: Any, local: Dict[str, Any], stop_at: int = 10**9, **facts: Any) -> Any:
        hand = KeepingHand(module.state_dict())
        hand.facts = hand.facts._replace(recipe={"local": local}, batch=BATCH, kind="train", epochs=0, steps=0)._replace(**facts)
        hand.answers = iter(1 if i >= stop_at else 0 for i in range(10**9))
        module.task = tasks.Task(hand, None)  # type: ignore[arg-type]
        return hand

    def fit(self, module: Any, keep: bool = False) -> None:
        callback = lightning.Callback(module.task, keep)
        Trainer(**lightning.arguments(module.task), callbacks=[callback]).fit(module, DataLoader(self.data, BATCH))

    def test_epochs(self) -> None:
        module = Module()
        hand = self.task(module, {"optimizer": {"momentum": 0.5}, "accumulate": 2}, epochs=2)
        before = module.fc.weight.detach().clone()
        self.fit(module)
        module.task.submit(module)
        f = hand.figures
        self.assertEqual((f.steps, f.examples, f.partial, f.optimizer), (8, EXAMPLES, False, "sgd"))
        self.assertTrue(0.3 < f.loss < 3)
        self.assertEqual(dict(f.metrics)["own"], 6)
        self.assertGreater(f.normaliser, f.steps)
        self.assertFalse(torch.equal(module.fc.weight, before))
        self.assertEqual(safetensors.array(hand.parts[0].data, "F32", (3, 4)).tolist(), module.fc.weight.tolist())

    def test_the_loss(self) -> None:
        """A mean over examples, however few a batch or many a step has; a batch without one is no part of it."""

        class Own(Module):
            def training_step(self, batch: Any, index: int) -> Any:
                seen.append((float(len(batch[0])), 1.0 + index))
                return self.fc(batch[0]).sum() * 0 + 1.0 + index

        for accumulate in (1, 3):
            seen: List[Tuple[float, float]] = []
            module = Own()
            hand = self.task(module, {"accumulate": accumulate}, epochs=1)
            self.fit(module)
            module.task.submit(module)
            self.assertEqual([n for n, _ in seen], [8.0] * 6 + [2.0])
            self.assertAlmostEqual(hand.figures.loss, sum(n * loss for n, loss in seen) / EXAMPLES, 5)
            self.assertEqual(hand.figures.trained[:2], (EXAMPLES, None))
        self.task(module, {})
        callback = lightning.Callback(module.task)
        trainer = types.SimpleNamespace(accumulate_grad_batches=2, global_step=2, optimizers=[], callback_metrics={})
        for n, outputs in ((4, {"loss": torch.tensor(1.5)}), (6, None), (1, torch.tensor(0.5))):
            callback.on_train_batch_end(trainer, module, outputs, [torch.zeros(n, 4)], 0)
        callback.on_train_end(trainer, module)
        self.assertEqual(module.task._noted["loss"], (4 * 3.0 + 1.0) / 5)
        self.assertEqual(module.task._noted["trained"], {"loss_count": 5})

    def test_what_cannot_be_kept(self) -> None:
        """Costs what it would have kept, and not the training."""
        for error in (Error("a state of 9 bytes, and there is room for 8", "limit"), ValueError("cannot be kept")):
            module = Module()
            hand = self.task(module, {}, epochs=1)
            with mock.patch.object(hand, "keep", side_effect=error), self.assertLogs("rivulet", "WARNING") as logs:
                self.fit(module, keep=True)
            self.assertIn("the optimizer is not kept: %s" % error, logs.output[0])
            module.task.submit(module)
            self.assertEqual(hand.figures.steps, 7)
        module = Module()
        hand = self.task(module, {}, epochs=1)
        KeepingHand.state = _state.dump({"param_groups": [], "state": {}})
        with self.assertLogs("rivulet", "WARNING") as logs:
            self.fit(module, keep=True)
        self.assertIn("starts at zero", logs.output[0])
        module.task.submit(module)
        self.assertEqual(len(_state.load(KeepingHand.state)["param_groups"]), 1)

    def test_steps(self) -> None:
        module = Module()
        hand = self.task(module, {"optimizer": {"name": "adamw"}}, steps=3)
        self.fit(module)
        module.task.submit(module)
        f = hand.figures
        self.assertEqual((f.steps, f.examples, f.partial, f.optimizer), (3, 3 * BATCH, False, "adamw"))

    def test_a_deadline(self) -> None:
        module = Module()
        hand = self.task(module, {}, stop_at=2, epochs=2)
        self.fit(module)
        module.task.submit(module)
        f = hand.figures
        self.assertEqual((f.steps, f.partial), (3, True))
        self.assertEqual(f.examples, EXAMPLES * 3 // 14)

    def test_seconds(self) -> None:
        module = Module()
        hand = self.task(module, {"seconds": 1e-9}, seconds=1e-9)
        self.fit(module)
        module.task.submit(module)
        self.assertEqual((hand.figures.steps, hand.figures.partial), (1, False))

    def test_state_goes_on(self) -> None:
        """Two tasks of a pass each, with what was kept between them, are one of two passes."""
        one, two = Module(), Module()
        local = {"optimizer": {"momentum": 0.9}}
        self.task(one, local, epochs=2)
        self.fit(one)
        for rate in (0.1, 0.1):
            self.task(two, local, epochs=1, rate=rate)
            self.fit(two, keep=True)
        self.assertTrue(torch.allclose(one.fc.weight, two.fc.weight, atol=1e-6))
        self.task(two, local, epochs=1, rate=0.025)
        self.fit(two, keep=True)
        self.assertEqual(_state.load(KeepingHand.state)["param_groups"][0]["lr"], 0.025)


if __name__ == "__main__":
    unittest.main()
