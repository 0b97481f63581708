#!/usr/bin/env bash
# Races ONL-MNL against a straightforward PyTorch implementation of it, on one
# core of this machine, in turn, and prints the ratios of the median times.
#
#   bench/race.sh [TURNS]       default 3; PYTHON names a Python with PyTorch
#
# A run is main-gaussian-realizable with T = 1000: Phase I, pilot and all. Both
# sides report the seconds inside the process, without start-up. PyTorch runs
# once a turn, Vitrine ten seeds a turn, of which the mean counts.
set -euo pipefail
cd "$(dirname "$0")/.."
turns=${1:-3}
python=${PYTHON:-python3}
"$python" -c 'import torch' 2>/dev/null || {
	echo "race: $python has no PyTorch; install it (on Debian: apt-get install python3-torch) or set PYTHON" >&2
	exit 1
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/vitrine" ./cmd/vitrine

seconds() { # the seconds a run of a policy in a summary.csv
	awk -F, -v p="$1" '$2 == p { print $7 }' "$2"
}
median() { sort -g | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR+1)/2] : (v[NR/2] + v[NR/2+1]) / 2 }'; }

for turn in $(seq "$turns"); do
	"$python" bench/peer_torch.py --threads 1 | sed -n 's/.*seconds=\([0-9.]*\).*/\1/p' >>"$dir/torch"
	GOMAXPROCS=1 "$dir/vitrine" run bench/race.toml --workers 1 --out "$dir/$turn" >/dev/null 2>&1
	seconds onl-mnl-printed "$dir/$turn/race/summary.csv" >>"$dir/printed"
	seconds onl-mnl-fast "$dir/$turn/race/summary.csv" >>"$dir/fast"
	echo "turn $turn: PyTorch $(tail -1 "$dir/torch") s, as printed $(tail -1 "$dir/printed") s, MAP pilot and online update $(tail -1 "$dir/fast") s"
done
awk -v t="$(median <"$dir/torch")" -v p="$(median <"$dir/printed")" -v f="$(median <"$dir/fast")" 'BEGIN {
	printf "PyTorch / ONL-MNL as printed:                      %.0f\n", t / p
	printf "PyTorch / ONL-MNL with MAP pilot, online update:   %.0f\n", t / f
}'
