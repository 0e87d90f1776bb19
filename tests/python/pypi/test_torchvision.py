"""torchvision's networks, with random weights: the converter's job and its ONNX file give their outputs, and their state_dict fits the
presets of the same name as it is, by way of a coordinator. Needs numpy, torch, torchvision and onnxruntime; the programs are
$BUILD/rivulet and $BUILD/rivuletd."""

import contextlib
import io
import json
import os
import subprocess
import tempfile
import unittest

import onnxruntime
import torch
from torchvision import models

import study
from fleet import Fleet
from networks import RIVULET
from rivulet import preset, safetensors
from rivulet.convert import __main__ as command

TOLERANCE = 1e-4  # of the largest output
SIDE = 64
NETWORKS = {"resnet18": "resnet18-bn", "mobilenet_v2": "mobilenetv2"}
SOURCE = "import study\nfrom torchvision import models\n" + "".join(
    "def %s():\n    return study.settled(models.%s(weights=None))\n" % (name, name) for name in NETWORKS
)


class Torchvision(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = scratch.name

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def network(self, name):
        torch.manual_seed(6)
        net = study.settled(getattr(models, name)(weights=None)).eval()
        x = torch.randn(4, 3, SIDE, SIDE)
        with torch.no_grad():
            return net, x, net(x)

    def assert_equal(self, outputs, wanted):
        self.assertEqual(outputs.shape, tuple(wanted.shape))
        error = (torch.tensor(outputs) - wanted).abs().max() / wanted.abs().max()
        self.assertLess(float(error), TOLERANCE)

    def rivulet(self, *words):
        done = subprocess.run([RIVULET, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def eval(self, job, model, x):
        safetensors.save(self.path("rows"), {"rows": x})
        self.rivulet("eval", job, "--init", model, "--input", self.path("rows"), "--output", self.path("outputs"))
        return safetensors.load(self.path("outputs"))["output"].copy()

    def test_converter_and_onnx(self):
        with open(self.path("seen.py"), "w") as f:
            f.write(SOURCE)
        for name in NETWORKS:
            with self.subTest(name):
                net, x, wanted = self.network(name)
                torch.manual_seed(6)
                given = [self.path("seen.py") + ":" + name, "--input", "3,%d,%d" % (SIDE, SIDE), "--rivulet", RIVULET]
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    self.assertEqual(command.main(given + ["--out", self.path(name)]), 0)
                self.assertIn("equal to ", said.getvalue())
                job, model = self.path(name, "job.json"), self.path(name, "init.safetensors")
                floats = {k: tuple(v.shape) for k, v in net.state_dict().items() if v.is_floating_point()}
                self.assertEqual({k: v.shape for k, v in safetensors.load(model).items()}, floats)
                self.assert_equal(self.eval(job, model, x), wanted)
                self.rivulet("model", "export", model, "--job", job, "--onnx", self.path("onnx"))
                session = onnxruntime.InferenceSession(self.path("onnx"), providers=["CPUExecutionProvider"])
                (outputs,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
                self.assert_equal(outputs, wanted)

    def test_presets_take_the_state_dict(self):
        with Fleet() as fleet:
            for name, network in NETWORKS.items():
                with self.subTest(name):
                    net, x, wanted = self.network(name)
                    state = {k: v for k, v in net.state_dict().items() if not k.endswith("num_batches_tracked")}
                    safetensors.save(self.path("state"), state)
                    put = json.loads(self.rivulet("model", "put", self.path("state"), "--socket", fleet.socket, "--json"))
                    os.environ["RIVULET"] = RIVULET
                    job = preset(network, side=SIDE, classes=1000)
                    job["model"]["init"] = put["model"]
                    job["data"]["name"] = "pictures"
                    job.update(name=name, local={"epochs": 1, "optimizer": {"rate": 0.1}}, round={"goal": 1})
                    with open(self.path("job.json"), "w") as f:
                        json.dump(dict(job, stop={"rounds": 1}), f)
                    self.rivulet("job", "submit", self.path("job.json"), "--socket", fleet.socket)
                    self.rivulet("model", "get", name, "-o", self.path("model"), "--socket", fleet.socket)
                    self.assertEqual(set(safetensors.load(self.path("model"))), set(state))
                    self.assert_equal(self.eval(self.path("job.json"), self.path("model"), x), wanted)


if __name__ == "__main__":
    unittest.main()
