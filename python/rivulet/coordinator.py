"""A coordinator asked and ordered from Python: jobs, rounds, devices, models. The standard library is all that this
needs; numpy (or torch) is wanted where tensors come in or go out.

All that is asked comes as the plain dicts of the HTTP API (docs/api.md): times are Unix seconds, sizes bytes, ids
lower-case hex, what is not known None. `frame` makes a table of a list of them.
"""
import hashlib
import itertools
import json
import logging
import os
import re
import sys
import tempfile
import time
import urllib.parse
import warnings
from typing import Any, BinaryIO, Dict, Iterator, List, Mapping, Optional, Union, cast

from . import Error, _trust
from ._changes import Changes
from ._files import put
from ._http import ApiError, Client
from ._text import utf8

__all__ = ["ApiError", "Coordinator", "frame", "scalars"]

SOCKET = "/run/rivulet/admin.sock"
DOCUMENT_MAX = 1 << 20
_PAGE = 1000
_AWAY_S = 1.0
_OVER = ("done", "stopped")
_UNFINISHED = ("open", "evaluating")  # of a round; what is told of it may still change
_log = logging.getLogger("rivulet")

Path = Union[str, "os.PathLike[str]"]
Row = Dict[str, Any]


class Coordinator:
    """One of four ways in, certificates always checked:

    - ``Coordinator()``: the administrator's socket of this machine (``RIVULET_SOCKET``, or /run/rivulet/admin.sock).
    - ``Coordinator(socket="/run/rivulet/admin.sock")``: another socket.
    - ``Coordinator("https://HOST:7443", home="~/.rivulet")``: with the certificate of an identity that ``rivulet join``
      made. Without a home: the one that ``rivulet`` would take; without a url: the addresses that the home knows, in
      turn.
    - ``Coordinator("https://HOST:7443", token_file="token")``: with an access token. It names its coordinator's CA,
      which is fetched, compared and then believed; ``ca="ca.pem"`` believes a file instead.

    ``timeout``: seconds without a byte after which a request fails. One connection is kept open; threads take turns on
    it. What the coordinator refuses, or that there is none, is raised as `ApiError`.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        socket: Optional[Path] = None,
        home: Optional[Path] = None,
        token_file: Optional[Path] = None,
        ca: Optional[Path] = None,
        timeout: float = 60.0,
    ) -> None:
        if socket is not None and (url or home or token_file):
            raise Error("a socket goes with no url, home or token_file", "invalid")
        if url is not None and (url.startswith("unix:") or url.endswith(".sock")):
            raise Error("%r is no address; a Unix socket is given as socket=..." % url, "invalid")
        if token_file is not None:
            self._client = _with_token(url, _path(token_file), _path(ca) if ca else None, timeout)
        elif url or home is not None:
            context, urls = _trust.of_home(_path(home) if home is not None else _trust.home_default())
            addresses = [_trust.address(text) for text in ([url] if url else urls)]
            if not addresses:
                raise Error("the home knows no coordinator; give a url", "invalid")
            self._client = Client(addresses=addresses, context=context, timeout=timeout)
        else:
            where = _path(socket) if socket is not None else os.environ.get("RIVULET_SOCKET") or SOCKET
            self._client = Client(socket_path=where, timeout=timeout)

    def __repr__(self) -> str:
        return "Coordinator(%r)" % self._client.where

    def __enter__(self) -> "Coordinator":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection. The next request makes a new one."""
        self._client.close()

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Any request of docs/api.md with JSON in and out: ``request("POST", "/v1/tokens", {"uses": 5})``."""
        return self._client.json(method, path, body)

    # --- looking

    def status(self) -> Row:
        """STATUS: version, readiness, disk, spool, counters, jobs."""
        return cast(Row, self.request("GET", "/v1/status"))

    def jobs(self, all: bool = False) -> List[Row]:
        """Every JOB that is not over; ``all``: also those that are done or stopped."""
        jobs = self.request("GET", "/v1/jobs")["jobs"]
        return [job for job in jobs if all or job["state"] not in _OVER]

    def job(self, job: Union[str, Row]) -> Row:
        """One JOB with its document. ``job``: its id, the beginning of one, or a name: of the job that is not over,
        else of the newest; or a JOB from elsewhere, which is asked for anew."""
        return cast(Row, self.request("GET", "/v1/jobs/" + self._job_id(job)))

    def rounds(self, job: Union[str, Row], first: int = 1, last: Optional[int] = None) -> List[Row]:
        """Every ROUND from ``first`` on (to ``last``), ascending; the last may be open still."""
        path = "/v1/jobs/%s/rounds" % self._job_id(job)
        out: List[Row] = []
        while last is None or first <= last:
            limit = _PAGE if last is None else min(_PAGE, last - first + 1)
            page = self.request("GET", "%s?from=%d&limit=%d" % (path, first, limit))["rounds"]
            out += page
            if len(page) < limit:
                break
            first = page[-1]["round"] + 1
        return out

    def round(self, job: Union[str, Row], number: int) -> Row:
        """One ROUND with ``devices``: a REPORT of each device that took part."""
        return cast(Row, self.request("GET", "/v1/jobs/%s/rounds/%d" % (self._job_id(job), number)))

    def participation(self, job: Union[str, Row]) -> Row:
        """Which devices a job's models come from: ``deciles`` by speed, ``unmeasured``; ``never``: in none."""
        return cast(Row, self.request("GET", "/v1/jobs/%s/participation" % self._job_id(job)))

    def devices(
        self,
        state: Optional[str] = None,
        *,
        where: Optional[Mapping[str, str]] = None,
        reason: Optional[str] = None,
        silent_s: Optional[int] = None,
        agent: Optional[str] = None,
    ) -> List[Row]:
        """Every DEVICE, or those that fit all that is given.

        ``state``: "active", "suspended", "revoked" or "left". ``where``: labels. ``reason``: why they have no work.
        ``silent_s``: not heard of for so many seconds, or never. ``agent``: a version, or what it begins with ("1.1").
        The coordinator picks them; of one that is older ``state`` alone may be asked, else Error is raised.
        """
        query = [("where", "%s=%s" % item) for item in (where or {}).items()]
        given = {"reason": reason, "silent_s": silent_s, "agent": agent}
        query += [(name, str(value)) for name, value in given.items() if value is not None]
        words = "?" + urllib.parse.urlencode(query, quote_via=urllib.parse.quote) if query else ""
        answer = self.request("GET", "/v1/devices" + words)
        if words and "next" not in answer:
            raise Error("this coordinator is older and picks no devices", "unsupported")
        return [device for device in answer["devices"] if state is None or device["state"] == state]

    def device(self, device: str) -> Row:
        """One DEVICE by id, the beginning of one, or name."""
        return cast(Row, self.request("GET", "/v1/devices/" + self._find("device", device)))

    def audit(self, by: Optional[str] = None, first: int = 1, since: float = 0) -> Iterator[Row]:
        """Every ENTRY of the audit log from number ``first`` on, none older than ``since`` (Unix seconds).

        ``by``: those of "token:ID", "owner:NAME" or "device:ID" alone, for which the coordinator looks through the
        whole log, a page at a time.
        """
        who = "&by=" + urllib.parse.quote(by, safe=":") if by else ""
        at: Optional[int] = first
        while at:
            page = self.request("GET", "/v1/audit?from=%d&since=%d%s" % (at, since, who))
            yield from page["entries"]
            # An older coordinator does not say where the next page begins.
            behind = page["entries"][-1]["seq"] + 1 if page["entries"] else None
            at = page.get("next", behind)

    # --- ordering

    def submit(self, job: Union[Mapping[str, Any], Path], init: Any = None, again: bool = False) -> Row:
        """Submits a job and returns its JOB. The same document again is the same job: Error with code "exists" if that
        is over, for nothing is done anew; ``again`` True: that job is what is wanted. One that is not over is returned,
        and logged under ``rivulet``.

        ``job``: the document as a dict, as JSON text, or the path of a file. ``init``: what to begin with, uploaded and
        named in ``model.init``: a torch module, a state_dict of tensors or arrays, or the path of a safetensors file.
        Of a module, parameters are ``train`` where they require a gradient and ``frozen`` where not, floating buffers
        ``average``, all else ``frozen``; of a state_dict, floats are ``train``. The job's own ``tensors`` come first.
        What the coordinator warns of is a Python warning. A preset becomes layers, as `rivulet preset` prints them.
        """
        text = _expanded(_document(job))
        if init is not None:
            document = _parse(text)
            self._begin_with(document, init)
            text = _text(document)
        if len(text) > DOCUMENT_MAX:
            raise Error("the document has %d bytes, and a job may have %d" % (len(text), DOCUMENT_MAX), "limit")
        answer = cast(Row, self.request("POST", "/v1/jobs", text))
        _look_whether_over(answer, again)
        for warning in answer.get("warnings", []):
            warnings.warn(warning, stacklevel=2)
        return answer

    def upload(self, path: Path) -> str:
        """Uploads a safetensors file, if it is not there yet, and returns its id: the SHA-256 of its bytes."""
        with open(path, "rb") as f:
            model = _sha256(f)
            size = f.tell()
            f.seek(0)
            if not self._client.exists("/v1/models/" + model):
                answer = self._client.upload("/v1/models/" + model, f, size)
                for warning in json.loads(answer or b"{}").get("warnings", []):
                    warnings.warn(warning, stacklevel=2)
        return model

    def pause(self, job: Union[str, Row]) -> Row:
        """Hands out no more tasks and closes no round. Returns the JOB."""
        return self._change(job, "pause")

    def resume(self, job: Union[str, Row]) -> Row:
        """Goes on with a job that pauses. Returns the JOB."""
        return self._change(job, "resume")

    def stop(self, job: Union[str, Row]) -> Row:
        """Ends a job for good; its last model stays. Returns the JOB."""
        return self._change(job, "stop")

    def set(self, job: Union[str, Row], changes: Dict[str, Optional[float]]) -> Row:
        """Changes what a job is run by, by paths as in its document: ``{"share": 3, "stop.rounds": 200}``; None as that
        says. Returns the JOB."""
        return cast(Row, self.request("POST", "/v1/jobs/%s/set" % self._job_id(job), changes))

    # --- following

    def watch(self, job: Union[str, Row], first: int = 1, interval: float = 0.5) -> Iterator[Row]:
        """Each ROUND that is over, once and in order, from ``first`` on, as it comes, with its last figures: also the
        one that evaluates the last model, once that has ended. Ends when the job is done or
        stopped (``job`` says which). A coordinator that goes away is waited for, and logged under ``rivulet``; one that
        was not there to begin with raises. So is logged, once, that the job is paused or cannot move, with the reason
        and what to do. ``interval``: the least seconds between two looks. The next one is made when a job has changed
        (docs/api.md, Changes); with an older coordinator, which does not tell, after ``interval``.
        """
        changes = Changes(self._client)
        try:
            yield from self._watch(self._job_id(job), first, interval, changes)
        finally:
            changes.close()

    def _watch(self, job: str, first: int, interval: float, changes: Changes) -> Iterator[Row]:
        met = away = False
        told: Optional[str] = None
        while True:
            try:
                # The state before the rounds: a job seen as over has all its rounds.
                facts = self.job(job)
                state = facts["state"]
                # One that is over may stand behind one that is not: it waits for its turn.
                rounds = list(itertools.takewhile(_finished, self.rounds(job, first)))
            except ApiError as e:
                if not met or not e.passing or e.type == "bad-certificate":
                    raise
                if not away:
                    _log.warning("%s; trying again until it answers", e)
                away = True
                time.sleep(max(_AWAY_S, interval))
                changes.forget()
                continue
            if away:
                _log.warning("the coordinator answers again")
            met, away = True, False
            told = _tell_stuck(facts, told)
            for r in rounds:
                first = r["round"] + 1
                yield r
            if state in _OVER:
                return
            changes.wait(interval)

    # --- models

    def model(
        self, job: Union[str, Row], round: Optional[int] = None, best: bool = False, torch: Optional[bool] = None
    ) -> Dict[str, Any]:
        """A job's model as a dict from names to tensors, checked against its SHA-256: the last one, that of a
        ``round``, or the ``best``.

        ``torch`` True: a state_dict of torch tensors; False: numpy arrays (bfloat16 as 16-bit unsigned integers); None:
        tensors if the program has imported torch, else arrays. All of it is the caller's own memory.
        """
        from . import safetensors

        with tempfile.TemporaryDirectory(prefix="rivulet-") as folder:
            path = self.model_file(job, os.path.join(folder, "model"), round, best)
            if torch or (torch is None and "torch" in sys.modules):
                return _torch_tensors(path)
            return {name: array.copy() for name, array in safetensors.load(path).items()}

    def model_file(self, job: Union[str, Row], path: Path, round: Optional[int] = None, best: bool = False) -> str:
        """Writes the same model as a safetensors file. It appears whole and checked or not at all. Returns the path."""
        model = self.model_id(job, round, best)
        path = _path(path)
        part = path + ".part"
        try:
            with open(part, "w+b") as f:
                try:
                    self._client.download("/v1/models/" + model, f)
                except ApiError as e:
                    if e.type != "not-found":
                        raise
                    raise ApiError(
                        "model %s is no longer kept ([retention], the job's \"keep\"), or its file is lost "
                        '("rivuletd check" there)' % model[:12],
                        "not-found",
                    ) from e
                f.seek(0)
                if _sha256(f) != model:
                    raise ApiError("what came is not the model %s" % model, "bad-answer")
            put(part, path)
        finally:
            if os.path.exists(part):
                os.unlink(part)
        return path

    def model_id(self, job: Union[str, Row], round: Optional[int] = None, best: bool = False) -> str:
        """The SHA-256 of a job's last model, of that of a ``round``, or of the ``best`` by its monitor or guard."""
        if round is not None and best:
            raise Error("round or best, not both", "invalid")
        if round is not None:
            model = self.round(job, round)["model"]
        else:
            facts = self.job(job)
            known = facts.get("best") or (facts.get("guard") or {}).get("best") or {}
            model = known.get("model") if best else facts["model"]
        if not model:
            raise ApiError("the job has no %s" % ("best model" if best else "such model yet"), "not-found")
        return str(model)

    # --- inside

    def _change(self, job: Union[str, Row], verb: str) -> Row:
        return cast(Row, self.request("POST", "/v1/jobs/%s/%s" % (self._job_id(job), verb)))

    def _job_id(self, job: Union[str, Row]) -> str:
        word = job if isinstance(job, str) else job.get("job") if isinstance(job, Mapping) else None
        if not isinstance(word, str):
            raise Error("a job is named by its id, its name or a JOB, and not by a %s" % type(job).__name__, "invalid")
        if len(word) == 32 and not word.strip("0123456789abcdef"):
            return word
        return self._find("job", word)

    def _find(self, kind: str, word: str) -> str:
        # What can be neither a name nor an id does not travel.
        if re.fullmatch("[A-Za-z0-9_.-]{1,64}", word):
            try:
                return str(self.request("GET", "/v1/find?kind=%s&word=%s" % (kind, word))["id"])
            except ApiError as e:
                if e.status != 404:
                    raise
                if kind == "job" and e.type == "not-found":
                    raise ApiError("this coordinator is older and looks up no names: give the full id", e.type) from e
        raise ApiError('no %s "%.64s"' % (kind, word), "not-found")

    def _begin_with(self, document: Row, init: Any) -> None:
        from . import _initial, safetensors

        model = document.setdefault("model", {})
        if isinstance(init, (str, os.PathLike)):
            model["init"] = self.upload(init)
            return
        given = document.get("tensors", {})
        if not isinstance(given, dict):
            raise Error("tensors: must be an object of patterns and roles", "invalid")
        tensors, roles = _initial.of(init, "layers" in model)
        patterns = _initial.patterns(tensors, roles, given)
        if patterns:
            document["tensors"] = patterns
        with tempfile.TemporaryDirectory(prefix="rivulet-") as folder:
            path = os.path.join(folder, "init.safetensors")
            safetensors.save(path, tensors)
            model["init"] = self.upload(path)


