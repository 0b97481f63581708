#!/usr/bin/env bash
#
# What the desk costs the service, and whether it stays fluent: the processor time of the service with the desk closed
# and open in five windows of Chromium, with nothing else to do and at 1000 decisions a second; tasks of more than 50 ms
# in the windows; the bytes of the first paint.
#
#   bench/desk.sh [SECONDS]       20 by default, for each of four measurements
#
# It needs chromium and node 20 or later. They share the processors with the service.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:-20}

# shellcheck source=bench/service.sh
source bench/service.sh
build
start
cpu() { curl -sf "http://$address/metrics" | awk '/^process_cpu_seconds_total/ {print $2}'; }
share() { awk -v a="$1" -v b="$2" -v s="$seconds" 'BEGIN {printf "%.1f %% of a core", (b - a) / s * 100}'; }

# Placements with a history.
for name in home cart mail; do
	"$work/vitrine" load "http://$address" --placement $name --items 20 --rate 200 --duration 5s >/dev/null 2>&1
done

for rate in 0 1000; do
	for windows in 0 5; do
		if ((windows > 0)); then
			node --no-warnings --experimental-websocket bench/desk/tabs.mjs "http://$address/" "$windows" "$((seconds + 4))" >"$work/tabs" &
			tabs=$!
			until grep -q open "$work/tabs" 2>/dev/null; do
				kill -0 "$tabs" # or it has failed, and said why
				sleep 0.2
			done
		fi
		if ((rate > 0)); then
			"$work/vitrine" load "http://$address" --placement home --items 20 --rate "$rate" --duration "$((seconds + 4))s" >"$work/load" 2>&1 &
			load=$!
			sleep 2
		fi
		before=$(cpu)
		sleep "$seconds"
		after=$(cpu)
		printf '%4d decisions a second, %d windows: %s\n' "$rate" "$windows" "$(share "$before" "$after")"
		if ((rate > 0)); then
			wait "$load"
			grep -E '^ *(p50|decisions|outcomes)|warning' "$work/load" || true
		fi
		if ((windows > 0)); then
			wait "$tabs"
			grep -v open "$work/tabs"
		fi
	done
done
