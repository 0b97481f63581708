#!/usr/bin/env bash
# Plays every synthetic panel at two seeds, with all its policies, and compares the checksums of
# the regret.csv files with paper/experiments/testdata/regret.sha256. It names the panels that
# differ, and fails if there are any. It takes three minutes on two cores of an AMD EPYC.
#
#   bench/checksums.sh [NAME ...]     default: all panels in the table
#
# PROGRAM names a vitrine to play with instead of the one of this tree, and KEEP=DIR keeps the
# results. To change a result on purpose, write its line of the table again and say why in the commit:
#
#   KEEP=out/checksums bench/checksums.sh NAME; (cd out/checksums && sha256sum NAME/regret.csv)
set -euo pipefail
cd "$(dirname "$0")/.."
table=$PWD/paper/experiments/testdata/regret.sha256
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
out=${KEEP:-$dir/out}
program=${PROGRAM:-$dir/vitrine}
[[ -n ${PROGRAM:-} ]] || go build -o "$program" ./cmd/vitrine

names=("$@")
[[ $# -gt 0 ]] || mapfile -t names < <(sed -n 's/^[0-9a-f]\{64\}  \(.*\)\/regret\.csv$/\1/p' "$table")
nice -n 19 "$program" reproduce "${names[@]}" --seeds 2 --baselines both --out "$out" --workers 2 >/dev/null

for name in "${names[@]}"; do
	grep -F "  $name/regret.csv" "$table" || { echo "checksums: $table has no $name" >&2; exit 1; }
done >"$dir/wanted"
cd "$out"
sha256sum --check --quiet "$dir/wanted" && echo "checksums: ${#names[@]} panels are as recorded"
