"""`python -m rivulet.convert`: networks that have a counterpart give the same outputs, train, and come back by name;
what has none is named by file and line; their ONNX files give the same outputs, too. Needs numpy, torch and onnxruntime; the program is
$BUILD/rivulet."""

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

import onnxruntime
import torch
from torch import nn

import newcomers
import refusals
import study
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

# Of study.py: shape, further arguments, layers of the job (how many, which types), tensors that have another name there.
STUDY = {
    "ds_cnn": ("1,49,10", [], 31, "avgpool2d batchnorm conv2d dropout flatten linear relu", 0),
    "mobilenet_v2_035": ("3,96,96", [], 153, "add avgpool2d batchnorm conv2d dropout flatten linear relu6", 0),
    "autoencoder_640": ("640", ["--loss", "mse"], 28, "batchnorm linear relu", 0),
    "resnet20_gn": ("3,32,32", [], 73, "add avgpool2d conv2d flatten groupnorm linear relu", 0),
    "resnet18_gn": ("3,32,32", [], 68, "add avgpool2d conv2d flatten groupnorm linear relu", 0),
    "Gru512": ("20", [], 4, "embedding gru linear", 0),
    "CharLstm": ("80", [], 3, "embedding linear lstm", 0),
    "Gpt": ("128", [], 40, "add attention dropout embedding gelu layernorm linear positions", 16),
    "Encoder": ("12", [], 9, "add attention embedding gelu layernorm linear positions", 1),
    "Patches": ("5,6", [], 7, "add attention flatten linear positions tanh", 2),
    "Signal": (
        "3,40",
        [],
        11,
        "avgpool2d batchnorm concat conv1d global_avgpool hardswish linear maxpool2d sigmoid silu",
        0,
    ),
    "SqueezeExcite": (
        "3,9,9",
        ["--loss", "bce"],
        13,
        "avgpool2d conv2d flatten groupnorm linear multiply relu relu6 sigmoid",
        0,
    ),
    "LastStates": ("6,5", [], 4, "gru linear lstm rmsnorm", 0),
    "LastHidden": ("6,5", [], 2, "linear lstm", 0),
    "Tied": ("5", [], 6, "embedding gru linear tanh", 0),
}


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

    def compare_onnx(self, target, net):
        """What `rivulet model export` makes of what was converted, beside the network."""
        with open(os.path.join(target, "job.json")) as f:
            job = json.load(f)
        model, out = os.path.join(target, "init.safetensors"), os.path.join(target, "net.onnx")
        given = ["model", "export", model, "--job", os.path.join(target, "job.json"), "--onnx", out]
        subprocess.run([RIVULET, *given], check=True, stdout=subprocess.DEVNULL)
        about, first = job["data"], job["model"]["layers"][0]
        shape = [4] + (about.get("shape") or [about["window"]])
        if first["type"] == "embedding":
            x = torch.randint(first["vocabulary"], shape)
        else:
            x = torch.randn(shape)
        with torch.no_grad():
            wanted = net.eval()(x.clone())
        session = onnxruntime.InferenceSession(out, providers=["CPUExecutionProvider"])
        tokens = first["type"] == "embedding"
        self.assertEqual(session.get_inputs()[0].type, "tensor(int64)" if tokens else "tensor(float)")
        (outputs,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        error = (torch.from_numpy(outputs).reshape(wanted.shape) - wanted).abs().max() / wanted.abs().max()
        self.assertLess(float(error), TOLERANCE)

    def test_networks_with_a_counterpart(self):
        for attribute, (_, _, types) in GOOD.items():
            with self.subTest(attribute):
                target, out, job = self.convert(attribute)
                self.assertLessEqual(float(re.search(r"equal to (\S+) on 8 random inputs", out).group(1)), TOLERANCE)
                self.assertEqual([layer["type"] for layer in job["model"]["layers"]], types.split())
                net = self.network(attribute)
                state = net.state_dict()
                tensors = safetensors.load(os.path.join(target, "init.safetensors"))
                if attribute not in ("Odd", "logistic"):
                    self.assertEqual(
                        {k: tuple(v.shape) for k, v in state.items()}, {k: v.shape for k, v in tensors.items()}
                    )
                    net.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in tensors.items()})
                    self.compare_onnx(target, net)

    def test_networks_that_people_bring(self):
        for attribute, (shape, options, count, types, renamed) in STUDY.items():
            with self.subTest(attribute):
                target = os.path.join(self.dir, attribute)
                torch.manual_seed(4)
                code, out, err = self.run_command(study.__file__ + ":" + attribute, shape, "--out", target, *options)
                self.assertEqual((code, err), (0, ""))
                self.assertLessEqual(float(re.search(r"equal to (\S+) on 8 random inputs", out).group(1)), TOLERANCE)
                with open(os.path.join(target, "job.json")) as f:
                    made = json.load(f)["model"]["layers"]
                self.assertEqual((len(made), {layer["type"] for layer in made}), (count, set(types.split())))
                names = dict(line.split(" is called ") for line in out.splitlines() if " is called " in line)
                names = {k: v.split(" in the job")[0] for k, v in names.items()}
                self.assertEqual("weight in the job, of shape [12, 16]" in out, attribute == "Encoder")
                self.assertEqual(len(names), renamed)
                torch.manual_seed(4)
                net = getattr(study, attribute)()
                self.compare_onnx(target, net)
                state = net.state_dict()
                tensors = safetensors.load(os.path.join(target, "init.safetensors"))
                second = {"second.weight", "out.weight"} if attribute == "Tied" else set()
                wanted = {names.get(k, k): v for k, v in state.items() if v.dtype == torch.float32 and k not in second}
                self.assertEqual(set(tensors), set(wanted))
                for name, value in wanted.items():
                    self.assertEqual(value.flatten().tolist(), tensors[name].flatten().tolist(), name)

    def test_weights_of_another(self):
        target = os.path.join(self.dir, "tied")
        code, _, err = self.run_command(study.__file__ + ":Tied", "5", "--out", target)
        self.assertEqual((code, err), (0, ""))
        with open(os.path.join(target, "job.json")) as f:
            made = json.load(f)["model"]["layers"]
        self.assertEqual(
            {layer["name"]: layer["weights"] for layer in made if "weights" in layer},
            {"second": "first", "out": "words"},
        )

    def test_adapters_of_peft(self):
        target = os.path.join(self.dir, "peft")
        torch.manual_seed(5)
        code, out, err = self.run_command(study.__file__ + ":adapted", "12", "--out", target)
        self.assertEqual((code, err), (0, ""))
        self.assertLessEqual(float(re.search(r"equal to (\S+) on 8 random inputs", out).group(1)), TOLERANCE)
        self.assertIn("fc1.lora_A.default.weight is called fc1.lora_A.weight in the job", out)
        with open(os.path.join(target, "job.json")) as f:
            job = json.load(f)
        self.assertEqual(job["model"]["layers"][0]["lora"], {"rank": 3, "alpha": 12})
        self.assertEqual(job["tensors"], {"fc2.*": "frozen"})
        torch.manual_seed(5)
        state = study.adapted().get_base_model().state_dict()
        tensors = safetensors.load(os.path.join(target, "init.safetensors"))
        both = {"weight", "bias"}
        self.assertEqual(
            set(tensors),
            {"fc1." + k for k in both | {"lora_A.weight", "lora_B.weight"}} | {"fc2." + k for k in both},
        )
        self.assertEqual(tensors["fc1.weight"].tolist(), state["fc1.base_layer.weight"].tolist())
        self.assertEqual(tensors["fc1.lora_B.weight"].tolist(), state["fc1.lora_B.default.weight"].tolist())
        for attribute, words in (
            ("adapted_with_dropout", r"fc1 \(Linear\): lora_dropout: only 0"),
            ("adapted_dora", r"fc1 \(Linear\): DoRA"),
        ):
            code, _, err = self.run_command(study.__file__ + ":" + attribute, "12", "--out", target, "--force")
            self.assertEqual(code, 1)
            self.assertRegex(err, words)

    def test_a_text_is_a_window(self):
        """Where an output is for each token, or is one of them; a class is something else."""
        for attribute, steps, data in (
            ("Gpt", "128", {"window": 128, "shape": None, "classes": None}),
            ("CharLstm", "80", {"window": 80, "shape": None, "classes": None}),
            ("Sentiment", "9", {"window": None, "shape": [9], "classes": 2}),
        ):
            target = os.path.join(self.dir, "window_" + attribute)
            code, _, err = self.run_command(study.__file__ + ":" + attribute, steps, "--out", target)
            self.assertEqual((code, err), (0, ""))
            with open(os.path.join(target, "job.json")) as f:
                job = json.load(f)
            self.assertEqual({k: job["data"].get(k) for k in data}, data)
            for layer in job["model"]["layers"]:
                if layer["type"] == "attention" and attribute == "Gpt":
                    self.assertEqual((layer["heads"], layer["causal"]), (4, True))

    def test_every_layer_has_a_counterpart(self):
        with open(os.path.join(TOP, "wire/net/net_spec.c")) as f:
            names = f.read().split("type_names[] = {", 1)[1].split("};", 1)[0]
        made = {word for case in GOOD.values() for word in case[2].split()}
        made |= {word for case in STUDY.values() for word in case[3].split()}
        made |= {word for case in newcomers.NETWORKS.values() for word in case[2].split()}
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

    def refuse(self, head, shape, cases):
        target = os.path.join(self.dir, "refused")
        for i, (made, done, line, words) in enumerate(cases):
            with self.subTest(made=made, done=done):
                path = os.path.join(self.dir, "refused%d.py" % i)
                source = textwrap.dedent(head).format(made=made, done=done.replace("\n    ", "\n"))
                with open(path, "w") as f:
                    f.write(source)
                code, out, err = self.run_command(path + ":Net", shape, "--out", target, "--loss", "mse", "--force")
                self.assertEqual((code, out), (1, ""), err)
                self.assertNotIn("Traceback", err)
                self.assertRegex(err, r"(?m)^%s:%d: .*%s" % (re.escape(path), line, words))
                self.assertFalse(os.path.exists(target))

    def test_what_has_no_counterpart_is_named(self):
        self.refuse(refusals.HEAD, "3,8,8", refusals.CASES)

    def test_what_has_no_counterpart_in_a_sequence_is_named(self):
        self.refuse(refusals.ROWS_HEAD, "6,8", refusals.ROWS_CASES)

    def test_all_of_it_is_named_at_once(self):
        path = os.path.join(self.dir, "many.py")
        with open(path, "w") as f:
            f.write(
                "from torch import nn\nnet = nn.Sequential(\n    nn.Conv2d(3, 3, 3, padding_mode='reflect', dilation=2),\n"
                "    nn.InstanceNorm2d(3),\n"
                "    nn.ReLU(),\n    nn.Softplus(),\n)\n"
            )
        code, _, err = self.run_command(
            path + ":net", "3,8,8", "--out", os.path.join(self.dir, "many"), "--loss", "mse"
        )
        self.assertEqual(code, 1)
        self.assertEqual(
            [line.split(": ")[0].rpartition(":")[2] for line in err.splitlines()[:-1]], ["3", "3", "4", "6"]
        )
        self.assertIn("4 things", err)

    def test_what_is_wrong_with_a_network_as_a_whole(self):
        linear = "from torch import nn\nimport torch\nnet = nn.Sequential(nn.Linear(8, 4), nn.Dropout(0.5), nn.Linear(4, 3))\n"
        stays = (
            "class Net(type(net)):\n    def train(self, mode=True):\n        super().train(mode)\n"
            "        self[1].train(%s)\n        return self\n\n\nnet = Net(*net)\n"
        )
        forward = "class Net(nn.Linear):\n    def forward(self%s):\n        return nn.Linear.forward(self, x)\n\n\nnet = Net(8, 3)\n"
        for more, words in (
            ("net.requires_grad_(False)\n", "the network has nothing to train"),
            ("net.double()\n", "net: 0.weight is torch.float64; weights are float32, call .float()"),
            ("net.half()\n", "net: 0.weight is torch.float16"),
            ("net.to('meta')\n", 'net: 0.weight is on the device "meta"'),
            ("net[2].bias.data[1] = float('nan')\n", "net: 2.bias holds a value that is not finite"),
            ("net = torch.jit.script(net)\n", "scripted module"),
            (stays % "False", "1 (nn.Dropout): it is not in training when the network is"),
            (stays % "True", "1 (nn.Dropout): it is not in training when the network is"),
            ("net.register_forward_hook(lambda m, i, o: 2 * o)\n", "the network: hooks have no counterpart"),
            ("net[2].register_full_backward_hook(lambda m, i, o: None)\n", "2: hooks have no counterpart"),
            ("net[2].bias.register_hook(lambda g: 2 * g)\n", "2.bias: hooks have no counterpart"),
            (forward % ", x, y", "forward takes more than one input (y)"),
            (forward % ", *x", "forward must name its input"),
            ("raise SystemExit(0)\n", "ends the program where it is loaded"),
        ):
            with self.subTest(words):
                path, target = os.path.join(self.dir, "whole.py"), os.path.join(self.dir, "whole")
                with open(path, "w") as f:
                    f.write(linear + more)
                code, out, err = self.run_command(path + ":net", "8", "--out", target)
                self.assertEqual((code, out), (1, ""), err)
                self.assertIn(words, err)
                self.assertNotIn("Traceback", err)
                self.assertFalse(os.path.exists(target))

    def test_where_nothing_can_be_written(self):
        taken = os.path.join(self.dir, "taken")
        with open(taken, "w"):
            pass
        mine = os.path.join(self.dir, "mine.py") + ":logistic"
        code, _, err = self.run_command(mine, "20", "--out", taken)
        self.assertEqual((code, err), (1, "rivulet.convert: %s: File exists\n" % taken))

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
            (mine + ":LeNet", "1,1,28,28", [], 2, "CHANNELS,HEIGHT,WIDTH"),
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
