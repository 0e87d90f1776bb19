"""The figures of a fleet against scikit-learn's on the devices' validation shares put together.

Runs tests/e2e/55-figures.sh, which leaves the rounds, the models that were measured and the devices' examples, and computes the same
figures from these with numpy and scikit-learn. Needs BUILD (a build of the programs), numpy and scikit-learn.
"""
import glob
import json
import os
import subprocess
import tempfile
import unittest
from typing import Dict, List, Tuple

import numpy as np
from sklearn import metrics

DTYPES = {"F32": np.float32, "U8": np.uint8, "I32": np.int32, "I64": np.int64}
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))


def read(path: str) -> Dict[str, np.ndarray]:
    """The tensors of a safetensors file by name, in their own shapes."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        table, data = json.loads(file.read(size)), file.read()
    return {name: np.frombuffer(data[slice(*t["data_offsets"])], DTYPES[t["dtype"]]).reshape(t["shape"])
            for name, t in table.items() if name != "__metadata__"}


class Figures(unittest.TestCase):
    """One run of the fleet for all tests; `out` holds what it left."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.out = cls.folder.name
        env = dict(os.environ, FIGURES_OUT=cls.out, BUILD=os.environ.get("BUILD", "build/mbedtls"))
        done = subprocess.run(["sh", "tests/e2e/55-figures.sh"], cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True, check=False)
        if done.returncode:
            raise AssertionError(done.stdout)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    def joined(self, data: str) -> Tuple[np.ndarray, np.ndarray]:
        """x [n, features] in float64 and y [n] of all devices' validation shares."""
        parts: List[Dict[str, np.ndarray]] = [read(path) for path in sorted(glob.glob("%s/dumped/%s-*" % (self.out, data)))]
        self.assertEqual(len(parts), 3)
        x = np.concatenate([p["validation_x"].reshape(len(p["validation_x"]), -1) / (255 if p["validation_x"].dtype == np.uint8 else 1)
                            for p in parts])
        return x.astype(np.float64), np.concatenate([p["validation_y"].reshape(-1) for p in parts])

    def evaluated(self, job: str) -> Dict:
        """The fourth, which evaluates the model that the third and last round made."""
        with open("%s/%s.rounds" % (self.out, job)) as file:
            return json.load(file)["rounds"][3]

    def model(self, name: str) -> Dict[str, np.ndarray]:
        return {k: v.astype(np.float64) for k, v in read("%s/%s.safetensors" % (self.out, name)).items()}

    def test_ten_classes(self) -> None:
        x, y = self.joined("digits")
        m, figures = self.model("devices"), self.evaluated("devices")["figures"]
        hidden = np.maximum(x @ m["fc1.weight"].T + m["fc1.bias"], 0)
        logits = hidden @ m["fc2.weight"].T + m["fc2.bias"]
        taken, labels = logits.argmax(axis=1), list(range(10))
        precision, recall, f1, support = metrics.precision_recall_fscore_support(y, taken, labels=labels, zero_division=0)
        for name, want in (("recall", recall), ("precision", precision), ("f1", f1)):
            np.testing.assert_allclose([v or 0 for v in figures[name]], want, atol=1e-6)
        self.assertEqual(figures["support"], list(support))
        macro = metrics.precision_recall_fscore_support(y, taken, average="macro", zero_division=0)
        np.testing.assert_allclose([figures["macro"][k] for k in ("precision", "recall", "f1")], macro[:3], atol=1e-6)
        matrix = np.zeros((10, 10), int)
        for truth, predicted, count in figures["confusion"]:
            matrix[truth, predicted] = count
        np.testing.assert_array_equal(matrix, metrics.confusion_matrix(y, taken, labels=labels))
        self.assertAlmostEqual(figures["top3"], metrics.top_k_accuracy_score(y, logits, k=3, labels=labels), delta=1e-6)

    def test_two_classes(self) -> None:
        x, y = self.joined("two")
        m, figures = self.model("two"), self.evaluated("two")["figures"]
        logits = x @ m["fc.weight"].T + m["fc.bias"]
        score = logits[:, 1] - logits[:, 0]
        self.assertEqual(figures["examples"], len(y))
        self.assertAlmostEqual(figures["auc"], metrics.roc_auc_score(y, score), delta=0.005)
        self.assertGreater(figures["auc"], 0.7)
        np.testing.assert_allclose(figures["recall"], metrics.recall_score(y, score > 0, average=None), atol=1e-6)

    def test_numbers(self) -> None:
        x, y = self.joined("line")
        m, figures = self.model("line"), self.evaluated("line")["figures"]
        predicted = (x @ m["fc.weight"].T + m["fc.bias"])[:, 0]
        self.assertAlmostEqual(figures["mae"], metrics.mean_absolute_error(y, predicted), delta=1e-6)
        self.assertAlmostEqual(figures["r2"], metrics.r2_score(y, predicted), delta=1e-6)


if __name__ == "__main__":
    unittest.main()