def _finished(round: Row) -> bool:
    return round["state"] not in _UNFINISHED


def _look_whether_over(job: Row, again: bool) -> None:
    """After a submission. An older coordinator does not say that the job existed: one that is over has, but for an
    evaluation, which can end at once."""
    over = job["state"] in _OVER
    if not job.get("exists", over and job.get("kind", "train") == "train"):
        return
    # Since when it is paused nobody says.
    at = job.get("ended_at" if over else "created_at") if job["state"] != "paused" else None
    since = time.strftime(" since %Y-%m-%dT%H:%M:%SZ", time.gmtime(at)) if at else ""
    said = "job %s exists, %s%s: the same document is the same job" % (job["name"], job["state"], since)
    if over and not again:
        advice = 'another "seed" or "name" makes a new one, submit(..., again=True) returns this one'
        raise Error("%s, and nothing is done again; %s" % (said, advice), "exists")
    if not over:
        _log.warning("%s", said)


def _tell_stuck(job: Row, told: Optional[str]) -> Optional[str]:
    """Logs that the job cannot move if that is news; returns what is told of it then: a kind, or None."""
    paused, stuck = job["state"] == "paused", job.get("stuck")
    # A newer coordinator says why, and what to do, a moment after the pause.
    if not stuck and paused and "stuck" in job:
        return told
    if not stuck and not paused:
        if told is not None and job["state"] not in _OVER:
            _log.warning("job %s goes on", job["name"])
        return None
    kind, reason, advice = "", job["reason"], ""
    if stuck:
        kind, reason, advice = str(stuck["kind"]), stuck["reason"], "; what to do: " + stuck["advice"]
    if kind != told:
        _log.warning("job %s is %s: %s%s", job["name"], "paused" if paused else "stuck", reason, advice)
    return kind


