#!/usr/bin/env bash
# Compares BMA-MNL with its version 2 and with the tuned linear learners on all panels and worlds, and prints
# the table of docs/algorithms/bma-mnl.md. Worlds with drift also have linear learners that forget.
#
#   bench/versions.sh DATA [OUT [FIRST [SEEDS [PANEL ...]]]]     default out/versions 700 40, all panels; DATA as for
#                                                                vitrine reproduce --data, or - if no panel needs it
#
# An interrupted run continues when it is started again, and the table has the panels that are finished. All take some 40
# minutes of one core.
set -euo pipefail
cd "$(dirname "$0")/.."
data=${1:?names the data}
out=${2:-out/versions}
first=${3:-700}
seeds=${4:-40}
shift "$(($# < 4 ? $# : 4))"
[[ $# -gt 0 ]] || set -- worlds main camera imdb imdb-probability items sweep
# Version 3 and the held-out worlds came in one commit: version 2 is its parent, here with these worlds.
came=e6496debd2a2736a7b91d766e5c405c33da887ad

mkdir -p "$out/bin"
out=$(cd "$out" && pwd)
if [ ! -x "$out/bin/version2" ]; then
	tree=$(mktemp -d)
	trap 'git worktree remove --force "$tree"' EXIT
	git worktree add --quiet --detach --force "$tree" "$came^"
	git -C "$tree" checkout --quiet "$came" -- env config/catalog.go paper/experiments
	(cd "$tree" && go build -o "$out/bin/version2" ./cmd/vitrine)
fi
go build -o "$out/bin/vitrine" ./cmd/vitrine

play() { # the binary, the panel or group, the policies, the name of the results
	nice -n 19 "$out/bin/$1" reproduce "$2" ${data:+--data "$data"} --baselines tuned --workers 1 \
		--first-seed "$first" --seeds "$seeds" --policies "$3" --out "$out/$4" >/dev/null
}
[[ $data != - ]] || data=

for panel; do
	play vitrine "$panel" ucb-mnl-tuned,ts-mnl-tuned,ofu-mnl-plus-tuned linear
	play vitrine "$panel" bma-mnl new
	play version2 "$panel" bma-mnl old
done

# The linear family of BMA-MNL, without others and with a memory.
for file in "$out"/new/worlds-*-drift; do
	[[ -e $file ]] || continue
	world=$(basename "$file")
	{
		sed '/^\[\[policy\]\]/,$d' "paper/experiments/$world.toml"
		for memory in 100 200 400 800; do
			printf '[[policy]]\nname = "bma-mnl"\nlabel = "memory-%d"\n' "$memory"
			printf '[[policy.experts]]\nkind = "linear"\nintercept = true\nmemory = %d.0\n' "$memory"
		done
	} >"$out/$world.toml"
	nice -n 19 "$out/bin/vitrine" run "$out/$world.toml" --workers 1 \
		--first-seed "$first" --seeds "$seeds" --out "$out/forgetting" >/dev/null
done
go run ./bench/versions "$out"
