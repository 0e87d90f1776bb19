#!/bin/sh
# stages: gcc openssl full address
# A coordinator and two devices under valgrind, from init to the end of a short job: no bad read, no use of what was never set, no
# leak, in any of the programs.
#   FULL=1 BUILD=build/mbedtls tests/e2e/14-valgrind.sh
set -u
FLEET_NAME=14-valgrind
TEST_SLOW=${TEST_SLOW:-20}
. tests/e2e/common.sh
[ -z "${SAN:-}" ] || skip "sanitizers and valgrind do not go together"
[ -n "${FULL:-}" ] || skip "FULL=1 runs it, as .ci/run does"
command -v valgrind >/dev/null || skip "needs valgrind"

logs=$(mktemp -d) || exit 1
wrap() { # wrap PROGRAM: a program that runs it under valgrind
	cat >"$logs/${1##*/}" <<-END
		#!/bin/sh
		exec valgrind --log-file=$logs/${1##*/}.%p.log --leak-check=full --errors-for-leak-kinds=definite,possible \\
			--num-callers=30 --error-exitcode=99 --fair-sched=yes $(realpath "$1") "\$@"
	END
	chmod +x "$logs/${1##*/}"
}
wrap "$RIVULETD"
wrap "$RIVULET"
RIVULETD=$logs/rivuletd RIVULET=$logs/rivulet
# Valgrind does not know every instruction that OpenBLAS would choose.
OPENBLAS_CORETYPE=Haswell
export OPENBLAS_CORETYPE

fleet_start "
[data digits]
format = glyphs
seed = 1
count = 100"
for i in 1 2; do
	glyph_device "device$i" $i 40
	fleet_run "device$i"
done
glyph_job "$FLEET/job.json" short 2 2
job_submit "$FLEET/job.json"
job_done 20
fleet_admin device list >/dev/null || fleet_fail "device list"
fleet_admin status >/dev/null || fleet_fail "status"
fleet_end

bad=0 good=0
for log in "$logs"/*.log; do
	if grep -q 'ERROR SUMMARY: 0 errors' "$log"; then
		good=$((good + 1))
	else
		bad=$((bad + 1))
		echo "--- ${log##*/}:"
		head -n 60 "$log"
	fi
done
rm -rf "$logs"
echo "$good processes without an error, $bad with"
[ $bad -eq 0 ] && [ $good -ge 8 ]