def scalars(round: Row) -> Dict[str, float]:
    """The figures of a ROUND by the tags of ``rivulet job export``: "loss/train" and "accuracy/train" of the training,
    "loss/eval", "accuracy/eval", "f1/eval", ... of the evaluation, "metrics/NAME" of the trainers' own. What is not
    known is left out."""
    evaluate, figures = round.get("evaluate") or {}, round.get("figures") or {}
    macro = figures.get("macro") or {}
    found = {"loss/train": round.get("loss"), "accuracy/train": round.get("accuracy")}
    found.update({"loss/eval": evaluate.get("loss"), "accuracy/eval": evaluate.get("accuracy")})
    found.update({name + "/eval": macro.get(name) for name in ("recall", "precision", "f1")})
    found.update({name + "/eval": figures.get(name) for name in ("mae", "r2", "auc")})
    found.update({name + "/eval": value for name, value in figures.items() if re.fullmatch("top[0-9]+", name)})
    found.update({"metrics/" + name: m["mean"] for name, m in (round.get("metrics") or {}).items()})
    return {tag: float(value) for tag, value in found.items() if value is not None}


def frame(rows: List[Row]) -> Any:
    """A pandas DataFrame of jobs, rounds or devices, a line each; what is inside them is "evaluate.loss"."""
    import pandas  # type: ignore[import-untyped,unused-ignore]

    return pandas.json_normalize(rows)


