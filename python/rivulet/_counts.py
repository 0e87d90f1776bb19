"""What `evaluate.figures` is made of, counted as the built-in trainer does: sums over examples, in plain Python."""
import math
from typing import Any, Dict, List, Tuple

from . import Error

BINS = 256
NO_FIGURES = "no-figures"


def _plain(values: Any, what: str) -> Any:
    """A number, or a list of such, of a torch tensor, a numpy array, or anything that can be gone through."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, (int, float)):
        return values
    try:
        return [_plain(v, what) for v in values]
    except (TypeError, RecursionError):
        raise ValueError("%s holds a %s, which is no number" % (what, type(values).__name__)) from None


def _listed(values: Any, what: str) -> List[Any]:
    out = _plain(values, what)
    if not isinstance(out, list):
        raise ValueError("%s is one number: it has one for each example" % what)
    return out


def _finite(numbers: List[Any], what: str) -> None:
    try:
        good = all(map(math.isfinite, numbers))
    except OverflowError:
        good = False
    if not good:
        raise Error("%s are not finite" % what, "numeric")


def _bin(row: List[Any]) -> int:
    z = row[1] - row[0]
    return min(BINS - 1, int((1 + z / (1 + abs(z))) * (BINS // 2)))


def _rank(row: List[Any], label: int) -> int:
    """How many outputs go before the label's."""
    own = row[label]
    return sum(1 for j, v in enumerate(row) if v > own or (j < label and v == own))


class Counter:
    """Of one evaluation. `add` raises ValueError for what cannot be, Error with code "no-figures" where what is given
    is too little for what the job asks for."""

    def __init__(self, recipe: Dict[str, Any]) -> None:
        asked = recipe.get("evaluate") or {}
        self.figures: List[str] = list(asked.get("figures", []))
        classes = recipe.get("data", {}).get("classes", 0)
        self.classes: int = classes if isinstance(classes, int) else len(classes)
        self._ignored = recipe.get("model", {}).get("ignore_index")
        self._weights: List[float] = recipe.get("model", {}).get("class_weights", [])
        self.examples = self.labels = self.right = 0  # labels: that count
        self.weight = 0.0  # of these, in the loss
        self._width = 0
        self._confusion: Dict[Tuple[int, int], int] = {}
        self._tops = {int(word[3:]): 0 for word in self.figures if word.startswith("top")}
        self._sums = [0.0] * 4  # |e|, e^2, y, y^2
        self._bins: Tuple[Dict[int, int], Dict[int, int]] = ({}, {})

    def add(self, y_true: Any, given: Any) -> None:
        truth, found = _listed(y_true, "y_true"), _listed(given, "y_pred")
        if len(truth) != len(found):
            raise ValueError("y_true has %d examples, and y_pred %d" % (len(truth), len(found)))
        if self.classes:
            self._add_classes(truth, found)
        else:
            self._add_numbers(truth, found)
        self.examples += len(truth)

    # --- classes

    def _add_classes(self, truth: List[Any], found: List[Any]) -> None:
        kept = [i for i, v in enumerate(truth) if not self._is_ignored(v)]
        truth, found = [truth[i] for i in kept], [found[i] for i in kept]
        labels = [self._label(v, "y_true") for v in truth]
        scored = [isinstance(v, list) for v in found]
        if any(scored):
            taken = [self._taken(row) for row in found]
        elif any(isinstance(v, float) for v in found):
            raise ValueError(
                "y_pred of one float each: give classes as whole numbers, or scores as [n, %d]; a probability p of "
                "class 1 is [1 - p, p]" % self.classes
            )
        else:
            taken = [self._label(v, "y_pred") for v in found]
        needs = [word for word in self.figures if word == "auc" or word.startswith("top")]
        if needs and not all(scored):
            text = "evaluate.figures asks for %s: that takes scores, [n, %d]" % (needs[0], self.classes)
            raise Error(text, NO_FIGURES)
        self.labels += len(labels)
        for label, one, row in zip(labels, taken, found):
            self.right += label == one
            self.weight += self._weights[label] if label < len(self._weights) else 1
            self._confusion[label, one] = self._confusion.get((label, one), 0) + 1
            if needs:
                self._score(label, row)

    def _is_ignored(self, value: Any) -> bool:
        return self._ignored is not None and value in (self._ignored, [self._ignored])

    def _label(self, value: Any, what: str) -> int:
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        # What is not finite lies between no bounds.
        if isinstance(value, list) or not 0 <= value < self.classes or value != int(value):
            raise ValueError("%s holds %r, which is none of the classes 0 to %d" % (what, value, self.classes - 1))
        return int(value)

    def _taken(self, row: Any) -> int:
        if not isinstance(row, list) or len(row) != self.classes or any(isinstance(v, list) for v in row):
            raise ValueError("scores are not [n, %d], a number for each class" % self.classes)
        _finite(row, "scores")
        return row.index(max(row))

    def _score(self, label: int, row: List[Any]) -> None:
        rank = _rank(row, label) if self._tops else 0
        for k in self._tops:
            self._tops[k] += rank < k
        if "auc" in self.figures:
            bins = self._bins[label == 1]
            at = _bin(row)
            bins[at] = bins.get(at, 0) + 1

    # --- numbers

    def _add_numbers(self, truth: List[Any], found: List[Any]) -> None:
        pairs = []
        width = self._width
        for y, p in zip(truth, found):
            y, p = (v if isinstance(v, list) else [v] for v in (y, p))
            if len(y) != len(p) or len(y) != (width or len(y)) or any(isinstance(v, list) for v in y + p):
                raise ValueError("y_true and y_pred are not both [n] or [n, outputs]")
            _finite(y + p, "y_true or y_pred")
            width = len(y)
            pairs += zip(y, p)
        # All of them or none: who goes on after an error has counted nothing of what it was raised for.
        self._width = width
        for wanted, got in pairs:
            e = got - wanted
            for i, v in enumerate((abs(e), e * e, wanted, wanted * wanted)):
                self._sums[i] += v

    # --- all of it

    def members(self) -> Dict[str, Any]:
        """As a report's `evaluate` has them (wire/FORMAT.md), of what was asked for."""
        out: Dict[str, Any] = {}
        if "classes" in self.figures:
            out["classes"] = self._by_class()
        if "confusion" in self.figures:
            out["confusion"] = [[*pair, n] for pair, n in sorted(self._confusion.items())]
        if self._tops:
            out["top"] = [[k, n] for k, n in sorted(self._tops.items())]
        if "regression" in self.figures:
            words = ("absolute", "squares", "sum", "sum_squares")
            out["regression"] = {"values": self.examples * self._width, **dict(zip(words, self._sums))}
        if "auc" in self.figures:
            negative, positive = ([list(bin) for bin in sorted(bins.items())] for bins in self._bins)
            out["auc"] = {"positive": positive, "negative": negative}
        return out

    def _by_class(self) -> List[List[int]]:
        rows = {c: [c, 0, 0, 0] for pair in self._confusion for c in pair}
        for (label, one), n in self._confusion.items():
            rows[label][1] += n
            rows[one][2] += n
            rows[label][3] += n if label == one else 0
        return [rows[c] for c in sorted(rows)]
