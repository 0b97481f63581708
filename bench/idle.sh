#!/usr/bin/env bash
#
# Two programs start in turns, each with a directory of its own, and do nothing: the milliseconds from the start to the first
# answer of /readyz, and the resident memory ten seconds later, the program's own pages and all others. Linux only.
#
#   bench/idle.sh OLD NEW [TURNS]      files of built programs or revisions, as for bench/ab.sh; 5 turns

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
turns=${3:-5}
# shellcheck source=bench/service.sh
source bench/service.sh
program "${1:?a program or a revision}" old
program "${2:?a program or a revision}" new

# turn NAME prints the milliseconds, and the kilobytes of files and of all.
turn() {
	local begin ready
	begin=$(date +%s%N)
	start "$work/$1"
	until curl -sf -o /dev/null "http://$address/readyz"; do sleep 0.005; done
	ready=$((($(date +%s%N) - begin) / 1000000))
	sleep 10
	awk -v ready=$ready '/^RssFile/ { file = $2 } /^VmRSS/ { all = $2 } END { print ready, file, all }' "/proc/$service/status"
	stop
	rm -r "$work/data"
}
for ((i = 1; i <= turns; i++)); do
	for name in old new; do
		turn $name >>"$work/$name.turns"
	done
done
echo "medians of $turns turns; old is $1, new is $2"
for name in old new; do
	echo "$name: ready after $(median $name 1) ms, resident $(median $name 3) kB, $(median $name 2) of them pages of the program"
done
