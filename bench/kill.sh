#!/usr/bin/env bash
# Kills the decision service under load, at random moments, and holds what it has
# acknowledged against its log: TestKill of cmd/vitrine, at length.
#
#   bench/kill.sh [KILLS [SEED]]       default 200, and a seed from the clock
set -euo pipefail
cd "$(dirname "$0")/.."
exec go test ./cmd/vitrine -count=1 -v -timeout 2h -run '^TestKill$' -kills "${1:-200}" -kill-seed "${2:-$(date +%s)}"
