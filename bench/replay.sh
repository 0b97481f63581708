#!/usr/bin/env bash
# Writes a log of a million rounds, 5 shown of 20 items with 10 features each, and times what a start of the
# service and vitrine replay do with it, from the first entry on: bench/replay says what is timed.
#
#   bench/replay.sh [ROUNDS [DIR]]       default 1000000, in a directory that is removed; one that has the log is used again
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir" ./cmd/vitrine ./bench/replay
data=${2:-$dir/data}
"$dir/replay" -data "$data" -rounds "${1:-1000000}"
echo "vitrine replay:"
TMPDIR=$dir "$dir/replay" -time "$dir/vitrine" replay "$data"
