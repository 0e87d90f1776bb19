"""A task's examples in two parts, whoever divides them: what is trained on, and what is for evaluation alone."""
from collections.abc import Sequence
from typing import Any, Tuple

from ._sources import Examples, Hand


class Pairs(Sequence):  # type: ignore[type-arg]
    """(x, y) of each example of the agent's arrays, as copies: those are read only, and PyTorch warns of such."""

    def __init__(self, x: Any, y: Any) -> None:
        self._x, self._y = x, y

    def __len__(self) -> int:
        return 0 if self._x is None else len(self._x)

    def __getitem__(self, i: Any) -> Tuple[Any, Any]:
        if self._x is None:
            raise IndexError(i)
        return self._x[i].copy(), self._y[i].copy()


class Chosen(Sequence):  # type: ignore[type-arg]
    """Some examples of the program's own data."""

    def __init__(self, data: Any, indices: Any) -> None:
        self._data, self._indices = data, indices

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, i: int) -> Any:
        return self._data[int(self._indices[i])]


def of_agent(examples: Examples) -> Tuple[Pairs, Pairs]:
    return Pairs(examples.x, examples.y), Pairs(examples.validation_x, examples.validation_y)


def of_data(data: Any, hand: Hand) -> Tuple[Chosen, Chosen]:
    """ValueError: the agent counts more examples than there are."""
    import numpy

    share = hand.share(len(data))
    if share:
        train, held = (numpy.frombuffer(part, numpy.uint32) for part in share)
        _check(train, len(data), "to train on")
        _check(held, len(data), "for evaluation")
        return Chosen(data, train), Chosen(data, held)
    held = numpy.frombuffer(hand.validation(len(data)), numpy.uint32)
    _check(held, len(data), "for evaluation")
    rest = numpy.ones(len(data), bool)
    rest[held] = False
    return Chosen(data, numpy.flatnonzero(rest)), Chosen(data, held)


def _check(indices: Any, count: int, what: str) -> None:
    if len(indices) and indices[-1] >= count:
        raise ValueError("example %d is %s, and there are %d" % (indices[-1], what, count))
