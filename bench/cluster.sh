#!/usr/bin/env bash
# Three services have their log on three servers of NATS with three replicas, and shoppers ask all services in turn. First the
# service that writes the log is killed again and again, and each time another one must write it within two seconds. Then services
# and servers are killed, frozen (SIGSTOP), stopped, cut off from each other in both directions or one, and their disks are slowed
# down and stopped, in a mixed order. It shows that nothing acknowledged is lost, changed or doubled, that each outcome is learned
# once, that each epoch of the log has one writer, and that all services have the state of a replay: TestKillLeader and
# TestKillServices of cmd/vitrine. It takes about 4 s a take-over, and 8 s a strike.
#
# Partitions need root on Linux, for network namespaces and iptables. Slow disks need loop devices and limits in
# /sys/fs/cgroup/blkio. The verdict names what the machine does not permit.
#
#   bench/cluster.sh [TAKE-OVERS [STRIKES [SEED]]]       default 20 and 200, and a seed from the clock
set -euo pipefail
cd "$(dirname "$0")/.."
source bench/attack/attack.sh
kills=${1:-20} strikes=${2:-200} seed=${3:-$(date +%s)}
if [[ $kills != 0 ]]; then
	attack leader $((300 + 60 * kills)) TestKillLeader -leader-kills "$kills" -leader-limit 2s -kill-seed "$seed"
fi
# Namespaces of their own vanish with the test, whatever happens to it.
if unshare --net --mount true 2>/dev/null; then
	apart=(unshare --net --mount)
fi
attack services $((300 + 60 * strikes)) TestKillServices -strikes "$strikes" -kill-seed "$seed"
