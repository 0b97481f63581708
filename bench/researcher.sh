#!/usr/bin/env bash
#
# Compares two revisions in turns where a researcher waits: compiling ./cmd/vitrine from an empty cache, and
# `vitrine reproduce main`. It prints the processor seconds of each turn, user and system, and the ratio of the medians.
#
#   bench/researcher.sh compile|main OLD NEW [TURNS]      revisions of this repository, such as 8b481d4 and HEAD; 3 turns
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
what=${1:-} turns=${4:-3}
[[ $what == compile || $what == main ]] || { echo "researcher: the first argument is compile or main" >&2; exit 2; }
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -r "$work"' EXIT
names=(old new) revisions=("${2:?a revision}" "${3:?a revision}")
for i in 0 1; do
	mkdir "$work/${names[i]}"
	git archive "${revisions[i]}" | tar -x -C "$work/${names[i]}"
	(cd "$work/${names[i]}" && go mod download && CGO_ENABLED=0 go build -buildvcs=false -o vitrine ./cmd/vitrine)
done

turn() {
	cd "$work/$1"
	if [[ $what == compile ]]; then
		GOCACHE=$work/cache CGO_ENABLED=0 go build -buildvcs=false -o vitrine ./cmd/vitrine
	else
		./vitrine reproduce main --out "$work/out" >/dev/null 2>&1
	fi
}

TIMEFORMAT='%U %S'
for ((i = 1; i <= turns; i++)); do
	for name in "${names[@]}"; do
		{ time (turn "$name"); } 2>"$work/time"
		rm -rf "$work/cache" "$work/out"
		awk 'END { print $1 + $2 }' "$work/time" >>"$work/$name.turns"
		echo "turn $i, $name: $(tail -1 "$work/$name.turns") s" >&2
	done
done
median() { sort -n "$work/$1.turns" | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }
awk -v what="$what" -v old="$(median old)" -v new="$(median new)" 'BEGIN { printf "%s: %.1f s of processor time against %.1f, a ratio of %.2f\n", what, new, old, new / old }'
