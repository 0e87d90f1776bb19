"""Requests to a coordinator: one kept connection over TLS or a Unix socket, problems as exceptions."""
import http.client
import json
import os
import re
import socket
import ssl
import threading
import time
from typing import Any, BinaryIO, Dict, List, Mapping, Optional, Tuple, Union

from . import Error

JSON_MAX = 64 << 20
_CHUNK = 1 << 20
_WAIT_MAX = 70.0  # seconds: a minute's requests come back within it
_TRIES = 30
Body = Union[None, bytes, BinaryIO]


class ApiError(Error):
    """A request that the coordinator refused, or that found no coordinator.

    ``status``: the HTTP status, or None when no answer came. ``type``: the word of the problem (wire/FORMAT.md, Problem
    types), such as ``"forbidden"``, or ``"unreachable"``; ``code`` is the same. ``detail``: what is wrong this time,
    for people. ``retry_after``: seconds that the coordinator asks to wait, or None. ``request``: what the coordinator's
    log calls the request, or None.
    """

    def __init__(
        self,
        detail: str,
        type: str,
        status: Optional[int] = None,
        title: str = "",
        retry_after: Optional[float] = None,
        request: Optional[str] = None,
    ) -> None:
        text = detail or title or type
        text = "%s (%s, %d)" % (text, type, status) if status else text
        super().__init__("%s [request %s]" % (text, request) if request else text, type)
        self.request = request
        self.status = status
        self.type = type
        self.title = title
        self.detail = detail
        self.retry_after = retry_after

    @property
    def passing(self) -> bool:
        """May the same request do better later? True of a coordinator that is away or overloaded."""
        return self.status is None or self.status in (408, 429) or self.status >= 500


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client:
    """One connection, kept open between requests and opened anew where it broke. Threads take turns.

    ``addresses``: hosts and ports, tried in turn; or ``socket_path``. ``timeout``: seconds without a byte until a
    request fails. Proxies of the environment are not used, redirections are not followed.
    """

    def __init__(
        self,
        socket_path: Optional[str] = None,
        addresses: Optional[List[Tuple[str, int]]] = None,
        context: Optional[ssl.SSLContext] = None,
        token: Optional[str] = None,
        timeout: float = 60.0,
    ) -> None:
        self._path = socket_path
        self._addresses = list(addresses or [])
        self._context = context
        self._token = token
        self.timeout = timeout
        self._connection: Optional[http.client.HTTPConnection] = None
        self._kept = False  # the connection has carried an answer
        self._lock = threading.RLock()
        self._pid = os.getpid()

    def again(self) -> "Client":
        """Another one, with a connection of its own."""
        return Client(self._path, self._addresses, self._context, self._token, self.timeout)

    @property
    def where(self) -> str:
        """The address in use, for people."""
        return self._path if self._path else "https://%s:%d" % self._addresses[0]

    def close(self) -> None:
        with self._lock:
            if self._connection:
                self._connection.close()
            self._connection, self._kept = None, False

    def json(self, method: str, path: str, body: Any = None, patient: bool = True) -> Any:
        """The JSON of the answer, None if it has none. ``body``: bytes as they are, or what JSON can say. ``patient``:
        who only reads and is told to wait a little waits."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if body is not None else {}
        data = self._patient(method, path, body, headers, _TRIES if patient and method == "GET" else 1)
        if not data:
            return None
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as e:
            raise ApiError("%s %s: no JSON came back: %s" % (method, path, e), "bad-answer") from e

    def _patient(self, method: str, path: str, body: Optional[bytes], headers: Dict[str, str], tries: int) -> bytes:
        """The answer's body, after so many tries, between which the coordinator had us wait a little."""
        for left in range(tries, 0, -1):
            try:
                with self._lock:
                    return self._body(self._ask(method, path, body, headers))
            except ApiError as e:
                wait = e.retry_after
                if e.status != 429 or wait is None or wait > _WAIT_MAX or left == 1:
                    raise
            time.sleep(wait)
        raise AssertionError

    def exists(self, path: str) -> bool:
        try:
            with self._lock:
                self._body(self._ask("HEAD", path, None, {}))
        except ApiError as e:
            if e.status != 404:
                raise
            return False
        return True

    def upload(self, path: str, file: BinaryIO, size: int) -> bytes:
        """Sends ``size`` bytes of ``file``, from where it stands, and returns the answer's body."""
        with self._lock:
            return self._body(self._ask("PUT", path, file, {"Content-Length": str(size)}))

    def download(self, path: str, file: BinaryIO) -> None:
        """Writes the answer's body into ``file``. A body that is cut off raises ApiError; what came is in the file
        then."""
        with self._lock:
            answer = self._ask("GET", path, None, {})
            try:
                for chunk in iter(lambda: answer.read(_CHUNK), b""):
                    file.write(chunk)
            except (http.client.HTTPException, ssl.SSLError, socket.timeout, ConnectionError) as e:
                self.close()
                raise self._unreachable(e) from e
            if answer.length:
                self.close()
                raise ApiError("%s was cut off" % path, "unreachable")

    # A connection that was kept may have been closed by the other side meanwhile: a request on it is sent once more on
    # a new one. All that goes this way may be said twice: jobs and models are named by their hashes.
    def _ask(self, method: str, path: str, body: Body, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        if self._pid != os.getpid():  # a connection is not shared with the parent
            self._connection, self._pid = None, os.getpid()
        sent = dict(headers)
        if self._token:
            sent["Authorization"] = "Bearer " + self._token
        start = 0 if body is None or isinstance(body, bytes) else body.tell()
        failure: Optional[Exception] = None
        for _ in range((self._connection is not None) + max(1, len(self._addresses))):
            if body is not None and not isinstance(body, bytes):
                body.seek(start)
            try:
                answer = self._once(method, path, body, sent)
            except (OSError, http.client.HTTPException) as e:
                # Who took the connection and says nothing may be at work on it.
                if isinstance(e, socket.timeout) and self._connection is not None and self._connection.sock is not None:
                    self.close()
                    raise self._unreachable(e) from e
                failure = failure if isinstance(failure, ssl.SSLError) else e
                self._go_elsewhere()
                continue
            self._kept = True
            if answer.status >= 300:
                raise self._problem(answer)
            return answer
        raise self._unreachable(failure) from failure

    def _once(self, method: str, path: str, body: Body, headers: Dict[str, str]) -> http.client.HTTPResponse:
        if self._connection is None:
            self._connection, self._kept = self._connect(), False
        connection = self._connection
        try:
            connection.request(method, path, body, headers)
        except (BrokenPipeError, ConnectionResetError):
            # A body that is refused is not read to its end: the answer may be there already.
            if connection.sock is None or body is None:
                raise
        return connection.getresponse()

    def _connect(self) -> http.client.HTTPConnection:
        if self._path:
            return _UnixConnection(self._path, self.timeout)
        host, port = self._addresses[0]
        return http.client.HTTPSConnection(host, port, timeout=self.timeout, context=self._context)

    def _go_elsewhere(self) -> None:
        kept = self._kept
        self.close()
        if self._addresses and not kept:
            self._addresses.append(self._addresses.pop(0))

    def _body(self, answer: http.client.HTTPResponse) -> bytes:
        try:
            data = answer.read(JSON_MAX + 1)
        except (OSError, http.client.HTTPException) as e:
            self.close()
            raise self._unreachable(e) from e
        if len(data) > JSON_MAX:
            self.close()
            raise ApiError("an answer of more than %d bytes" % JSON_MAX, "bad-answer")
        if answer.length:
            self.close()
            raise ApiError("an answer was cut off", "unreachable")
        return data

    def _problem(self, answer: http.client.HTTPResponse) -> ApiError:
        try:
            told = json.loads(self._body(answer) or b"{}")
            told = told if isinstance(told, dict) else {}
        except (ValueError, RecursionError):
            told = {}
        word = str(told.get("type", "")).rpartition(":")[2] or "http"
        after = answer.getheader("Retry-After", "")
        title = str(told.get("title", answer.reason))[:127]
        seconds = float(after) if after.isdigit() else None
        request = answer.getheader("Rivulet-Request", "")
        known = request if re.fullmatch("[0-9A-Za-z-]{1,32}", request) else None
        return ApiError(str(told.get("detail", ""))[:255], word, answer.status, title, seconds, known)

    def _unreachable(self, e: Optional[Exception]) -> ApiError:
        if isinstance(e, ssl.SSLCertVerificationError):
            text = "the certificate of %s does not check: %s" % (self.where, e.verify_message)
            return ApiError(text, "bad-certificate")
        if isinstance(e, socket.timeout):
            return ApiError("no answer from %s within %g s" % (self.where, self.timeout), "unreachable")
        hint = "; is rivuletd running?" if self._path else ""
        return ApiError("cannot reach a coordinator at %s: %s%s" % (self.where, e, hint), "unreachable")
