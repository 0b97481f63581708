#!/usr/bin/env bash
# Plays ε-greedy-MNL with the schedule of its theory up to T = 8000 and fits the exponent of its
# regret in T, which Zhang and Luo (2024) prove to be 2/3.
#
#   bench/exponent.sh [OUT]     default out; what is finished there is not played again
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-out}
go run ./cmd/vitrine run bench/exponent.toml --out "$out" >/dev/null
go run ./bench/exponent "$out/exponent/regret.csv"
