#!/usr/bin/env bash
# Races the kernels against OpenBLAS with its AVX-512 code, on one core of this
# machine, in turn, and prints the ratios of the smallest times: of a call of
# OpenBLAS, and of the calls of 2 ms of Go's.
#
#   bench/kernels.sh [TURNS]       default 3; CC names a C compiler
#
# The race is for the row norms of 1000 gradients. What each racer does is said
# in bench/kernels/openblas.c and above BenchmarkSymQuadForms in internal/kernel.
# OpenBLAS is Debian's libopenblas-dev.
set -euo pipefail
cd "$(dirname "$0")/.."
turns=${1:-3}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"${CC:-cc}" -O3 -march=native -ffast-math bench/kernels/openblas.c -lopenblas -o "$dir/openblas" || {
	echo "kernels: no C compiler or no OpenBLAS; install them (on Debian: apt-get install gcc libopenblas-dev)" >&2
	exit 1
}
go test -c -o "$dir/kernel" ./internal/kernel

export OPENBLAS_NUM_THREADS=1 OPENBLAS_CORETYPE=SkylakeX GOMAXPROCS=1
for turn in $(seq "$turns"); do
	echo "turn $turn"
	"$dir/openblas" 1000 76 1000 256 >>"$dir/times"
	"$dir/kernel" -test.run '^$' -test.bench 'SymQuadForms/n=1000,d=(76|256)/' -test.benchtime 2ms -test.count 100 |
		sed -nE 's/^BenchmarkSymQuadForms.n=([0-9]+),d=([0-9]+).([a-z-]+)\s+[0-9]+\s+([0-9.]+) ns.*/\3 \1 \2 \4/p' >>"$dir/times"
	"$dir/kernel" -test.run '^$' -test.bench 'Elementwise/Sigmoid' -test.benchtime 2ms -test.count 100 |
		sed -nE 's/.*\s([0-9.]+) ns\/entry.*/sigmoid 1 1 \1/p' >>"$dir/times"
done
awk '
	{ k = $1 " " $3; if (!(k in best) || $4 < best[k]) best[k] = $4 }
	END {
		for (k in best) {
			split(k, of, " ")
			if (of[1] != "kernel" && of[1] != "sigmoid")
				printf "d = %3d: %-10s %6.0f µs, kernel %4.0f µs, ratio %5.2f\n", of[2], of[1],
					best[k] / 1e3, best["kernel " of[2]] / 1e3, best[k] / best["kernel " of[2]] | "sort"
		}
		close("sort")
		printf "sigmoid: %.2f ns an entry\n", best["sigmoid 1"]
	}' "$dir/times"
