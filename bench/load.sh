#!/usr/bin/env bash
#
# The decision service and its load on one machine: decisions a second, latencies, and the processor time of the
# service. Each run has a service and a log of its own, synced to the disk of TMPDIR.
#
#   bench/load.sh [DURATION]      10s by default, for each of four runs
#
# The service and the generator share the processors, so the machine should have nothing else to do.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
duration=${1:-10s}

# shellcheck source=bench/service.sh
source bench/service.sh
build

for what in '--rate max' '--rate 3000' '--rate max --catalogue' '--rate 8000 --catalogue'; do
	printf '\n== %s\n' "$what"
	start
	# shellcheck disable=SC2086
	"$work/vitrine" load "http://$address" --duration "$duration" $what
	stop
	rm -r "$work/data"
done
