#!/bin/sh
# stages: gcc full address
# docs/tutorial-3-a-fleet-as-it-is.md as its reader pastes it: what it shows is what the programs print, figure by figure.
#   FULL=1 tests/e2e/792-tutorial-fleet.sh
set -eu
[ -n "${FULL:-}" ] || { echo "FULL=1 runs it, as .ci/run does"; exit 77; }
exec python3 tests/tools/blocks.py run docs/tutorial-3-a-fleet-as-it-is.md --exact
