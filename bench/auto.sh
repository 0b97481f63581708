#!/usr/bin/env bash
# Plays stores with numbers, categories, ids, words and embeddings, and prints a table in Markdown: the mean regret of auto after 1000
# rounds, and of the best of three tuned UCB-MNL on all columns, ± a standard error, and the seconds of a run. The
# single results go to standard error as they come.
#
#   bench/auto.sh [STORES]     default 20 of each kind, some fifteen minutes
set -euo pipefail
cd "$(dirname "$0")/../bandit"
echo "| store | auto | UCB-MNL | auto, s | UCB-MNL, s |"
echo "|---|---|---|---|---|"
go test -run xxx -bench '^BenchmarkAuto$' -benchtime "${1:-20}x" -timeout 0 . | tee /dev/stderr | awk '
	function row() {
		if (store == "") return
		printf "| %s | %s | %s | %s | %s |\n", store, auto, best, took, spent
		fflush()
		best = spent = "-"; least = 1e300
	}
	BEGIN { best = spent = "-"; least = 1e300 }
	/^Benchmark/ {
		split($1, name, "/"); sub(/-[0-9]+$/, "", name[3])
		for (i = 3; i < NF; i += 2) v[$(i+1)] = $i
		if (name[2] != store) { row(); store = name[2] }
		cell = sprintf("%.1f ± %.1f", v["regret"], v["±regret"]); time = sprintf("%.1f", v["ns/op"] / 1e9)
		if (name[3] == "auto") { auto = cell; took = time }
		else if (v["regret"] < least) { least = v["regret"]; best = cell; spent = time }
	}
	END { row() }'
