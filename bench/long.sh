#!/usr/bin/env bash
# Plays auto, and the linear and the network learner beside it, for a long time, and prints a table in Markdown: the processor
# time of a run a round, customers included, the mean time of an offer and of a round learned, the longest Observe, how
# many took more than 5 ms, the longest by processor time (without waits), the heap at the end, and the regret.
#
#   bench/long.sh [ROUNDS [WORLD/POLICY ...]]     default 100000 and all that BenchmarkLongRun has
#
# 100,000 rounds of all take some five minutes of one core.
set -euo pipefail
cd "$(dirname "$0")/../bandit"
rounds=${1:-100000}
shift || true
[[ $# -gt 0 ]] || set -- N=20,d=10/auto N=20,d=10/ucb-mnl N=20,d=10/onl-mnl N=100,d=20/auto N=100,d=300/auto
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go test -c -o "$dir/bandit.test" .
echo "| world, policy | rounds | µs a round, processor | µs an offer | µs a round learned | longest ms | over 5 ms | longest ms, processor | heap MB | regret |"
echo "|---|---|---|---|---|---|---|---|---|---|"
for name; do
	TIMEFORMAT='%U %S'
	{ time nice -n 10 "$dir/bandit.test" -test.run xxx -test.bench "LongRun/^${name%%/*}\$/^${name#*/}\$" -test.benchtime "${rounds}x" -test.timeout 0 >"$dir/out"; } 2>"$dir/time"
	awk -v name="$name" -v rounds="$rounds" 'NR == FNR { cpu = ($1 + $2) * 1e6 / rounds; next }
		/^Benchmark/ {
			for (i = 3; i < NF; i += 2) v[$(i+1)] = $i
			printf "| %s | %d | %.0f | %.0f | %.0f | %.1f | %d | %.1f | %.0f | %.0f |\n", name, rounds, cpu, v["µs/offer"], v["µs/observe"], v["ms-longest"], v["over-5ms"], v["cpu-ms-longest"], v["MB-heap"], v["regret"]
		}' "$dir/time" "$dir/out"
done
