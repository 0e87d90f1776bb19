#!/bin/sh
# stages: gcc full address
# docs/tutorial-4-prove-it.md as its reader pastes it, in a network of its own; ids, times and figures are not compared.
#   FULL=1 tests/e2e/793-tutorial-proof.sh
set -eu
[ -n "${FULL:-}" ] || { echo "FULL=1 runs it, as .ci/run does"; exit 77; }
exec python3 tests/tools/blocks.py run docs/tutorial-4-prove-it.md --network
