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

work=$(mktemp -d)
service=
stop() {
	if [[ -n $service ]]; then
		kill "$service"
		wait "$service" || true
		service=
	fi
}
trap 'stop; rm -r "$work"' EXIT
CGO_ENABLED=0 go build -o "$work/vitrine" ./cmd/vitrine

for what in '--rate max' '--rate 3000' '--rate max --catalogue' '--rate 8000 --catalogue'; do
	printf '\n== %s\n' "$what"
	: >"$work/log" # the address in it is that of the service before
	"$work/vitrine" serve --listen 127.0.0.1:0 --data "$work/data" 2>"$work/log" &
	service=$!
	address=
	for _ in {1..100}; do
		address=$(sed -n 's/.*"msg":"listening","address":"\([^"]*\)".*/\1/p' "$work/log")
		[[ -n $address ]] && break
		sleep 0.1
	done
	if [[ -z $address ]]; then
		cat "$work/log" >&2
		exit 1
	fi
	# shellcheck disable=SC2086
	"$work/vitrine" load "http://$address" --duration "$duration" $what
	stop
	rm -r "$work/data"
done
