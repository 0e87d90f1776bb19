"""A job's model with a device's own tensors, by the program `rivulet`."""
import os
import subprocess
import tempfile
from typing import Any, Dict, List, Optional

from . import Error, safetensors

_CODES = {3: "not-found", 4: "denied", 5: "unreachable", 6: "invalid", 7: "corrupt"}


def local_model(
    job: str, home: Optional[str] = None, *, base: Optional[str] = None, document: Optional[str] = None
) -> Dict[str, Any]:
    """The model of a job with the tensors of role "local" that the device in `home` keeps for itself, by name: numpy
    views, in the model's order. job: its name, its id or the beginning of that. base: a model file to take the rest of;
    without one it is the newest model of the job that the device holds. document: the job's document as a file, for
    want of a coordinator.

    It is made by the program ``rivulet``, or the one that the variable RIVULET names. Error says what is missing.
    """
    if not job or job.startswith("-"):
        raise Error("%r is no job" % (job,), "invalid")
    program = os.environ.get("RIVULET") or "rivulet"
    with tempfile.TemporaryDirectory(prefix="rivulet.") as folder:
        path = os.path.join(folder, "model.safetensors")
        command: List[str] = [program, "model", "local", job, "-o", path]
        for word, value in (("--home", home), ("--base", base), ("--job", document)):
            command += [word, os.fspath(value)] if value else []
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False)
        except OSError as e:
            raise Error("%s: %s; RIVULET=PROGRAM says where it is" % (program, e.strerror), "not-found") from None
        if done.returncode != 0:
            said = done.stderr.strip()
            text = said[len("rivulet: ") :] if said.startswith("rivulet: ") else said
            raise Error(text, _CODES.get(done.returncode, "invalid"))
        return safetensors.load(path)  # mapped: it stays when the file's name goes
