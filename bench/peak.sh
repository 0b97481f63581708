#!/usr/bin/env bash
# Prints how fast the kernels of the learners are, and which fraction of the peak of
# a core that is.
#
#   bench/peak.sh       CC names a C compiler
#
# The peak is that of fused multiply-adds on registers; what the Gflop/s and GB/s of
# a kernel count is said above BenchmarkFlops in internal/kernel. The data stays in
# the caches, as it does in a learner.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"${CC:-cc}" -O3 -march=native bench/peak/peak.c -o "$dir/peak" || {
	echo "peak: no C compiler; install one (on Debian: apt-get install gcc)" >&2
	exit 1
}
go test -c -o "$dir/kernel" ./internal/kernel
peak=$("$dir/peak")
echo "peak of a core: $peak Gflop/s"
GOMAXPROCS=1 "$dir/kernel" -test.run '^$' -test.bench Flops -test.benchtime 100ms -test.count 3 |
	awk -v peak="$peak" '
	/^BenchmarkFlops/ {
		name = substr($1, 16)
		for (i = 3; i < NF; i += 2) {
			if ($(i+1) == "Gflop/s" && $i > flops[name]) flops[name] = $i
			if ($(i+1) == "GB/s" && $i > bytes[name]) bytes[name] = $i
		}
		if (!(name in order)) { order[name] = ++count; names[count] = name }
	}
	END {
		for (k = 1; k <= count; k++)
			printf "%-20s %6.1f Gflop/s  %3.0f %% of the peak  %6.1f GB/s\n", names[k], flops[names[k]], 100 * flops[names[k]] / peak, bytes[names[k]]
	}'
