#!/usr/bin/env bash
# Three services have their log on three servers of NATS with three replicas, and shoppers ask all services in turn. First the
# service that writes the log is killed again and again, and each time another one must write it within two seconds. Then services
# and servers are killed, frozen (SIGSTOP) and stopped in a mixed order. It shows that nothing acknowledged is lost, changed or
# doubled, that each outcome is learned once, and that all services have the state of a replay: TestKillLeader and
# TestKillServices of cmd/vitrine. It takes about 4 s a take-over, and 8 s a strike.
#
#   bench/cluster.sh [TAKE-OVERS [STRIKES [SEED]]]       default 20 and 60, and a seed from the clock
set -euo pipefail
cd "$(dirname "$0")/.."
source bench/attack/attack.sh
kills=${1:-20} strikes=${2:-60} seed=${3:-$(date +%s)}
attack leader $((300 + 60 * kills)) TestKillLeader -leader-kills "$kills" -leader-limit 2s -kill-seed "$seed"
attack services $((300 + 60 * strikes)) TestKillServices -service-strikes "$strikes" -kill-seed "$seed"
