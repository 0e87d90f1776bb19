#!/bin/sh
# stages: gcc openssl address
# The runner of the tests: what fails beside others is run once more, alone, and named; what fails twice, or crashes, has failed. .ci/run
# fails when that has happened often, and when a test does not say its stages.
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

# --- .ci/run, with a make that does nothing but say, once, how many tests were lucky
mkdir -p "$dir/tree/.ci" "$dir/tree/tests/e2e" "$dir/tree/tests/unit" "$dir/stand-in"
cp .ci/run "$dir/tree/.ci/"
cp tests/stage "$dir/tree/tests/"
for name in tests/unit/test_*.c tests/e2e/[0-9]*.sh; do
	head -n 2 "$name" >"$dir/tree/$name"
done
cat >"$dir/stand-in/make" <<END
#!/bin/sh
case \$* in *" SAN=thread "*" unit") cat "$dir/lucky" ;; esac
echo "\$*" >>"$dir/made"
echo "1 passed, 0 failed"
END
printf '#!/bin/sh\nexec tar -c -T /dev/null\n' >"$dir/stand-in/git"
chmod +x "$dir/stand-in/make" "$dir/stand-in/git"
ci() { # ci EXIT LUCKY
	echo "$2 passed only when run again: a b" >"$dir/lucky"
	: >"$dir/made"
	PATH="$dir/stand-in:$PATH" "$dir/tree/.ci/run" >"$dir/out" 2>&1
	got=$?
	[ $((got > 0)) -eq "$1" ] || fail ".ci/run: exit code $got"
}
made() { # made WORDS: a make had them, in this order
	grep -q -- "$1" "$dir/made" || fail "no make with \"$1\": $(cut -c 1-200 "$dir/made")"
}
ci 0 3
says 'thread: 3 passed only when run again: a b' '[0-9]+ passed, 0 failed'
made 'CRYPTO=openssl TESTS=.*build/openssl/tests/unit/test_tls '
made 'CRYPTO=openssl E2E=.*tests/e2e/11-round.sh '
made 'FULL=1 E2E=tests/e2e/521-links.sh  *e2e'
ci 1 4
says 'again: FAIL: 4 tests passed only when run again, and 3 may: .*' '[0-9]+ passed, 1 failed'
sed -i 2d "$dir/tree/tests/e2e/11-round.sh"
ci 1 0
says 'tests/e2e/11-round.sh:2: does not say which stages it is for .*' 'stages: FAIL \(exit 1\)' 'openssl: FAIL \(exit 1\)' 'thread: FAIL \(exit 1\)'
echo "ok: once more, alone; named; crashes and sanitizers are final; .ci/run counts them, and misses no stage"
