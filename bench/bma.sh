#!/usr/bin/env bash
# Compares BMA-MNL with tuned learners on all panels and worlds, and prints the table of docs/algorithms/bma-mnl.md.
# Panels of numeric columns play it as auto. Worlds with drift also have linear learners that forget.
#
#   bench/bma.sh DATA [OUT [FIRST [SEEDS [PANEL ...]]]]     default out/bma 1700 40, all panels, or all with a prefix; DATA
#                                                           as for vitrine reproduce --data, or - if no panel needs it
#
#   VENV     a virtual environment with the packages of bench/peers/requirements.txt: then Vowpal Wabbit and LinUCB
#            play the panels with equal revenues, too, each with its best setting on seeds 1000 and 1001
#
# An interrupted run continues when it is started again, and the table has the panels that are finished. All take some 40
# minutes of one core, and the packages six hours.
set -euo pipefail
cd "$(dirname "$0")/.."
data=${1:?names the data}
out=${2:-out/bma}
first=${3:-1700}
seeds=${4:-40}
shift "$(($# < 4 ? $# : 4))"
[[ $# -gt 0 ]] || set -- worlds main camera imdb items sweep shop

mkdir -p "$out/bin"
out=$(cd "$out" && pwd)
go build -o "$out/bin/vitrine" ./cmd/vitrine
vitrine=(nice -n 19 "$out/bin/vitrine")
[[ $data != - ]] || data=
shown=(${data:+--data "$data"} --workers 1)
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1

for file in $(printf 'paper/experiments/%s*.toml ' "$@"); do
	panel=$(basename "$file" .toml)
	policies=$(sed -nE 's/^name = "(bma-mnl|auto)"/\1/p; s/^label = "((ucb-mnl|ts-mnl|ofu-mnl-plus)-(tuned|quadratic))"/\1/p' "$file" | paste -sd,)
	"${vitrine[@]}" reproduce "$panel" "${shown[@]}" --baselines tuned --first-seed "$first" --seeds "$seeds" \
		--policies "$policies" --out "$out/played" >/dev/null
	if [[ $panel == *-drift ]]; then # the linear family of BMA-MNL, without others and with a memory
		{
			sed '/^\[\[policy\]\]/,$d' "$file"
			for memory in 100 200 400 800; do
				printf '[[policy]]\nname = "bma-mnl"\nlabel = "memory-%d"\n' "$memory"
				printf '[[policy.experts]]\nkind = "linear"\nintercept = true\nmemory_rounds = %d.0\n' "$memory"
			done
		} >"$out/$panel.toml"
		"${vitrine[@]}" run "$out/$panel.toml" --workers 1 --first-seed "$first" --seeds "$seeds" --out "$out/forgetting" >/dev/null
	fi
	if [[ -n ${VENV:-} && ! -e $out/peers/$panel ]] && grep -A1 '^\[revenue\]' "$file" | grep -q '"one"'; then
		dumps=$(mktemp -d)
		"${vitrine[@]}" dump "$panel" "${shown[@]}" --first-seed 1000 --seeds 2 --out "$dumps/tuning" >/dev/null
		"${vitrine[@]}" dump "$panel" "${shown[@]}" --first-seed "$first" --seeds "$seeds" --out "$dumps/worlds" >/dev/null
		nice -n 19 "$VENV/bin/python" bench/peers/race.py finals "$out/peers/$panel" "$dumps/tuning/$panel" "$dumps/worlds/$panel"
		rm -r "$dumps"
	fi
done
go run ./bench/bma "$out"
