#!/usr/bin/env bash
# Entries a second that the writers of 1, 2 and 3 streams append, each for CALLERS who wait for each of theirs: entries of decisions of 5
# items of 10 features, and of outcomes. Three servers of NATS store each entry three times and sync it. The writers and the servers share
# the machine. It prints medians of ROUNDS turns: entries a second, entries of an append, what a caller waits, and the processor
# time of an entry in the writers and in the three servers.
#
#   bench/streams.sh [ROUNDS [SECONDS]]       default 3 turns of 5 s; CALLERS="64 256" and STREAMS="1 2 3" in the environment
#
# Linux only.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-3} seconds=${2:-5}
work=$(mktemp -d)
pids=()
finish() {
	kill "${pids[@]}" 2>/dev/null || true
	wait
	rm -rf "$work"
}
trap finish EXIT
CGO_ENABLED=0 go build -o "$work/scale" ./bench/scale
CGO_ENABLED=0 go build -o "$work/nats-server" github.com/nats-io/nats-server/v2
urls=nats://127.0.0.1:17521,nats://127.0.0.1:17522,nats://127.0.0.1:17523
for n in 1 2 3; do
	cat >"$work/n$n.conf" <<-END
		server_name: n$n
		host: "127.0.0.1"
		port: $((17520 + n))
		jetstream { store_dir: "$work/n$n", sync_interval: always }
		cluster { name: c, host: "127.0.0.1", port: $((17530 + n)), routes: ["nats://127.0.0.1:17531", "nats://127.0.0.1:17532", "nats://127.0.0.1:17533"] }
	END
	"$work/nats-server" -c "$work/n$n.conf" 2>"$work/n$n.log" &
	pids+=($!)
done
used() { # the servers' processor time so far, in hundredths of a second
	local pid total=0 fields
	for pid in "${pids[@]}"; do
		read -ra fields <"/proc/$pid/stat"
		total=$((total + fields[13] + fields[14]))
	done
	echo "$total"
}
until "$work/scale" append "$urls" 3 1 1 >/dev/null 2>&1; do sleep 1; done # which makes the streams
for ((round = 0; round < rounds; round++)); do
	for streams in ${STREAMS:-1 2 3}; do
		for callers in ${CALLERS:-64 256}; do
			before=$(used)
			result=$("$work/scale" append "$urls" "$streams" "$callers" "$seconds")
			printf '%s\t%s\t%s\t%s\n' "$streams" "$callers" "$result" "$(($(used) - before))" >>"$work/results"
		done
	done
done
awk -v seconds="$seconds" '
	{ $8 = $8 * 1e4 / ($3 * seconds); key = $1 " " $2; if (!(key in seen)) { seen[key] = 1; order[++keys] = key }; for (i = 3; i <= 8; i++) values[key, i] = values[key, i] " " $i }
	function median(text,    list, n, i, j, t) {
		n = split(text, list, " ")
		for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (list[j] + 0 < list[i] + 0) { t = list[i]; list[i] = list[j]; list[j] = t }
		return list[int((n + 1) / 2)]
	}
	END {
		printf "%-7s %-8s %10s %10s %9s %9s   %s\n", "streams", "callers", "entries/s", "an append", "p50 ms", "p99 ms", "µs an entry: writers, servers"
		for (k = 1; k <= keys; k++) {
			split(order[k], of, " ")
			printf "%-7d %-8d %10.0f %10.0f %9.1f %9.1f   %10.1f %10.1f\n", of[1], of[1] * of[2], median(values[order[k], 3]), median(values[order[k], 4]), median(values[order[k], 5]), median(values[order[k], 6]), median(values[order[k], 7]), median(values[order[k], 8])
		}
	}' "$work/results"
