"""Between two looks at a coordinator: until one of its jobs has changed."""
import time

from ._http import ApiError, Client

_WAIT_S = 25
_FULL_S = 2.0


class Changes:
    """Waits on a connection of its own: threads that take turns on the other one need not wait as long. A coordinator
    that does not tell, as it is older or for want of a right, is looked at again and again."""

    def __init__(self, client: Client) -> None:
        self._client = client.again()
        self._most = min(_WAIT_S, int(client.timeout / 2))  # a wait is no silence
        self.forget()

    def forget(self) -> None:
        """What answers next may be another program."""
        self._after, self._told = 0, self._most > 0

    def close(self) -> None:
        self._client.close()

    def wait(self, interval: float) -> None:
        """``interval`` seconds, and then until a job has changed since the last wait. Failures are left to the next
        look."""
        time.sleep(interval)
        if not self._told:
            return
        try:
            path = "/v1/changes?after=%d&wait=%d" % (self._after, self._most)
            self._after = self._client.json("GET", path, patient=False)["change"]
        except ApiError as e:
            if e.status == 429:
                time.sleep(_FULL_S)
            self._told = e.status is None or e.passing
        except (KeyError, TypeError):
            self._told = False
