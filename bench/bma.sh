#!/usr/bin/env bash
# Compares BMA-MNL with the tuned linear learners on all panels and worlds, and prints the table of
# docs/algorithms/bma-mnl.md. Worlds with drift also have linear learners that forget.
#
#   bench/bma.sh DATA [OUT [FIRST [SEEDS [PANEL ...]]]]     default out/bma 1700 40, all panels; DATA as for
#                                                           vitrine reproduce --data, or - if no panel needs it
#
# An interrupted run continues when it is started again, and the table has the panels that are finished. All take some 30
# minutes of one core.
set -euo pipefail
cd "$(dirname "$0")/.."
data=${1:?names the data}
out=${2:-out/bma}
first=${3:-1700}
seeds=${4:-40}
shift "$(($# < 4 ? $# : 4))"
[[ $# -gt 0 ]] || set -- worlds main camera imdb imdb-probability items sweep

mkdir -p "$out/bin"
out=$(cd "$out" && pwd)
go build -o "$out/bin/vitrine" ./cmd/vitrine

play() { # the panel or group, the policies, the name of the results
	nice -n 19 "$out/bin/vitrine" reproduce "$1" ${data:+--data "$data"} --baselines tuned --workers 1 \
		--first-seed "$first" --seeds "$seeds" --policies "$2" --out "$out/$3" >/dev/null
}
[[ $data != - ]] || data=

for panel; do
	play "$panel" ucb-mnl-tuned,ts-mnl-tuned,ofu-mnl-plus-tuned linear
	play "$panel" bma-mnl bma
done

# The linear family of BMA-MNL, without others and with a memory.
for file in "$out"/bma/worlds-*-drift; do
	[[ -e $file ]] || continue
	world=$(basename "$file")
	{
		sed '/^\[\[policy\]\]/,$d' "paper/experiments/$world.toml"
		for memory in 100 200 400 800; do
			printf '[[policy]]\nname = "bma-mnl"\nlabel = "memory-%d"\n' "$memory"
			printf '[[policy.experts]]\nkind = "linear"\nintercept = true\nmemory_rounds = %d.0\n' "$memory"
		done
	} >"$out/$world.toml"
	nice -n 19 "$out/bin/vitrine" run "$out/$world.toml" --workers 1 \
		--first-seed "$first" --seeds "$seeds" --out "$out/forgetting" >/dev/null
done
go run ./bench/bma "$out"
