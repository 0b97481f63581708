#!/usr/bin/env bash
# Gives a service snapshots of other logs and of copies that went on by themselves, moves its data directory away
# under it, and has vitrine check find where copies have forked: nothing foreign is believed, and nothing is
# written into another log's directory.
#
#   bench/attack/forks.sh [TIMES]       default 20
set -euo pipefail
cd "$(dirname "$0")/../.."
times=${1:-20}
if go test ./cmd/vitrine ./service/engine -count="$times" -timeout 1h -run '^(TestForeignSnapshots|TestForksAreFound|TestMovedDirectory|TestLogGetsAnIdentity)$'; then
	echo "forks: held: $times times: no snapshot of another log or of a copy was believed, nothing was written into another log's directory, each fork was found with its entry"
else
	echo "forks: BROKEN: see above" >&2
	exit 1
fi
