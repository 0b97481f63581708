#!/usr/bin/env bash
# Gives a service snapshots of other logs and of copies that went on by themselves, moves its data directory away
# under it, and has vitrine check find where copies have forked: nothing foreign is believed, and nothing is
# written into another log's directory.
#
#   bench/attack/forks.sh [TIMES]       default 20
set -euo pipefail
cd "$(dirname "$0")/../.."
exec go test ./cmd/vitrine ./service/decision -count="${1:-20}" -timeout 1h -run '^(TestForeignSnapshots|TestForksAreFound|TestMovedDirectory|TestLogGetsAnIdentity)$'
