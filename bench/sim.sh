#!/usr/bin/env bash
# Plays clusters of the service in virtual time, each from the next seed, until one fails or TIME is over: package service/sim.
#
#   bench/sim.sh [TIME [SEED]]       default 10h, and a fresh seed
#   bench/sim.sh defects [NAME ...]  puts back each defect of service/sim/testdata/defects in a copy of the tree, and says how soon it is found
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
	mkdir "$copy/tree"
	git ls-files -z --cached --others --exclude-standard -- '*.go' go.mod go.sum service/desk/dist service/setup service/health service/server | tar --null -T - -c | tar -x -C "$copy/tree"
	if ! patch -s -p1 --fuzz=0 -d "$copy/tree" <"$patch" >"$copy/said"; then
		echo "$name: the patch does not apply any more: $(head -1 "$copy/said")" >&2
		missed=1
		continue
	fi
	if go -C "$copy/tree" test -trimpath -vet=off -count=1 -timeout 20m ./service/sim -run 'TestSimulation|TestDisk' -v -plays 10m -seed 1 -lasts 40s >"$copy/said" 2>&1; then
		echo "$name: not found in ten minutes" >&2
		missed=1
	elif ! grep -q 'found:' "$copy/said"; then
		echo "$name: does not compile: $(head -3 "$copy/said")" >&2
		missed=1
	else
		grep -m 1 'found:' "$copy/said" | sed "s/.*found:/$name:/"
	fi
done
exit $missed
