#!/usr/bin/env bash
# Kills the decision service under load, at random moments, and holds what it has
# acknowledged against its log; then the same with the server of NATS that has the
# log, and now and then both: TestKill and TestKillNATS of cmd/vitrine, at length.
#
#   bench/kill.sh [KILLS [SEED]]       default 200 of each, and a seed from the clock
set -euo pipefail
cd "$(dirname "$0")/.."
source bench/attack/attack.sh
kills=${1:-200} seed=${2:-$(date +%s)}
attack kill $((300 + 60 * kills)) TestKill -kills "$kills" -kill-seed "$seed"
attack kill-nats $((300 + 60 * kills)) TestKillNATS -nats-kills "$kills" -kill-seed "$seed"
