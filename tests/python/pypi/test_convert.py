"""`python -m rivulet.convert`: networks that have a counterpart give the same outputs, train, and come back by name;
what has none is named by file and line. Needs numpy and torch; the program is $BUILD/rivulet."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

import torch
from torch import nn

from fleet import TOP, Fleet, within
from networks import RIVULET
from rivulet import safetensors
from rivulet.convert import __main__ as command
from rivulet.convert import layers

TOLERANCE = 1e-4

NETWORKS = textwrap.dedent("""\
    import torch
    import torch.nn.functional as F
    from torch import nn


    def two_nn():
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(),
                             nn.Linear(200, 10))


    class LeNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
            self.conv2 = nn.Conv2d(6, 16, 5)
            self.fc1 = nn.Linear(16 * 5 * 5, 120)
            self.fc2 = nn.Linear(120, 84)
            self.fc3 = nn.Linear(84, 10)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.conv1(x)), (2, 2))
            x = F.max_pool2d(F.relu(self.conv2(x)), 2)
            x = torch.flatten(x, 1)
            return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


    class FedAvgCNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(
                nn.Conv2d(1, 32, 5, padding="same"), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2))
            self.classifier = nn.Sequential(nn.Linear(3136, 512), nn.ReLU(), nn.Dropout(0.5), nn.Linear(512, 10))

        def forward(self, x):
            return self.classifier(self.features(x).view(x.size(0), -1))


    class Block(nn.Module):
        def __init__(self, n, m, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(n, m, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(m, m, 3, 1, 1, bias=False)
            self.relu = nn.ReLU(inplace=True)
            self.short = nn.Identity() if n == m else nn.Conv2d(n, m, 1, stride, bias=False)

        def forward(self, x):
            out = self.conv2(self.relu(self.conv1(x)))
            out += self.short(x)
            return self.relu(out)


    def residual():
        return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), Block(8, 8, 1), Block(8, 16, 2),
                             Block(16, 16, 1), nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(16, 10))


    class Autoencoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 6))
            self.decoder = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 64))

        def forward(self, x):
            return self.decoder(self.encoder(x))


    class Odd(nn.Module):
        '''Every other way to write what there is.'''
        def __init__(self):
            super().__init__()
            self.input = nn.Conv2d(2, 4, (3, 5), stride=(1, 2), padding=(1, 2), bias=False)
            self.pool = nn.MaxPool2d((3, 2), stride=(2, 1), padding=(1, 0))
            self.side = nn.Conv2d(4, 4, 1)
            self.drop = nn.Dropout(0.2)
            self.head = nn.Linear(4, 3)
            self.head.weight.requires_grad_(False)
            self.side.requires_grad_(False)

        def forward(self, x, scale=None, wide=False):
            x = self.pool(torch.relu(self.input(x)))
            x = torch.add(self.side(x).relu(), x)
            x = F.avg_pool2d(x, 2, stride=1, padding=1).contiguous()
            x = F.dropout(x, p=0.1, training=self.training)
            x = x.mean(dim=(-1, -2))
            x = self.drop(x.reshape(x.shape[0], -1))
            return self.head(x.add(x))


    class InPlace(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Conv2d(2, 2, 1)

        def forward(self, x):
            x += self.a(x)
            return F.relu(x, True)


    logistic = nn.Linear(20, 4)
    relu_only = nn.Sequential(nn.Linear(5, 5), nn.ReLU())
    """)

# attribute: shape, further arguments, layers of the job
GOOD = {
    "two_nn": ("1,28,28", [], "flatten linear relu linear relu linear"),
    "LeNet": ("1,28,28", [], "conv2d relu maxpool2d conv2d relu maxpool2d flatten linear relu linear relu linear"),
    "FedAvgCNN": ("1,28,28", [], "conv2d relu maxpool2d conv2d relu maxpool2d flatten linear relu dropout linear"),
    "residual": (
        "3,32,32",
        [],
        "conv2d relu"
        + " conv2d relu conv2d add relu"
        + " conv2d relu conv2d conv2d add relu"
        + " conv2d relu conv2d add relu"
        + " avgpool2d flatten linear",
    ),
    "Autoencoder": ("64", ["--loss", "mse"], "linear relu linear linear relu linear"),
    "Odd": (
        "2,12,15",
        [],
        "conv2d relu maxpool2d conv2d relu add avgpool2d dropout avgpool2d flatten dropout add linear",
    ),
    "InPlace": ("2,6,6", ["--loss", "mse"], "conv2d add relu"),
    "logistic": ("20", ["--classes", "4"], "linear"),
    "relu_only": ("5", [], "linear relu"),
}

# A network for examples of shape [3, 8, 8] in which one thing has no counterpart.
HEAD = """\
    import torch
    import torch.nn.functional as F
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Conv2d(3, 3, 1)
            self.b = {made}

        def forward(self, x):
            x = self.a(x)
            {done}
            return x
    """
MADE, DONE = 10, 14  # their lines
REFUSED = [
    # what self.b is, what forward does, line, words
    ("nn.BatchNorm2d(3)", "x = self.b(x)", MADE, r"b \(nn\.BatchNorm2d\): the built-in trainer has no such layer"),
    ("nn.Sequential(nn.ReLU(), nn.Tanh())", "x = self.b(x)", MADE, r"b\.1 \(nn\.Tanh\)"),
    ("nn.Conv2d(3, 3, 3, dilation=2)", "x = self.b(x)", MADE, r"dilation=\(2, 2\)"),
    ("nn.Conv2d(3, 3, 3, groups=3)", "x = self.b(x)", MADE, r"groups=3"),
    ("nn.Conv2d(3, 3, 3, padding=1, padding_mode='circular')", "x = self.b(x)", MADE, r"padding_mode='circular'"),
    ("nn.Conv2d(3, 3, 2, padding='same')", "x = self.b(x)", MADE, r"padding='same' with an even kernel"),
    ("nn.ConvTranspose2d(3, 3, 3)", "x = self.b(x)", MADE, r"ConvTranspose2d"),
    ("nn.MaxPool2d(3, ceil_mode=True)", "x = self.b(x)", MADE, r"ceil_mode=True"),
    ("nn.MaxPool2d(2, dilation=2)", "x = self.b(x)", MADE, r"dilation=2"),
    ("nn.MaxPool2d(2, return_indices=True)", "x, _ = self.b(x)", MADE, r"return_indices=True"),
    ("nn.AvgPool2d(3, padding=1, count_include_pad=False)", "x = self.b(x)", MADE, r"count_include_pad=False"),
    ("nn.AvgPool2d(2, divisor_override=3)", "x = self.b(x)", MADE, r"divisor_override=3"),
    ("nn.AdaptiveAvgPool2d(3)", "x = self.b(x)", MADE, r"windows are of different sizes"),
    ("nn.Flatten(2)", "x = self.b(x)", MADE, r"from \[3, 8, 8\] to \[3, 64\]"),
    ("nn.Linear(8, 8)", "x = self.b(x)", MADE, r"put a flatten before it"),
    ("nn.Dropout2d(0.5)", "x = self.b(x)", MADE, r"Dropout2d"),
    ("nn.Dropout(1.0)", "x = self.b(x)", MADE, r"p=1\.0"),
    ("nn.LogSoftmax(1)", "x = self.b(x)", MADE, r"cross_entropy has the softmax inside"),
    (
        "nn.ReLU(inplace=True)",
        "y = self.b(x); x = x + y",
        MADE + 4,
        r"works in place, and .*:14 reads what was there before",
    ),
    ("nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 3, 1))", "x = self.b(x)", MADE, r"ParametrizedConv2d"),
    ("nn.utils.weight_norm(nn.Conv2d(3, 3, 1))", "x = self.b(x)", MADE, r"hooks"),
    ("nn.Parameter(torch.ones(3, 1, 1))", "x = x * self.b", DONE, r"self\.b: weights are used by layers"),
    ("nn.Conv2d(3, 3, 1)", "x = self.b(self.b(x))", DONE, r"used twice: layers do not share weights"),
    ("nn.Conv2d(3, 3, 1); self.b.weight = self.a.weight", "x = self.b(x)", MADE, r"b\.weight is a\.weight"),
    ("nn.Conv2d(3, 3, 1)", "pass", MADE, r"b\.weight: nothing on the way to the output uses it"),
    ("self.register_buffer('mean', torch.zeros(3))", "pass", 8, r"mean: layers have no buffers"),
    ("nn.Conv2d(3, 3, 1).double()", "x = self.b(x.double()).float()", MADE, r"weight is torch\.float64"),
    ("None", "x = torch.sigmoid(x)", DONE, r"torch\.sigmoid: the built-in trainer has nothing like it"),
    ("None", "x = F.gelu(x)", DONE, r"F\.gelu"),
    ("None", "x = x.tanh()", DONE, r"Tensor\.tanh"),
    ("None", "x = x + 1", DONE, r"add: of numbers"),
    ("None", "x = torch.add(x, x, alpha=2)", DONE, r"alpha=2"),
    ("None", "x = x + x.mean((2, 3), keepdim=True)", DONE, r"shapes that differ"),
    ("None", "x = x.mean(1)", DONE, r"only the mean over height and width"),
    ("None", "x = torch.cat([x, x], 1)", DONE, r"torch\.cat"),
    ("None", "x = x.reshape(-1, 64)", DONE, r"batch as first dimension"),
    ("None", "x = x.view(x.size(0), 3, 64)", DONE, r"only a flat example"),
    ("None", "x = F.dropout(x, 0.5)", DONE, r"it drops in evaluation, too"),
    ("None", "x = F.dropout(x, 0.5, training=False)", DONE, r"training=False"),
    ("None", "x = F.max_pool2d(x, 2, ceil_mode=True)", DONE, r"F\.max_pool2d: ceil_mode=True"),
    ("None", "x = x if x.sum() > 0 else -x", DONE, r"torch\.fx cannot follow this"),
    ("None", "x = F.relu(x) if self.training else x", 12, r"other things in training than in evaluation"),
    ("None", "x = (x, x)", 12, r"must return one tensor"),
    (
        "nn.Conv2d(3, 3, 1)",
        "\n            with torch.no_grad():\n                x = self.b(x)",
        DONE + 2,
        r"within no_grad",
    ),
]


class Convert(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.dir = cls.scratch.name
        with open(os.path.join(cls.dir, "mine.py"), "w") as f:
            f.write(NETWORKS)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def run_command(self, network, shape, *more):
        """Exit code, standard output, standard error."""
        out, err = io.StringIO(), io.StringIO()
        given = [network, "--input", shape, "--rivulet", RIVULET] + list(more)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = command.main(given)
            except SystemExit as e:
                code = e.code
        return code, out.getvalue(), err.getvalue()

    def convert(self, attribute, *more):
        shape, options, _ = GOOD[attribute]
        target = os.path.join(self.dir, attribute)
        torch.manual_seed(3)
        code, out, err = self.run_command(
            os.path.join(self.dir, "mine.py") + ":" + attribute,
            shape,
            "--out",
            target,
            "--force",
            *(options + list(more)),
        )
        self.assertEqual((code, err), (0, ""))
        with open(os.path.join(target, "job.json")) as f:
            return target, out, json.load(f)

    def network(self, attribute):
        made = getattr(sys.modules["mine"], attribute)
        return made if isinstance(made, nn.Module) else made()

    def test_networks_with_a_counterpart(self):
        for attribute, (_, _, types) in GOOD.items():
            with self.subTest(attribute):
                target, out, job = self.convert(attribute)
                self.assertLessEqual(float(re.search(r"equal to (\S+) on 8 random inputs", out).group(1)), TOLERANCE)
                self.assertEqual([layer["type"] for layer in job["model"]["layers"]], types.split())
                state = self.network(attribute).state_dict()
                tensors = safetensors.load(os.path.join(target, "init.safetensors"))
                if attribute not in ("Odd", "logistic"):
                    self.assertEqual(
                        {k: tuple(v.shape) for k, v in state.items()}, {k: v.shape for k, v in tensors.items()}
                    )

    def test_every_layer_has_a_counterpart(self):
        with open(os.path.join(TOP, "wire/job/recipe_layer.c")) as f:
            names = f.read().split("type_names[] = {", 1)[1].split("};", 1)[0]
        made = {word for _, _, types in GOOD.values() for word in types.split()}
        self.assertEqual({line.split('"')[1] for line in names.splitlines() if '"' in line}, made)

    def test_the_id_is_the_one_that_a_coordinator_gives(self):
        target, _, job = self.convert("LeNet")
        done = subprocess.run(
            [RIVULET, "model", "inspect", os.path.join(target, "init.safetensors"), "--json"],
            stdout=subprocess.PIPE,
            check=True,
        )
        self.assertEqual(json.loads(done.stdout)["model"], job["model"]["init"])

    def test_a_coordinator_takes_the_job(self):
        target, _, job = self.convert("FedAvgCNN", "--data", "digits")
        with Fleet() as fleet:

            def admin(*words):
                done = subprocess.run([RIVULET, *words, "--socket", fleet.socket, "--json"], stdout=subprocess.PIPE)
                self.assertEqual(done.returncode, 0, words)
                return json.loads(done.stdout)

            put = admin("model", "put", os.path.join(target, "init.safetensors"))
            self.assertEqual(put["model"], job["model"]["init"])
            admin("job", "submit", os.path.join(target, "job.json"))
            for name in ("one", "two"):
                fleet.digits(name, 1, 40)
                fleet.run(name)
            within(60, "a round", lambda: admin("job", "show", "FedAvgCNN")["round"] > 1)
            done = [r for r in admin("job", "show", "FedAvgCNN")["rounds"] if r["round"] == 1]
            self.assertEqual((done[0]["state"], done[0]["reports"]), ("committed", 2))

    def test_names_roles_and_the_page(self):
        target, out, job = self.convert("Odd", "--name", "try-1", "--data", "pictures")
        self.assertEqual(job["tensors"], {"side.*": "frozen", "head.weight": "frozen"})
        self.assertEqual(job["model"]["layers"][0]["name"], "input_2")
        self.assertIn("input.weight is called input_2.weight in the job", out)
        self.assertEqual((job["name"], job["data"]["name"], job["data"]["classes"]), ("try-1", "pictures", 3))
        with open(os.path.join(target, "README.md")) as f:
            page = f.read()
        self.assertIn("| `input.weight` | `input_2.weight` |", page)
        self.assertIn("[data pictures]", page)

    def test_a_converted_network_trains_and_comes_back(self):
        target, _, job = self.convert("LeNet", "--data", "digits")
        settings = os.path.join(self.dir, "settings.conf")
        with open(settings, "w") as f:
            f.write("[data digits]\nformat = glyphs\nhand = 1\ncount = 600\nseed = 1\n")
        job["local"].update(batch=10, optimizer={"name": "sgd", "rate": 0.02, "momentum": 0.9})
        with open(os.path.join(target, "job.json"), "w") as f:
            json.dump(job, f)
        trained = os.path.join(target, "trained.safetensors")
        done = subprocess.run(
            [
                RIVULET,
                "train",
                os.path.join(target, "job.json"),
                "--config",
                settings,
                "--epochs",
                "6",
                "--json",
                "--init",
                os.path.join(target, "init.safetensors"),
                "--out",
                trained,
            ],
            stdout=subprocess.PIPE,
            check=True,
        )
        epochs = json.loads(done.stdout)
        self.assertLess(epochs[-1]["loss"], epochs[0]["loss"] / 2)
        self.assertGreater(epochs[-1]["validation_accuracy"], 0.5)
        net = self.network("LeNet").eval()
        net.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in safetensors.load(trained).items()})
        x = torch.randn(8, 1, 28, 28)
        rows, out = os.path.join(target, "rows"), os.path.join(target, "rows.out")
        safetensors.save(rows, {"rows": x})
        subprocess.run(
            [RIVULET, "eval", os.path.join(target, "job.json"), "--init", trained, "--input", rows, "--output", out],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        with torch.no_grad():
            want = net(x)
        error = (torch.from_numpy(safetensors.load(out)["output"].copy()) - want).abs().max() / want.abs().max()
        self.assertLess(float(error), TOLERANCE)

    def test_what_has_no_counterpart_is_named(self):
        for i, (made, done, line, words) in enumerate(REFUSED):
            with self.subTest(made=made, done=done):
                path = os.path.join(self.dir, "refused%d.py" % i)
                source = textwrap.dedent(HEAD).format(made=made, done=done.replace("\n    ", "\n"))
                with open(path, "w") as f:
                    f.write(source)
                code, out, err = self.run_command(
                    path + ":Net", "3,8,8", "--out", os.path.join(self.dir, "refused"), "--loss", "mse"
                )
                self.assertEqual((code, out), (1, ""), err)
                self.assertNotIn("Traceback", err)
                self.assertRegex(err, r"(?m)^%s:%d: .*%s" % (re.escape(path), line, words))
                self.assertFalse(os.path.exists(os.path.join(self.dir, "refused")))

    def test_all_of_it_is_named_at_once(self):
        path = os.path.join(self.dir, "many.py")
        with open(path, "w") as f:
            f.write(
                "from torch import nn\nnet = nn.Sequential(\n    nn.Conv2d(3, 3, 3, groups=3, dilation=2),\n"
                "    nn.BatchNorm2d(3),\n"
                "    nn.ReLU(),\n    nn.Sigmoid(),\n)\n"
            )
        code, _, err = self.run_command(
            path + ":net", "3,8,8", "--out", os.path.join(self.dir, "many"), "--loss", "mse"
        )
        self.assertEqual(code, 1)
        self.assertEqual(
            [line.split(": ")[0].rpartition(":")[2] for line in err.splitlines()[:-1]], ["3", "3", "4", "6"]
        )
        self.assertIn("4 things", err)

    def test_an_error_of_theirs_is_theirs(self):
        for text, words in (
            ("def net():\n    return 1 // 0\n", "ZeroDivisionError"),
            ("import nothing_like_it\n", "ModuleNotFoundError"),
            ("def net(:\n", "SyntaxError"),
            ("from torch import nn\n\n\ndef net():\n    return nn.Linear(4, 4)\n", "an input of shape [3, 3, 8, 8]"),
            (
                "from torch import nn\n\n\nclass net(nn.Module):\n    def forward(self, x):\n"
                "        return x.view(8, 192)\n",
                "input of shape [3, 3, 8, 8]",
            ),
        ):
            with self.subTest(words):
                path = os.path.join(self.dir, "theirs.py")
                with open(path, "w") as f:
                    f.write(text)
                code, _, err = self.run_command(path + ":net", "3,8,8", "--out", os.path.join(self.dir, "theirs"))
                self.assertEqual(code, 1)
                self.assertIn(words, err)
                self.assertEqual("Traceback" in err, words != "SyntaxError")
                self.assertNotIn("rivulet/convert", err)
                if "shape" not in words:
                    self.assertIn("theirs.py", err)

    def test_refusals_of_the_command(self):
        mine = os.path.join(self.dir, "mine.py")
        for network, shape, more, code, words in (
            (mine, "5", [], 2, "FILE.py:NAME"),
            (mine + ":LeNet", "28,28", [], 2, "CHANNELS,HEIGHT,WIDTH"),
            (mine + ":Nothing", "5", [], 1, "has no Nothing"),
            (mine + "x:LeNet", "5", [], 1, "no such file"),
            (mine + ":torch", "5", [], 1, "no torch.nn.Module"),
            (mine + ":LeNet", "1,28,28", ["--classes", "9"], 1, "10 outputs"),
            (mine + ":LeNet", "1,28,28", ["--name", "a b"], 2, "names are"),
            (mine + ":two_nn", "1,28,28", ["--rivulet", "/nonexistent/rivulet", "--force"], 1, "not compared"),
        ):
            with self.subTest(words):
                got, _, err = self.run_command(network, shape, "--out", os.path.join(self.dir, "no"), *more)
                self.assertEqual(got, code, err)
                self.assertIn(words, err)
        self.convert("LeNet")
        code, _, err = self.run_command(mine + ":LeNet", "1,28,28", "--out", os.path.join(self.dir, "LeNet"))
        self.assertEqual(code, 1)
        self.assertIn("--force writes over it", err)

    def test_outputs_that_differ_are_seen(self):
        was = layers.MODULES[nn.ReLU]
        layers.MODULES[nn.ReLU] = layers.identity
        try:
            code, _, err = self.run_command(
                os.path.join(self.dir, "mine.py") + ":relu_only", "5", "--out", os.path.join(self.dir, "differ")
            )
        finally:
            layers.MODULES[nn.ReLU] = was
        self.assertEqual(code, 1)
        self.assertIn("the outputs differ by", err)

    def test_as_a_program(self):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "rivulet.convert",
                "mine.py:logistic",
                "--input",
                "20",
                "--out",
                "program",
                "--no-compare",
            ],
            cwd=self.dir,
            env=dict(os.environ, PYTHONPATH=os.path.abspath("python")),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True,
        )
        self.assertEqual(
            (done.returncode, done.stdout),
            (
                0,
                "program: 1 layer, 84 parameters\nweight is called 0.weight in the job\n"
                "bias is called 0.bias in the job\n"
                "next: program/README.md\n",
            ),
        )


if __name__ == "__main__":
    unittest.main()
