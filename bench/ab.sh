#!/usr/bin/env bash
#
# Two programs under the same load, in turns: the processor time of the service a decision, user and system, from
# /proc, and the p99 of decisions. Turns interleave and alternate which program goes first, so other work on the machine
# meets both. Trust the medians.
#
#   bench/ab.sh OLD NEW [TURNS [FLAGS OF vitrine load]]
#
# OLD and NEW are files of built programs or revisions of this repository, such as 3a6edb5 and HEAD. A policy may follow after
# the last @: HEAD@onl-mnl and HEAD@auto compare two policies of one program. It wins over a --policy among the flags. Each
# turn has 30,000 decisions with a log of its own, synced to the disk of TMPDIR; there are 5 turns without TURNS. The flags
# replace --rate 3000 --policy onl-mnl. Each program brings its own generator of load, because the API has changed. Linux only.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
old=${1:?a program or a revision}
new=${2:?a program or a revision}
turns=${3:-5}
shift $(($# < 3 ? $# : 3))
flags=("$@")
[[ ${#flags[@]} -gt 0 ]] || flags=(--rate 3000 --policy onl-mnl)

# shellcheck source=bench/service.sh
source bench/service.sh

program "${old%@*}" old
program "${new%@*}" new
declare -A policy
[[ $old != *@* ]] || policy[old]=${old##*@}
[[ $new != *@* ]] || policy[new]=${new##*@}

# ticks prints the user and the system time of the service.
ticks() { sed 's/.*) //' "/proc/$service/stat" | cut -d' ' -f12,13; }

hertz=$(getconf CLK_TCK)
# turn NAME prints the microseconds of user time, of system time and of both a decision, and the p99 in milliseconds.
turn() {
	start "$work/$1"
	read -r user system < <(ticks)
	"$work/$1" load "http://$address" --decisions 30000 --json "${flags[@]}" ${policy[$1]:+--policy "${policy[$1]}"} \
		>"$work/result" 2>"$work/messages" || { cat "$work/messages" >&2; return 1; }
	read -r user2 system2 < <(ticks)
	p99=$(tr -d ' \n' <"$work/result" | sed 's/.*"decisions":{[^}]*"p99":\([0-9.e-]*\).*/\1/')
	awk -v u=$((user2 - user)) -v s=$((system2 - system)) -v hertz="$hertz" -v p="$p99" \
		'BEGIN { f = 1e6 / hertz / 30000; printf "%.1f %.1f %.1f %.2f\n", u * f, s * f, (u + s) * f, p }'
	stop
	rm -r "$work/data"
}

for ((i = 1; i <= turns; i++)); do
	order=(old new)
	((i % 2)) || order=(new old) # the second program of a turn costs some 3% more
	for name in "${order[@]}"; do
		turn $name >>"$work/$name.turns"
		echo "turn $i, $name: $(tail -1 "$work/$name.turns")" >&2
	done
done

echo "medians of $turns turns, vitrine load ${flags[*]}; old is $old, new is $new"
for name in old new; do
	printf '%s:' $name
	for column in 1 2 3 4; do
		printf ' %s' "$(median $name $column)"
	done
	echo
done | awk '{ printf "%-5s user %s µs, system %s µs, both %s µs a decision; p99 %s ms\n", $1, $2, $3, $4, $5 }'
