"""SIGINT and SIGTERM while a loop runs: a blocking call ends, and what the program does about them comes after it."""
import os
import signal
import threading
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional


class Signals:
    """Between `start` and `end` SIGTERM asks the loop to leave, unless the program handles it itself.

    Handlers are touched in the main thread alone; elsewhere only `also` can stop the loop.
    """

    def __init__(self, also: Optional[Callable[[], bool]] = None) -> None:
        self.stopped = False
        self._also = also
        self._caught: List[int] = []
        self._until = float("inf")  # time.monotonic(): a blocking call ends then
        self._before: Dict[int, Any] = {}
        self._pid = os.getpid()

    @staticmethod
    def _here() -> bool:
        return threading.current_thread() is threading.main_thread()

    def start(self) -> None:
        if self._here() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._before[signal.SIGTERM] = signal.signal(signal.SIGTERM, self._leave)

    def end(self) -> None:
        if self._here():
            for number, before in self._before.items():
                signal.signal(number, before)
        self._before = {}

    def _leave(self, number: int, frame: Any) -> None:
        self.stopped = True
        self._in_child(number)

    def _catch(self, number: int, frame: Any) -> None:
        self._caught.append(number)
        self._in_child(number)

    def _in_child(self, number: int) -> None:
        """A process that was forked meanwhile has the handlers and no loop to leave."""
        if os.getpid() != self._pid:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def leaving(self) -> bool:
        """Is the loop to end?"""
        return self.stopped or bool(self._also and self._also())

    def cancelled(self) -> bool:
        """Is a blocking call to end? Asked from within it."""
        return bool(self._caught) or time.monotonic() >= self._until or self.leaving()

    @contextmanager
    def blocking(self, seconds: float = float("inf")) -> Iterator[None]:
        """Around one call that blocks, for `seconds` at most. A signal that came is dealt with after it: SIGINT raises
        KeyboardInterrupt as ever."""
        before: Dict[int, Any] = {}
        self._until = time.monotonic() + seconds
        if self._here():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if callable(handler):
                    before[number] = signal.signal(number, self._catch)
        try:
            yield
        finally:
            self._until = float("inf")
            for number, handler in before.items():
                signal.signal(number, handler)
            caught, self._caught = self._caught, []
            for number in dict.fromkeys(caught):
                before[number](number, None)
