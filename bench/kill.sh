#!/usr/bin/env bash
# Kills the decision service under load, at random moments, and holds what it has
# acknowledged against its log; then the same with the server of NATS that has the
# log, and now and then both: TestKill and TestKillNATS of cmd/vitrine, at length.
#
#   bench/kill.sh [KILLS [SEED]]       default 200 of each, and a seed from the clock
set -euo pipefail
cd "$(dirname "$0")/.."
kills=${1:-200}
exec go test ./cmd/vitrine -count=1 -v -timeout 4h -parallel 1 -run '^TestKill' -kills "$kills" -nats-kills "$kills" -kill-seed "${2:-$(date +%s)}"
