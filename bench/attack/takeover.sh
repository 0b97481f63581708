#!/usr/bin/env bash
# Services take the log on three NATS servers over from each other with --take-over, under load. It shows that
# each has it at the first attempt, that the one before follows, and that nothing acknowledged is lost, changed or doubled:
# TestKillByTakeOver of cmd/vitrine. It takes about 2 s a time.
#
#   bench/attack/takeover.sh [TIMES [SEED]]       default 20, and a seed from the clock
set -euo pipefail
cd "$(dirname "$0")/../.."
source bench/attack/attack.sh
times=${1:-20}
attack takeover $((300 + 60 * times)) TestKillByTakeOver -take-overs "$times" -kill-seed "${2:-$(date +%s)}"