def _path(path: Path) -> str:
    return os.path.expanduser(os.fspath(path))


def _with_token(url: Optional[str], path: str, ca: Optional[str], timeout: float) -> Client:
    if not url:
        raise Error("a token_file goes with a url", "invalid")
    where = _trust.address(url)
    token, fingerprint = _trust.token(path)
    context = _trust.of_ca_file(ca) if ca else _trust.of_token(where, fingerprint, timeout)
    return Client(addresses=[where], context=context, token=token, timeout=timeout)


def _document(job: Union[Mapping[str, Any], Path]) -> bytes:
    if isinstance(job, Mapping):
        return _text(job)
    if not isinstance(job, (str, os.PathLike)):
        raise Error("a job is a dict, JSON text or the path of a file, and not a %s" % type(job).__name__, "invalid")
    if isinstance(job, str) and job.lstrip("\ufeff \t\r\n").startswith("{"):
        try:
            return job.lstrip("\ufeff").encode()
        except UnicodeEncodeError as e:
            raise Error("the job is no UTF-8: %s" % e, "invalid") from e
    # The job's id is the hash of the document: it goes as it stands in the file, without a byte order mark.
    with open(_path(job), "rb") as f:
        text = f.read(DOCUMENT_MAX + 1)
    try:
        return utf8(text, job)
    except ValueError as e:
        raise Error(str(e), "invalid") from None


