#!/usr/bin/env bash
#
# Decisions among the items of a catalogue, on one machine: decisions a second, latencies, the processor time and the
# memory of the service, and how long a change of all prices takes while decisions go on. Each run has a service and
# a log of its own, synced to the disk of TMPDIR.
#
#   bench/catalogue.sh [ITEMS [POLICY [DURATION]]]      1000 items, ucb-mnl and 10s by default
#   CONNECTIONS=4 RATE=max bench/catalogue.sh 100000
#
# The service and the generator share the processors, so the machine should have nothing else to do.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
items=${1:-1000}
policy=${2:-ucb-mnl}
duration=${3:-10s}

# shellcheck source=bench/service.sh
source bench/service.sh
build
start
load() { "$work/vitrine" load "http://$address" --catalogue --items "$items" --policy "$policy" --connections "${CONNECTIONS:-64}" "$@"; }

echo "load averages before: $(cut -d ' ' -f 1-3 /proc/loadavg)"
start=$(date +%s.%N)
load --decisions 1 2>/dev/null >/dev/null
printf '%s items in %.1f s, then:\n\n' "$items" "$(echo "$(date +%s.%N) - $start" | bc)"
load --rate "${RATE:-max}" --duration "$duration"
resident() { echo "$(($(awk '/VmRSS/ { print $2 }' "/proc/$service/status") / 1024)) MB"; }
printf '\nresident memory: %s, ' "$(resident)"
sleep 40
printf '40 s later %s; rows of 15 numbers: %d MB\n' "$(resident)" "$((items * 15 * 8 / 1048576))"

n=$((items < 100000 ? items : 100000))
seq 0 $((n - 1)) | sed 's/.*/{"id":"item-&","revenue":0.75}/' | split -l 5000 - "$work/prices."
load --rate "$((items > 10000 ? 20 : 200))" --duration 6s --json >"$work/result" 2>/dev/null &
generator=$!
sleep 2
start=$(date +%s.%N)
for part in "$work"/prices.*; do
	curl -sf -X PATCH -H 'Content-Type: application/x-ndjson' --data-binary "@$part" "http://$address/v1/placements/load/items" >/dev/null
done
printf '%d prices changed in %.2f s beside an open loop of decisions, whose latencies were\n' "$n" "$(echo "$(date +%s.%N) - $start" | bc)"
wait "$generator"
grep -A9 '"decisions"' "$work/result" || head -20 "$work/result"
