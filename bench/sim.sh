#!/usr/bin/env bash
# Plays clusters of the service in virtual time, each from the next seed, until one fails or TIME is over: package service/sim.
#
#   bench/sim.sh [TIME [SEED]]       default 10h, and a fresh seed
#   bench/sim.sh defects [NAME ...]  puts back each defect of service/sim/testdata/defects, and says how soon it is found
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ ${1:-} != defects ]]; then
	from=(-fresh)
	[[ $# -lt 2 ]] || from=(-seed "$2")
	exec go test -count=1 -timeout 0 ./service/sim -run TestSimulation -v -plays "${1:-10h}" "${from[@]}"
fi
shift
copy=$(mktemp -d)
trap 'rm -r "$copy"' EXIT
missed=0
for patch in service/sim/testdata/defects/*.patch; do
	name=$(basename "$patch" .patch)
	[[ $# -eq 0 || " $* " == *" $name "* ]] || continue
	rm -rf "$copy/tree"
	overlay=""
	for file in $(sed -n 's,^+++ b/,,p' "$patch"); do
		mkdir -p "$copy/tree/$(dirname "$file")"
		cp "$file" "$copy/tree/$file"
		overlay+="${overlay:+,}\"$PWD/$file\":\"$copy/tree/$file\""
	done
	echo "{\"Replace\":{$overlay}}" >"$copy/overlay.json"
	if ! patch -s -p1 --fuzz=0 -d "$copy/tree" <"$patch" >"$copy/said"; then
		echo "$name: the patch does not apply any more: $(head -1 "$copy/said")" >&2
		missed=1
		continue
	fi
	if go test -overlay "$copy/overlay.json" -vet=off -count=1 -timeout 0 ./service/sim -run TestSimulation -v -plays 10m -seed 1 -lasts 40s >"$copy/said" 2>&1; then
		echo "$name: not found in ten minutes of processor time" >&2
		missed=1
	elif ! grep -q 'found:' "$copy/said"; then
		echo "$name: does not compile: $(head -3 "$copy/said")" >&2
		missed=1
	else
		grep -m 1 'found:' "$copy/said" | sed "s/.*found:/$name:/"
	fi
done
exit $missed
