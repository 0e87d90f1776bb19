"""Every command of rivulet, rivuletd and rivulet-site that a page names, in a block or within a sentence, is one that the programs' --help knows, with each of
its options. `job pause` without the program's name counts as well; and so do the commands in the programs' messages."""
import glob
import os
import re
import shlex
import subprocess
import unittest
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from fleet import RIVULET, RIVULETD, TOP

# CHANGELOG.md tells of commands that were.
PAGES = ["README.md", "CONTRIBUTING.md", "docs/*.md", "systemd/README.md", "examples/README.md", "man/*.scd"]
OPTION = re.compile(r"(?<![\w./<-])--?[a-z][a-z-]*")
SHELL_ENDS = {"|", "||", "&&", ";", "&", ">", ">>", "<", "2>", "(", ")"}


class Command(NamedTuple):
    options: Set[str]
    below: Dict[str, "Command"]
    takes_words: bool  # a word that is no command may follow: verify DIR


def help_of(program: str, words: List[str]) -> str:
    done = subprocess.run([program, *words, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)
    if done.returncode != 0:
        raise AssertionError("%s %s --help: exit code %d" % (os.path.basename(program), " ".join(words), done.returncode))
    return done.stdout


def read_help(program: str, words: List[str]) -> Command:
    """What a command's --help lists, and that of each command below it."""
    text = help_of(program, words)
    options = set(OPTION.findall(text)) | {"--help"}
    if "COMMAND [...]" in text:
        return Command(options, {word: read_help(program, [*words, word]) for word in re.findall(r"^  ([a-z]+) +\S", text, re.M)}, False)
    # Commands whose lines of usage say what may follow: "usage: rivulet data pack FOLDER", "       rivuletd [--config FILE] keys export FILE".
    called = " ".join([os.path.basename(program), *words])
    usage = re.findall(r"^(?:usage:|      ) (%s.*)$" % os.path.basename(program), text.replace(" [--config FILE]", ""), re.M)
    follow = [line[len(called) :].split()[:1] for line in usage if line.startswith(called + " ")]
    plain = [word[0] for word in follow if word and re.fullmatch(r"[a-z]+", word[0])]
    return Command(options, {word: Command(set(OPTION.findall(help_of(program, [*words, word]))), {}, True) for word in plain}, len(plain) < len(follow))


def snippets(text: str) -> Iterator[Tuple[int, str, bool]]:
    """Line, text and "is within a sentence" of all code of a page; of a block each line, one that goes on with a backslash whole."""
    for block in re.finditer(r"^ *```(\w*)\n(.*?)^ *```$", text, re.M | re.S):
        number = text.count("\n", 0, block.start(2)) + 1
        for line in block.group(2).replace("\\\n", "\0").split("\n"):
            if block.group(1) in ("", "sh", "text"):
                yield number, line.replace("\0", " "), False
            number += 1 + line.count("\0")
    prose = re.sub(r"^ *```.*?^ *```$", lambda block: "\n" * block[0].count("\n"), text, flags=re.M | re.S)
    for span in re.finditer(r"`([^`\n]+(?:\n[^`\n]+)*)`", prose):
        yield prose.count("\n", 0, span.start()) + 1, span.group(1).replace("\n", " "), True


def words_of(snippet: str) -> List[str]:
    """The words of a line as a shell has them, or as they stand if it would not take the line; brackets of optional words are left out."""
    snippet = snippet.replace("\\|", "|")
    lexer = shlex.shlex(re.sub(r"[\[\]]", " ", snippet), posix=True, punctuation_chars="|&;()<>")
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return snippet.split()


def mentions(snippet: str, inline: bool, programs: Dict[str, Command]) -> Iterator[Tuple[str, List[str]]]:
    """(program, words that follow) of each call in it."""
    words = words_of(snippet)
    for i, word in enumerate(words):
        name = word.rsplit("/", 1)[-1].lstrip("$@\"'")
        if name in programs and (word == name or word.endswith("/" + name)):
            before = words[i - 1] if i else ";"
            if i and before not in SHELL_ENDS and before not in ("--", "exec", "!") and not before.endswith(";") and "=" not in before:
                continue
            end = next((k for k in range(i + 1, len(words)) if words[k] in SHELL_ENDS or words[k].startswith("#")), len(words))
            yield name, words[i + 1 : end]
    short = re.match(r"([a-z]+) (-|[a-z]+( |$))", snippet) if inline else None
    for name, program in programs.items():
        command = program.below.get(short.group(1)) if short else None
        if short and command and name != "rivulet-site" and (command.below or short.group(2) == "-"):
            yield name, words


def all_options(command: Command) -> Set[str]:
    return command.options.union(*(all_options(c) for c in command.below.values()))


def wrong(program: str, words: List[str], top: Command) -> Optional[str]:
    """What is wrong with a call, or None."""
    at, called, options = top, program, set(top.options)
    rest = list(words)
    while rest:
        word = rest.pop(0).strip("\"'")
        if word == "...":  # any of its commands
            at, options = Command(set(), {}, True), options | all_options(at)
        word = word.rstrip(",.:")
        if word == "--config":
            rest = rest[1:]
        if word.startswith("-") and len(word) > 1 and not re.match(r"-+(\.\.\.|$)", word):
            for option in OPTION.findall(word):
                if option not in options:
                    return "%s has no option %s" % (called, option)
            continue
        if not at.below:
            continue
        below = next((w for w in word.split("|") if w in at.below), None)
        if below:
            at, called = at.below[below], "%s %s" % (called, word)
            options = at.options | {"--config"} if program == "rivuletd" else at.options
        elif re.fullmatch(r"[a-z]+", word) and not at.takes_words:
            return "%s has no command %s" % (called, word)
        else:
            at = Command(options, {}, True)
    return None


class Pages(unittest.TestCase):
    programs: Dict[str, Command] = {}

    @classmethod
    def setUpClass(cls) -> None:
        if not (os.access(RIVULETD, os.X_OK) and os.access(RIVULET, os.X_OK)):
            raise unittest.SkipTest("needs %s and %s" % (RIVULETD, RIVULET))
        cls.programs = {"rivulet": read_help(RIVULET, []), "rivuletd": read_help(RIVULETD, [])}
        site = os.path.join(os.path.dirname(RIVULET), "rivulet-site")
        if os.access(site, os.X_OK):  # of a build with MPI
            cls.programs["rivulet-site"] = read_help(site, [])

    def test_every_command_is_one_that_the_programs_know(self) -> None:
        programs = self.programs
        self.assertIn("rekey", programs["rivulet"].below["device"].below)
        self.assertIn("export", programs["rivuletd"].below["keys"].below)
        self.assertIn("--drop-damaged-deltas", programs["rivuletd"].below["check"].options)
        faults, seen = [], 0
        for page in sorted(p for pattern in PAGES for p in glob.glob(os.path.join(TOP, pattern))):
            with open(page, encoding="utf-8") as f:
                text = f.read()
            for number, snippet, inline in snippets(text):
                for program, words in mentions(snippet, inline, programs):
                    seen += 1
                    fault = wrong(program, words, programs[program])
                    if fault:
                        faults.append("%s:%d: %s: %s" % (os.path.relpath(page, TOP), number, fault, snippet.strip()))
        self.assertGreater(seen, 300)
        self.assertEqual(faults, [], "\n" + "\n".join(faults))

    def test_so_is_what_messages_tell_to_do(self) -> None:
        faults, seen = [], 0
        rooms = subprocess.run(["make", "-s", "print-rooms"], cwd=TOP, stdout=subprocess.PIPE, universal_newlines=True, check=True)
        for folder in sorted({line.split("/")[0].split(":")[0] for line in rooms.stdout.splitlines()}):
            for source in glob.glob(os.path.join(TOP, folder, "**", "*.c"), recursive=True):
                with open(source, encoding="utf-8") as f:
                    text = re.sub(r'"\s*\n\s*"', "", f.read())  # a message over several lines
                for quoted in re.findall(r'\\"((?:rivuletd? |[a-z]+ )[a-z-][^"\\\n]*)\\"', text):
                    for program, words in mentions(quoted, True, self.programs):
                        seen += 1
                        fault = wrong(program, words, self.programs[program])
                        if fault:
                            faults.append("%s: %s: %s" % (os.path.relpath(source, TOP), fault, quoted))
        self.assertGreater(seen, 70)
        self.assertEqual(faults, [], "\n" + "\n".join(faults))

    def test_faults_are_seen(self) -> None:
        programs = self.programs
        for line, fault in (
            ("runuser -u rivulet -- rivuletd --config F init --names x", "no option --names"),
            ("rivulet device forget gw-7", "no command forget"),
            ("systemctl stop rivulet && rivulet leave --quick", "no option --quick"),
            ("(cd x; rivulet job list --al)", "no option --al"),
            ("rivulet job delete JOB --state done | rivulet frob", "no command frob"),
            ("rivulet verify /srv/audit --within DEVICE", "no option --within"),
            ("age -d f | rivuletd keys put -", "no command put"),
        ):
            said = [wrong(program, words, programs[program]) for program, words in mentions(line, False, programs)]
            self.assertTrue(any(s and fault in s for s in said), (line, said))
        for line in ("rivulet job submit FILE [--set PATH=VALUE]...   # --best", "rivuletd keys export - | age -r age1...", "rivulet verify DIR --without gw -o x"):
            found = list(mentions(line, False, programs))
            self.assertTrue(found, line)
            for program, words in found:
                self.assertIsNone(wrong(program, words, programs[program]), line)
        for line, fault in (("job forget JOB", "job has no command forget"), ("check --mend", "check has no option --mend")):
            said = [wrong(program, words, programs[program]) for program, words in mentions(line, True, programs)]
            self.assertTrue(said and said[0] and fault in said[0], (line, said))
        page = "see `job\nshow`\n\n```json\nrivulet no\n```\n\n```\nrivulet one \\\n two\nthree\n```\n"
        self.assertEqual(list(snippets(page)), [(9, "rivulet one   two", False), (11, "three", False), (12, "", False), (1, "job show", True)])


if __name__ == "__main__":
    unittest.main()
