#!/usr/bin/env bash
# Times `vitrine optimize` on a file of many items, on one core, from start to
# answer, and prints the time of each turn: user and system, and the wall clock.
#
#   bench/optimize.sh [ITEMS [TURNS]]       default 1000000 and 3
set -euo pipefail
cd "$(dirname "$0")/.."
items=${1:-1000000}
turns=${2:-3}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/vitrine" ./cmd/vitrine

awk -v n="$items" -v json="$dir/items.json" -v csv="$dir/items.csv" 'BEGIN {
	srand(1)
	print "id,utility,revenue,groups,space" > csv
	printf "{\"max_size\":10,\"limits\":[{\"group\":\"g7\",\"max\":2}],\"items\":[" > json
	for (i = 0; i < n; i++) {
		u = 4 * rand() - 2; r = 10 * rand(); g = int(1000 * rand()); s = 1 + int(50 * rand())
		printf "%s{\"id\":\"item-%d\",\"utility\":%.6f,\"revenue\":%.6f,\"groups\":[\"g%d\"],\"space\":%d}\n", i ? "," : "", i, u, r, g, s > json
		printf "item-%d,%.6f,%.6f,g%d,%d\n", i, u, r, g, s > csv
	}
	print "]}" > json
}'
ls -l "$dir" | awk 'NR > 1 && /items/ { printf "%s: %.0f MB\n", $NF, $5 / 1e6 }'

TIMEFORMAT='%U s user, %S s system, %R s wall'
run() {
	echo "vitrine optimize $*"
	for _ in $(seq "$turns"); do
		time env GOMAXPROCS=1 "$dir/vitrine" optimize "${@/#items/$dir/items}" >"$dir/answer"
	done
	cut -c 1-100 "$dir/answer"
}
run items.json
run items.csv --max-size 10
run items.csv --capacity 1000
run items.csv --capacity 1000 --at-most g1=1,g2=1,g3=1 --max-size 30
run items.csv
