#!/usr/bin/env bash
#
# How long others wait for the filters of one caller, on one machine. It starts a service and prints the worst latency of a
# decision of another placement, of /readyz and of a push of one item, while
#
#   1. sixteen decisions with different filters of 4,000 bytes each, some 300 comparisons, and one with a new brand
#      are made among 60,000 items
#   2. eight decisions with plain filters are made among 10⁶ items, again and again, and all prices are pushed
#
#   bench/filters.sh [ITEMS [MANY]]       60000 and 1000000 by default; POLICY=ucb-mnl in the environment
#
# A latency includes the start of a curl. The bars are 0.5 s for the other placement and /readyz, and 1 s for the push.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
few=${1:-60000}
many=${2:-1000000}

# shellcheck source=bench/service.sh
source bench/service.sh
build
start

json() { curl -s -o "${out:-/dev/null}" -w '%{http_code} %{time_total}\n' -X "$1" -H 'Content-Type: application/json' -d "$3" "http://$address/v1/$2"; }
placement() {
	json PUT "placements/$1" '{"max_size":5,"max_request_items":1000000,"policy":{"name":"'"${POLICY:-ucb-mnl}"'"},
		"features":[{"name":"x","kind":"number"},{"name":"y","kind":"number"},{"name":"brand","kind":"category","own_columns":6,"columns":8,"default":"none"}]}'
}
lines() { # FROM TO: items
	awk -v from="$1" -v to="$2" 'BEGIN { for (i = from; i < to; i++)
		printf "{\"id\":\"i%d\",\"features\":{\"x\":%.6f,\"y\":%.3f,\"brand\":\"b%d\"},\"attributes\":{\"stock\":%d}}\n", i, (i * 7919 % 1000003) / 1000003, i % 997 / 997, i % 40, i % 13 }'
}
push() { # METHOD FILE: to home, in parts
	split -l 10000 "$2" "$work/part."
	for part in "$work"/part.*; do
		curl -sf -X "$1" -H 'Content-Type: application/x-ndjson' --data-binary "@$part" "http://$address/v1/placements/home/items" >/dev/null || echo "a part of the push failed" >&2
		rm "$part"
	done
}
filter() { # K: some 300 comparisons that nothing satisfies
	awk -v k="$1" 'BEGIN { s = "x<-1"; for (i = 0; length(s) < 3980; i++) s = s "||x<-" (k * 1000 + i); print s }'
}

# probe KIND COMMAND...: the latencies of a request until "$work/busy" is gone.
probe() {
	while [[ -e $work/busy ]]; do
		"${@:2}" >>"$work/latency.$1"
		sleep 0.02
	done
}
other() { json POST placements/other/decisions '{"items":[{"id":"a","features":{"x":1,"y":1,"brand":"b1"}},{"id":"b","features":{"x":2,"y":1,"brand":"b2"}}]}'; }
ready() { curl -s -o /dev/null -w '%{http_code} %{time_total}\n' "http://$address/readyz"; }
one() { json PATCH placements/home/items '{"items":[{"id":"i5","revenue":'"0.$RANDOM"'}]}'; }
worst() {
	for kind in other ready one; do
		awk -v name="$1, $kind" '{ n++; status[$1]++; if ($2 > max) max = $2; sum += $2 }
			END { printf "%-26s worst %.3f s, mean %.3f s of %d,", name, max, sum / n, n; for (s in status) printf " %d × %s", status[s], s; print "" }' "$work/latency.$kind"
		rm "$work/latency.$kind"
	done
}
during() { # NAME COMMAND...: probes while a command runs
	: >"$work/busy"
	for kind in other ready one; do probe "$kind" "$kind" & probes+=($!); done
	"${@:2}"
	rm "$work/busy"
	wait "${probes[@]}"
	probes=()
	worst "$1"
}
probes=()

hostile() {
	local asked=() k
	for k in {1..16}; do
		json POST placements/home/decisions '{"filter":"('"$(filter "$k")"') or x >= 0"}' >>"$work/filters" &
		asked+=($!)
	done
	sleep 0.3
	json POST placements/home/decisions '{"items":[{"id":"a","features":{"x":1,"y":1,"brand":"a new one"}}]}' >>"$work/brand"
	wait "${asked[@]}"
}
plain() {
	local asked=() round k
	push PATCH "$work/prices" & asked+=($!)
	for round in 1 2 3; do
		for k in {1..8}; do
			json POST placements/home/decisions '{"filter":"x >= 0.'"$round$k"' and stock > 0"}' >>"$work/filters" &
			asked+=($!)
		done
		sleep 1
	done
	wait "${asked[@]}"
}
answers() { awk '{ status[$1]++; if ($2 > max) max = $2 } END { for (s in status) printf "%d × %s, ", status[s], s; printf "the last after %.2f s\n", max }' "$work/filters"; rm "$work/filters"; }

placement home >/dev/null
placement other >/dev/null
lines 0 "$few" >"$work/items"
push PUT "$work/items"
during "$few items, 16 filters" hostile
printf 'the filters: '; answers
printf 'the new brand: %s\n' "$(cat "$work/brand")"
if ((many > few)); then
	lines "$few" "$many" >"$work/items"
	push PUT "$work/items"
	seq 0 199999 | sed 's/.*/{"id":"i&","revenue":0.75}/' >"$work/prices"
	during "$many items, 8 filters" plain
	printf 'the filters: '; answers
fi
