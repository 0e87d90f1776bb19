#!/bin/sh
# stages: gcc
# The agent's anonymous memory beside a program that trains: as little with a model of 16 MiB as without one. tests/large is the same with
# 3 GiB.
set -u
# Sanitizers keep what was freed.
case ${SAN:-} in ?*) limit=4096 ;; *) limit=8 ;; esac
ROUNDS=1 CODECS="f32 sparse variates" exec tests/large 16 $limit
