#!/usr/bin/env bash
# Has the decision service serve at a stated rate for a long time, samples what it takes every 10 s, and fails
# where memory, goroutines or open files grow once it has warmed up: bench/soak has the rule. Less than ten minutes
# are too few, buffers still fill.
#
#   bench/soak.sh [DURATION [RATE [CSV]]]       default 30m at 200 decisions a second, to soak.csv
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir" ./cmd/vitrine ./bench/soak
"$dir/soak" -vitrine "$dir/vitrine" -data "$dir/data" -duration "${1:-30m}" -rate "${2:-200}" -csv "${3:-soak.csv}"
