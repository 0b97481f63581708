#!/usr/bin/env bash
# Plays UCB-MNL with both updates, for the table of docs/algorithms/ucb-mnl.md.
#
#   bench/online.sh DATA     as for vitrine run --data
set -euo pipefail
cd "$(dirname "$0")/.."
data=${1:?names the data}
mkdir -p out/online
for panel in worlds-linear main-gaussian-realizable sweep-gaussian-realizable-d10-k10 worlds-weak imdb-probability; do
	{
		sed '/^\[\[policy\]\]/,$d' paper/experiments/$panel.toml
		for update in mle online; do
			printf '[[policy]]\nname = "ucb-mnl"\nlabel = "%s"\nupdate = "%s"\n' $update $update
			printf 'constants = "tuned"\nradius = 1.0\nlambda = 1.0\nintercept = true\n'
		done
	} >out/online/$panel.toml
done
go run ./cmd/vitrine run out/online/*.toml --data "$data" --first-seed 7000 --seeds 20 --out out/online
