#!/bin/sh
# The runner of the tests: what fails beside others is run once more, alone, and named; what fails twice, or crashes, has failed.
set -u
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

fail() {
	echo "93-run: failed: $*" >&2
	cat "$dir/out" >&2
	exit 1
}
program() { # program NAME: a test, whose text is standard input
	{ echo '#!/bin/sh' && cat; } >"$dir/$1" && chmod +x "$dir/$1"
}
run() { # run EXIT NAME...: those, side by side
	want=$1
	shift
	for name in "$@"; do echo "$dir/$name"; done |
		env -u RUN_DIR -u RUN_AGAIN TEST_JOBS=4 BUILD="$dir" xargs tests/run >"$dir/out" 2>&1
	got=$?
	[ $((got > 0)) -eq "$want" ] || fail "exit code $got"
}
says() { # says PATTERN...: each is a line's
	for pattern in "$@"; do
		grep -qE -- "^$pattern$" "$dir/out" || fail "no line \"$pattern\""
	done
}
never() {
	! grep -qE -- "$1" "$dir/out" || fail "a line \"$1\""
}

program good <<'END'
echo fine
END
# Passes where no other test is at work.
program shy <<END
[ ! -e "$dir/busy" ] || { echo "somebody is here"; exit 1; }
echo "quiet now"
END
program busy <<END
touch "$dir/busy"
sleep 1
rm "$dir/busy"
END
touch "$dir/busy"
program bad <<'END'
echo "tried by $$"
exit 3
END
program crash <<'END'
kill -SEGV $$
END
program race <<'END'
echo "SUMMARY: ThreadSanitizer: data race"
exit 66
END

run 0 good shy busy
says 'AGAIN shy \(exit 1, .*' 'PASS shy \(1, .*\) \(again, alone\): quiet now' 'somebody is here' '1 passed only when run again: shy ?' '3 passed, 0 failed'
[ "$(grep -nE 'PASS busy' "$dir/out" | cut -d : -f 1)" -lt "$(grep -nE 'PASS shy' "$dir/out" | cut -d : -f 1)" ] || fail "not after the others"
run 0 good
says '1 passed, 0 failed'
never 'again'
run 1 good bad
says 'FAIL bad \(exit 3, twice, .*' '1 passed, 1 failed'
[ "$(grep -cE '^tried by' "$dir/out")" -eq 2 ] || fail "the output of both"
never 'only when'
run 1 crash race good
says 'FAIL crash \(exit 139, .*' 'FAIL race \(exit 66, .*' '1 passed, 2 failed'
never 'AGAIN'
echo "ok: once more, alone; named; crashes and sanitizers are final"
