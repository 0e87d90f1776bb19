"""complete.py bash|zsh: what that shell offers for each line of standard input, by the scripts in completion/.

For each line that ends at the cursor: "> LINE", the words that are offered, and "= MS", the milliseconds that it took. With "type" behind the
shell's name the one line of standard input is typed instead, with a tab wherever it has one, and what stands there then is printed.
"""
import os
import pty
import select
import subprocess
import sys
import tempfile
import time

BASH = r"""
source completion/rivulet.bash
while IFS= read -r line; do
	COMP_LINE=$line COMP_POINT=${#line} COMP_WORDS=() COMP_CWORD=0
	# As readline cuts it.
	text=${line//=/ = }
	read -r -a COMP_WORDS <<<"$text"
	[[ $text == *' ' && $line != *= ]] && COMP_WORDS+=("")
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	echo "> $line"
	start=${EPOCHREALTIME/[.,]/}
	_rivulet "${COMP_WORDS[0]}"
	end=${EPOCHREALTIME/[.,]/}
	for word in "${COMPREPLY[@]}"; do
		# As the line will be read; eval is safe for what printf %q wrote.
		eval "printf '%s\n' $word"
	done
	echo "= $(((end - start) / 1000))"
done
"""

# Every word that is handed to the completion system is written down; the widget asks for all lines in one go.
ZSH = r"""
zmodload zsh/datetime
fpath=($PWD/completion $fpath)
autoload -Uz compinit && compinit -D -u
compadd() {
	local -a hits
	if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
		builtin compadd -A hits "$@"
		(($#hits)) && print -rl -- ${(Q)hits} >>$OUT
	fi
	builtin compadd "$@"
}
ask-all() {
	local line start
	while IFS= read -r line; do
		print -r -- "> $line" >>$OUT
		BUFFER=$line CURSOR=$#line start=$EPOCHREALTIME
		zle list-choices
		printf "= %d\n" $(((EPOCHREALTIME - start) * 1000)) >>$OUT
	done <$LINES_FILE
	BUFFER=
	print -r -- done >>$OUT
}
zle -N ask-all
bindkey '^T' ask-all
"""

TYPED = {
    "bash": "PS1=; source completion/rivulet.bash; bind 'set enable-bracketed-paste off'\n",
    "zsh": "PS1= PS2=; unset zle_bracketed_paste; unsetopt prompt_cr; bindkey -e\n"
    "fpath=($PWD/completion $fpath); autoload -Uz compinit && compinit -D -u\n",
}
SHELL = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}


class Terminal:
    """A shell that believes that a person types."""

    def __init__(self, shell, environment):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(environment, TERM="dumb", HISTFILE="/dev/null")
            os.execvp(SHELL[shell][0], SHELL[shell])
        self.text = b""

    def type(self, text):
        os.write(self.fd, text.encode())

    def until(self, met, seconds=60):
        """Reads what the shell prints until met() is true."""
        end = time.monotonic() + seconds
        while not met():
            if time.monotonic() > end:
                sys.exit("the shell does not answer; it said %r" % self.text[-2000:])
            if select.select([self.fd], [], [], 0.01)[0]:
                self.text += os.read(self.fd, 65536)

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def typed(shell, line):
    with tempfile.TemporaryDirectory() as place:
        setup, out = os.path.join(place, "setup"), os.path.join(place, "out")
        with open(setup, "w") as f:
            f.write(TYPED[shell] + f'keep() {{ printf "%s\\n" "$*" >{out}; }}\n: >{out}.ready\n')
        terminal = Terminal(shell, {})
        terminal.type(f". {setup}\n")
        terminal.until(lambda: os.path.exists(out + ".ready"))
        for part in line.split("\t")[:-1]:
            terminal.type(part + "\t")
        # To the beginning of the line: what stands there becomes arguments.
        terminal.type(line.split("\t")[-1] + "\x01keep \n")
        terminal.until(lambda: os.path.exists(out) and os.path.getsize(out) > 0)
        terminal.close()
        with open(out) as f:
            print(f.read(), end="")


def zsh(lines):
    with tempfile.TemporaryDirectory() as place:
        setup, out, asked = (os.path.join(place, name) for name in ("setup", "out", "lines"))
        with open(asked, "w") as f:
            f.write(lines)
        with open(setup, "w") as f:
            f.write(TYPED["zsh"] + ZSH + ": >$OUT\n")
        terminal = Terminal("zsh", {"OUT": out, "LINES_FILE": asked})
        terminal.type(f". {setup}\n")
        terminal.until(lambda: os.path.exists(out))
        terminal.type("\x14")

        def done():
            with open(out) as f:
                return f.read().endswith("\ndone\n")

        terminal.until(done)
        terminal.close()
        with open(out) as f:
            print(f.read()[: -len("done\n")], end="")


def main():
    shell = sys.argv[1]
    if sys.argv[2:] == ["type"]:
        typed(shell, sys.stdin.read().rstrip("\n"))
    elif shell == "bash":
        subprocess.run(["bash", "--norc", "-c", BASH], check=True)
    else:
        zsh(sys.stdin.read())


main()
