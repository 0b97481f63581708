#!/usr/bin/env bash
# Decisions a second of one, two and three services that decide, while another one writes the log. Each has a share of a core
# that it cannot exceed, so that all together leave the machine room and none takes time from another, as on machines of
# their own: the deciders DECIDER percent each, the leader LEADER percent, and three servers of NATS with three replicas and
# synced writes SERVERS percent together. Shoppers ask in a closed loop for 5 of 1000 items of a catalogue and report
# outcomes. It prints the medians of ROUNDS turns, what they are of linear, and the processor time of a decision with its outcome.
#
#   bench/deciders.sh [ROUNDS [SECONDS]]       default 3 turns of 10 s; DECIDER=15 LEADER=30 SERVERS=60 in the environment
#
# It needs root on Linux with the cgroup controller cpu of version 1, and jq.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-3} seconds=${2:-10} decider=${DECIDER:-15} leader=${LEADER:-30} servers=${SERVERS:-60}
groups=/sys/fs/cgroup/cpu/vitrine-$$
mkdir "$groups" || {
	echo "deciders: this machine permits no groups of processes with shares of a core" >&2
	exit 1
}
work=$(mktemp -d)
pids=()
finish() {
	kill "${pids[@]}" 2>/dev/null || true
	wait
	find "$groups" -depth -type d -exec rmdir {} \;
	rm -rf "$work"
}
trap finish EXIT
CGO_ENABLED=0 go build -o "$work/vitrine" ./cmd/vitrine
CGO_ENABLED=0 go build -o "$work/nats-server" github.com/nats-io/nats-server/v2

group() { # NAME PERCENT: of a core, in slices of 10 ms
	mkdir "$groups/$1"
	echo 10000 >"$groups/$1/cpu.cfs_period_us"
	echo $((100 * $2)) >"$groups/$1/cpu.cfs_quota_us"
}
within() { # NAME LOG COMMAND: starts a command in a group
	(
		echo "$BASHPID" >"$groups/$1/cgroup.procs"
		exec "${@:3}" 2>"$2"
	) &
	pids+=($!)
}
used() { # PID ...: their processor time so far, in hundredths of a second
	local pid total=0 fields
	for pid; do
		read -ra fields <"/proc/$pid/stat"
		total=$((total + fields[13] + fields[14]))
	done
	echo "$total"
}
address() { # LOG
	local at
	for _ in {1..300}; do
		at=$(sed -n 's/.*"msg":"listening","address":"\([^"]*\)".*/http:\/\/\1/p' "$1" 2>/dev/null) || true # it has not begun
		[[ -n $at ]] && echo "$at" && return
		sleep 0.1
	done
	cat "$1" >&2
	return 1
}

group servers "$servers"
for n in 1 2 3; do
	cat >"$work/n$n.conf" <<-END
		server_name: n$n
		host: "127.0.0.1"
		port: $((17420 + n))
		jetstream { store_dir: "$work/n$n", sync_interval: always }
		cluster { name: c, host: "127.0.0.1", port: $((17430 + n)), routes: ["nats://127.0.0.1:17431", "nats://127.0.0.1:17432", "nats://127.0.0.1:17433"] }
	END
	within servers "$work/n$n.log" "$work/nats-server" -c "$work/n$n.conf"
done
cat >"$work/service.toml" <<-END
	[log]
	url = "nats://127.0.0.1:17421,nats://127.0.0.1:17422,nats://127.0.0.1:17423"
	replicas = 3
END
urls=()
for name in leader d1 d2 d3; do
	[[ $name == leader ]] && group "$name" "$leader" || group "$name" "$decider"
	within "$name" "$work/$name.log" "$work/vitrine" serve --config "$work/service.toml" --listen 127.0.0.1:0 --data "$work/$name"
	urls+=("$(address "$work/$name.log")") # the first one leads
done
load() { # SECONDS URL ...
	"$work/vitrine" load "${@:2}" --catalogue --items 1000 --rate max --duration "$1s" --connections $((48 * ($# - 1))) --json
}
load 2 "${urls[@]:1}" >/dev/null # which makes the placement, and connections
for ((round = 0; round < rounds; round++)); do
	for n in 1 2 3; do
		asked=("${pids[@]:4:n}")
		before=("$(used "${asked[@]}")" "$(used "${pids[3]}")" "$(used "${pids[@]:0:3}")")
		load "$seconds" "${urls[@]:1:n}" >"$work/result"
		after=("$(used "${asked[@]}")" "$(used "${pids[3]}")" "$(used "${pids[@]:0:3}")")
		jq -r --argjson n "$n" --argjson d $((after[0] - before[0])) --argjson l $((after[1] - before[1])) --argjson s $((after[2] - before[2])) \
			'[$n, .achieved_per_second, $d * 1e4 / .decisions.count, $l * 1e4 / .decisions.count, $s * 1e4 / .decisions.count, .decisions.p50, .decisions.p99, (.errors | add // 0)] | @tsv' "$work/result" >>"$work/results"
	done
done
awk -v decider="$decider" -v leader="$leader" -v servers="$servers" '
	{ for (i = 2; i <= 8; i++) { values[$1, i] = values[$1, i] " " $i } }
	function median(text,    list, n, i, j, t) {
		n = split(text, list, " ")
		for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (list[j] + 0 < list[i] + 0) { t = list[i]; list[i] = list[j]; list[j] = t }
		return list[int((n + 1) / 2)]
	}
	END {
		printf "deciders with %d %% of a core each, the leader with %d %%, the log'"'"'s servers with %d %%\n", decider, leader, servers
		printf "%-9s %14s %10s   %-40s %s\n", "deciders", "decisions/s", "of linear", "µs a decision: decider, leader, servers", "p50, p99 ms  errors"
		for (n = 1; n <= 3; n++)
			printf "%-9d %14.0f %8.0f %%   %10.0f %10.0f %10.0f %21.1f %8.1f %6d\n", n, median(values[n, 2]), 100 * median(values[n, 2]) / n / median(values[1, 2]),
				median(values[n, 3]), median(values[n, 4]), median(values[n, 5]), median(values[n, 6]), median(values[n, 7]), median(values[n, 8])
	}' "$work/results"
