"""Networks that people bring (newcomers.py): they are converted, give the same outputs, take the same step as in PyTorch,
and go back into the network by `rivulet.convert.load`; `save` goes the other way. The program is $BUILD/rivulet."""

import contextlib
import io
import json
import os
import re
import subprocess
import tempfile
import unittest

import numpy
import onnxruntime
import torch
from torch import nn

import newcomers
import rivulet
from networks import RIVULET
from newcomers import NETWORKS
from rivulet import safetensors
from rivulet.convert import __main__ as command

EQUAL = 1e-5
EXAMPLES = 12
RATE = 0.05


def made(name, seed=1):
    torch.manual_seed(seed)
    return getattr(newcomers, name)()


def outputs_of(net, x):
    found = net(x)
    return found[0] if isinstance(found, tuple) else found


class ConvertBack(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.dir = self.scratch.name

    def convert(self, name, *more):
        shape, loss, _ = NETWORKS.get(name, NETWORKS.get("Quiet" + name))
        target, out, err = os.path.join(self.dir, name), io.StringIO(), io.StringIO()
        given = [newcomers.__file__ + ":" + name, "--input", shape, "--out", target, "--loss", loss]
        torch.manual_seed(1)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command.main(given + ["--rivulet", RIVULET, "--force", *more])
        self.assertEqual(code, 0, err.getvalue())
        self.assertLessEqual(float(re.search(r"equal to (\S+) on 8", out.getvalue()).group(1)), EQUAL)
        with open(os.path.join(target, "job.json")) as f:
            return target, json.load(f)

    def examples(self, job, outputs):
        """x and what belongs to it, on the disk as well; the lines of the settings."""
        about, first = job["data"], job["model"]["layers"][0]
        words, random = first.get("vocabulary"), numpy.random.default_rng(3)
        if "window" in about:
            steps = about["window"]
            text = random.integers(33, 60, EXAMPLES * steps + 1).astype("u1")
            with open(os.path.join(self.dir, "text"), "wb") as f:
                f.write(text.tobytes())
            both = torch.from_numpy(text.astype("<i8"))
            lines = "format = text\npath = %s\n" % os.path.join(self.dir, "text")
            return both[:-1].reshape(EXAMPLES, steps), both[1:].reshape(EXAMPLES, steps), lines
        shape = [EXAMPLES] + about["shape"]
        x = random.integers(words, size=shape).astype("<i4") if words else random.normal(size=shape).astype("<f4")
        lines = "format = npy\nx = %s\ny = %s\n" % tuple(os.path.join(self.dir, k) for k in ("x.npy", "y.npy"))
        if job["model"]["loss"] == "cross_entropy":
            y = random.integers(outputs, size=EXAMPLES).astype("<i8")
        else:
            y = (
                random.integers(2, size=EXAMPLES).astype("<f4")
                if "bce" in job["model"]["loss"]
                else x.reshape(EXAMPLES, -1)[:, 0]
            )
            lines += "kind = regression\n"
        numpy.save(os.path.join(self.dir, "x.npy"), x)
        numpy.save(os.path.join(self.dir, "y.npy"), numpy.ascontiguousarray(y))
        return torch.from_numpy(x.astype("<i8") if words else x), torch.from_numpy(y.copy()), lines

    def train(self, target, job, lines):
        """One step by the built-in trainer: all examples are one batch."""
        job["data"].pop("validation")
        job.pop("evaluate")
        job["local"].update(
            batch=EXAMPLES, optimizer={"name": "sgd", "rate": RATE, "momentum": 0.9, "weight_decay": 0.01}
        )
        with open(os.path.join(target, "job.json"), "w") as f:
            json.dump(job, f)
        with open(os.path.join(self.dir, "settings"), "w") as f:
            f.write("[data my-data]\n" + lines)
        words = ["--init", os.path.join(target, "init.safetensors"), "--config", os.path.join(self.dir, "settings")]
        out = os.path.join(target, "trained.safetensors")
        done = subprocess.run(
            [RIVULET, "train", os.path.join(target, "job.json"), *words, "--epochs", "1", "--out", out],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True,
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        return out

    @staticmethod
    def step(net, x, y, loss):
        """The same by PyTorch."""
        measure = {
            "mse": nn.functional.mse_loss,
            "bce": nn.functional.binary_cross_entropy_with_logits,
            "cross_entropy": lambda o, t: nn.functional.cross_entropy(o.flatten(0, -2), t.flatten()),
        }[loss]
        optimizer = torch.optim.SGD(
            [p for p in net.parameters() if p.requires_grad], lr=RATE, momentum=0.9, weight_decay=0.01
        )
        outputs = outputs_of(net.train(), x)
        if outputs.dim() == 2 and y.dim() == 2:
            y = y[:, -1]  # of a text the one behind the last
        measure(outputs, y.reshape(outputs.shape) if loss != "cross_entropy" else y).backward()
        optimizer.step()
        return net.eval()

    def same(self, a, b):
        for name, value in b.items():
            if value.dtype == torch.float32 and not torch.equal(a[name], value):
                error = float((a[name] - value).abs().max() / max(1.0, float(value.abs().max())))
                self.assertLessEqual(error, EQUAL, name)

    def test_one_step_and_back(self):
        for name, (_, loss, types) in NETWORKS.items():
            with self.subTest(name):
                target, job = self.convert(name)
                quiet = {layer["type"] for layer in job["model"]["layers"]} - {"dropout", "dropout2d"}
                self.assertEqual(quiet, set(types.split()) - {"dropout", "dropout2d"})
                net = made(name)
                with torch.no_grad():
                    outputs = outputs_of(
                        net.eval(),
                        torch.zeros(
                            2,
                            *job["data"].get("shape", [10]),
                            dtype=torch.float32 if "vocabulary" not in job["model"]["layers"][0] else torch.int64
                        ),
                    )
                x, y, lines = self.examples(job, outputs.shape[-1])
                trained = self.train(target, job, lines)
                wanted = self.step(made(name), x, y, loss)
                back = rivulet.convert.load(made(name, seed=9), trained).eval()
                self.same(back.state_dict(), wanted.state_dict())
                with torch.no_grad():
                    self.assertLess(float((outputs_of(back, x) - outputs_of(wanted, x)).abs().max()), 1e-4)

    def test_save_is_the_other_way(self):
        for name in NETWORKS:
            with self.subTest(name):
                target, _ = self.convert(name)
                init, again = os.path.join(target, "init.safetensors"), os.path.join(target, "again.safetensors")
                net = rivulet.convert.load(made(name, seed=9), init)
                self.same(net.state_dict(), made(name).state_dict())
                rivulet.convert.save(net, again, like=init)
                one, two = safetensors.load(init), safetensors.load(again)
                self.assertEqual({k: v.tobytes() for k, v in one.items()}, {k: v.tobytes() for k, v in two.items()})
                self.assertEqual(list(one), list(two))

    def test_the_line_of_the_page(self):
        """README.md's, in its folder; the network's weights are tied."""
        target, _ = self.convert("NanoGpt")
        with open(os.path.join(target, "README.md")) as f:
            page = f.read()
        (code,) = re.findall(r"```\n(import rivulet\.convert\n.*?)```", page, re.S)
        self.assertIn('like="init.safetensors"', page)
        net, plain = made("NanoGpt", seed=9), safetensors.load(os.path.join(target, "init.safetensors"))
        safetensors.save(os.path.join(target, "model.safetensors"), plain)  # as `model get` writes it, without metadata
        here = os.getcwd()
        os.chdir(target)
        try:
            exec(code, {"net": net})
        finally:
            os.chdir(here)
        self.assertIs(net.wte.weight, net.lm_head.weight)
        self.same(net.state_dict(), made("NanoGpt").state_dict())

    def test_files_that_do_not_fit(self):
        target, _ = self.convert("Functions")
        init = os.path.join(target, "init.safetensors")
        tensors = safetensors.load(init)
        bare = os.path.join(self.dir, "bare.safetensors")
        safetensors.save(bare, tensors)
        with self.assertRaisesRegex(ValueError, r"the network has no .*; say names='names\.json' of the folder"):
            rivulet.convert.load(made("Functions"), bare)
        self.same(
            rivulet.convert.load(made("Functions", 9), bare, names=target).state_dict(), made("Functions").state_dict()
        )
        with self.assertRaisesRegex(ValueError, "the model of another network|the network has no"):
            rivulet.convert.load(made("BiLstm"), init)
        with self.assertRaisesRegex(ValueError, r"w is \[4, 96\] in the file and \[5, 96\] in the network"):
            net = made("Functions")
            net.w = nn.Parameter(torch.zeros(5, 96))
            rivulet.convert.load(net, init)
        del tensors["w.bias"]
        safetensors.save(bare, tensors)
        with self.assertRaisesRegex(ValueError, "it lacks b of the network"):
            rivulet.convert.load(made("Functions"), bare, names=target)
        with open(os.path.join(self.dir, "names.json"), "w") as f:
            f.write("[]")
        with self.assertRaisesRegex(ValueError, "no table of names"):
            rivulet.convert.load(made("Functions"), bare)

    def test_what_a_model_lacks_is_not_left_out(self):
        target, _ = self.convert("Functions")
        init, out = os.path.join(target, "init.safetensors"), os.path.join(self.dir, "out.safetensors")
        net = made("Functions")
        net.more = nn.Parameter(torch.ones(1))
        with self.assertRaisesRegex(ValueError, "it lacks more of the network"):
            rivulet.convert.save(net, out, like=init)
        self.assertFalse(os.path.exists(out))
        with self.assertRaisesRegex(ValueError, "it lacks more of the network"):
            rivulet.convert.load(net, init)

    def test_a_network_within_others(self):
        target, _ = self.convert("Functions")
        init = os.path.join(target, "init.safetensors")
        net = made("Functions", seed=9)
        rivulet.convert.load(nn.DataParallel(net), init)
        self.same(net.state_dict(), made("Functions").state_dict())

    def test_a_state_dict_goes_in_too(self):
        """One that is called as the network's own, with shared weights once."""
        state = made("NanoGpt").state_dict()
        del state["lm_head.weight"]
        path = os.path.join(self.dir, "own.safetensors")
        safetensors.save(path, state)
        self.same(rivulet.convert.load(made("NanoGpt", 9), path).state_dict(), made("NanoGpt").state_dict())

    def test_dropout_is_in_the_job(self):
        for name, rates in (
            ("TextClassifier", [0.2, 0.3]),
            ("SmallEncoder", [0.1] + [0.1, 0.1, 0.1] * 2),
            ("NanoGpt", [0.1] * 3),
            ("DropCnn", [0.25, 0.1]),
        ):
            with self.subTest(name):
                _, job = self.convert(name)
                layers = job["model"]["layers"]
                self.assertEqual([la["rate"] for la in layers if la["type"].startswith("dropout")], rates)
                weights = [la.get("dropout") for la in layers if la["type"] == "attention"]
                self.assertEqual(weights, [0.1, 0.1] if name in ("SmallEncoder", "NanoGpt") else [])
                self.assertEqual(job["local"]["random"], "counter")

    def test_tokens_of_onnx(self):
        target, job = self.convert("NanoGpt")
        out = os.path.join(target, "net.onnx")
        given = [os.path.join(target, "init.safetensors"), "--job", os.path.join(target, "job.json"), "--onnx", out]
        subprocess.run([RIVULET, "model", "export", *given], check=True, stdout=subprocess.DEVNULL)
        session = onnxruntime.InferenceSession(out, providers=["CPUExecutionProvider"])
        self.assertEqual(session.get_inputs()[0].type, "tensor(int64)")
        x = torch.randint(256, (4, 10))
        (outputs,) = session.run(None, {"input": x.numpy()})
        with torch.no_grad():
            wanted = made("NanoGpt").eval()(x)[0]
        self.assertLess(float((torch.from_numpy(outputs) - wanted).abs().max() / wanted.abs().max()), EQUAL)


if __name__ == "__main__":
    unittest.main()
