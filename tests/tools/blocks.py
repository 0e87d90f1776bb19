"""The blocks of a page of docs/, as its reader pastes them.

    blocks.py split PAGE DIR              each block as DIR/block-N, from 0
    blocks.py run PAGE [--exact] [--network] [--instead FIRST_WORDS FILE]... [--keep DIR]

`run` pastes the page's `sh` blocks in their order into one bash, in the top of the tree with a home of its own. A block without a
language below one of them is what it prints; a block below a line that ends with "`NAME`:" is a file that the reader saves where the shell
stands. Any other block is an error, and so is output that the page does not show. A shown line `...` stands for any lines, at the end of a
line for the rest of it. White space counts as one blank; without --exact all ids, times and numbers with a point are equal. The home is /home/you. --network: with
a loopback of its own; exit code 77 where there are no namespaces. --instead: that file is pasted in place of the `sh` block that begins so.
--keep: what blocks printed (out-N) and the home stay there.
"""

import argparse
import difflib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from typing import Iterator, List, NamedTuple

BUILD = os.environ.get("BUILD", "build/mbedtls")
SAME = (
    (r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME"),
    (r"\b[0-9a-f]{12,}\b", "ID"),
    (r"\d+\.\d+(e[-+]\d+)?", "NUMBER"),
    (r"\d+ files, \d+ bytes", "N files, N bytes"),
    (r"(\bdone +\d+ +\S+) +\d+ ", r"\1 N "),  # a sweep's AT ROUND
    (r"uid:\d+ pid:\d+", "uid:N pid:N"),
)


class Block(NamedTuple):
    language: str
    name: str
    text: str


def blocks(page: str) -> Iterator[Block]:
    with open(page, encoding="utf-8") as f:
        text = f.read()
    for match in re.finditer(r"^( *)```(\w*)\n(.*?)^\1```$", text, re.M | re.S):
        above = text[: match.start()].rstrip().rsplit("\n", 1)[-1]
        name = re.search(r"`([\w./-]+)`:$", above)
        yield Block(match.group(2), name.group(1) if name else "", textwrap.dedent(match.group(3)))


def split(page: str, folder: str) -> int:
    for i, block in enumerate(blocks(page)):
        with open(os.path.join(folder, "block-%d" % i), "w", encoding="utf-8") as f:
            f.write(block.text)
    return 0


class Paste(NamedTuple):
    text: str
    shown: str


def pastes(page: str, instead: List[List[str]]) -> Iterator[Paste]:
    """What goes into the shell, with what the page says it prints."""
    shell, left = None, {words: path for words, path in instead}
    for block in [*blocks(page), Block("sh", "", "")]:
        if block.language == "" and shell is not None:
            yield Paste(shell, block.text)
            shell = None
            continue
        if shell:
            yield Paste(shell, "")
        shell = None
        if block.language == "sh":
            shell = block.text.replace("build/mbedtls", BUILD)
            for words in [w for w in left if shell.startswith(w)]:
                with open(left.pop(words), encoding="utf-8") as f:
                    shell = f.read()
        elif block.language and block.name:
            yield Paste("cat >'%s' <<'END OF FILE'\n%sEND OF FILE\n" % (block.name, block.text), "")
        else:
            raise SystemExit("%s has a block that nobody runs: %s" % (page, block.text))
    if left:
        raise SystemExit("%s has no block that begins with %s" % (page, ", ".join(left)))


def norm(line: str, exact: bool) -> str:
    for pattern, word in () if exact else SAME:
        line = re.sub(pattern, word, line)
    return " ".join(line.split())


def as_shown(shown: List[str], said: List[str]) -> bool:
    if not shown:
        return not said
    if shown[0] == "...":
        return any(as_shown(shown[1:], said[i:]) for i in range(len(said) + 1))
    if not said:
        return False
    begin = shown[0][: -len("...")].rstrip()
    equal = said[0].startswith(begin) if shown[0].endswith("...") else said[0] == shown[0]
    return equal and as_shown(shown[1:], said[1:])


def compare(todo: List[Paste], folder: str, home: str, exact: bool) -> int:
    """How many blocks printed something else."""
    wrong = 0
    for i, paste in enumerate(todo):
        with open(os.path.join(folder, "out-%d" % i), encoding="utf-8", errors="replace") as f:
            said = [norm(line, exact) for line in f.read().replace(home, "/home/you").splitlines()]
        shown = [norm(line, exact) for line in paste.shown.splitlines()]
        if not as_shown(shown, said):
            wrong += 1
            print("this prints something else than the page says:\n" + paste.text)
            print("\n".join(difflib.unified_diff(shown, said, "the page", "the programs", lineterm="")))
    return wrong


def end(shell: "subprocess.Popen[bytes]") -> None:
    """Ends what the page left running: all of it is in the shell's process group."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(shell.pid, how)
            shell.wait(20)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


def run(options: argparse.Namespace) -> int:
    todo = list(pastes(options.page, options.instead))
    folder = options.keep or tempfile.mkdtemp(prefix="blocks.")
    home = os.path.join(folder, "home")
    os.mkdir(home)
    script = ["set -e"]
    for i, paste in enumerate(todo):
        with open(os.path.join(folder, "block-%d" % i), "w", encoding="utf-8") as f:
            f.write(paste.text)
        script.append("echo %d >'%s/at'; . '%s/block-%d' >'%s/out-%d' 2>&1" % (i, folder, folder, i, folder, i))
    command = ["stdbuf", "-oL", "bash", "--norc", "--noprofile", "-c", "\n".join(script)]
    shell = subprocess.Popen(command, env={**os.environ, "HOME": home}, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        rc = shell.wait(float(os.environ.get("TEST_TIMEOUT", "300")) - 10)
        if rc:
            with open(os.path.join(folder, "at"), encoding="utf-8") as f:
                at = int(f.read())
            with open(os.path.join(folder, "out-%d" % at), encoding="utf-8", errors="replace") as f:
                print("this ends with %d:\n%s\n%s" % (rc, todo[at].text, f.read()))
        wrong = rc or compare(todo, folder, home, options.exact)
    finally:
        end(shell)
        if not options.keep:
            shutil.rmtree(folder)
    if not wrong:
        print("%d blocks of %s do and print what stands there" % (len(todo), options.page))
    return 1 if wrong else 0


def inside() -> int:
    """The same command in a network of its own."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    new = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
    if shutil.which("ip") is None or subprocess.run([*new, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("needs namespaces and ip")
        return 77
    arguments = [word for word in sys.argv if word != "--network"]
    up = ["sh", "-c", 'ip link set lo up && exec "$@"', "-"]
    return subprocess.run([*new, *up, sys.executable, *arguments]).returncode


def main() -> int:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("split")
    one.add_argument("page")
    one.add_argument("folder")
    two = commands.add_parser("run")
    two.add_argument("page")
    two.add_argument("--exact", action="store_true")
    two.add_argument("--network", action="store_true")
    two.add_argument("--instead", nargs=2, action="append", default=[])
    two.add_argument("--keep")
    options = parser.parse_args()
    if options.command == "split":
        return split(options.page, options.folder)
    return inside() if options.network else run(options)


if __name__ == "__main__":
    sys.exit(main())