def _expanded(text: bytes) -> bytes:
    """With layers in the place of a preset; any other document stays as it is, for its hash is the job's id."""
    if b'"preset"' not in text:
        return text
    document = _parse(text)
    if "preset" not in document.get("model", {}):
        return text
    from . import presets

    return _text(presets.expand(document))


def _text(document: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(dict(document)).encode()
    except (TypeError, ValueError, RecursionError) as e:
        raise Error("the job cannot be written as JSON: %s" % e, "invalid") from e


def _parse(text: bytes) -> Row:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise Error("the job is no JSON: %s" % e, "invalid") from e
    if not isinstance(document, dict) or not isinstance(document.get("model", {}), dict):
        raise Error("the job is no object with an object `model`", "invalid")
    return document


def _sha256(f: BinaryIO) -> str:
    digest = hashlib.sha256()
    for chunk in iter(lambda: f.read(1 << 20), b""):
        digest.update(chunk)
    return digest.hexdigest()


def _torch_tensors(path: str) -> Dict[str, Any]:
    import torch

    from . import safetensors

    out = {}
    file = safetensors.File(path)
    for t in file:
        array = safetensors.array(file.bytes(t), t.type, t.shape).copy()
        # torch has bfloat16, which numpy shows as integers of 16 bits.
        tensor = torch.from_numpy(array.view("int16") if t.type == "BF16" else array)
        out[t.name] = tensor.view(torch.bfloat16) if t.type == "BF16" else tensor
    return out
