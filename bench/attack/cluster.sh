#!/usr/bin/env bash
# A service has its log on a cluster of three NATS servers with three replicas. Under load servers and services are
# killed and frozen, one, two or all, the quorum is away for seconds, a second service starts and follows, and others take the
# log over, also from a service that is frozen and goes on later. It shows that nothing acknowledged is lost, changed or
# doubled, and that each outcome is learned once: TestKillCluster of cmd/vitrine. It takes about 5 s a strike.
#
#   bench/attack/cluster.sh [STRIKES [SEED]]       default 40, and a seed from the clock
set -euo pipefail
cd "$(dirname "$0")/../.."
source bench/attack/attack.sh
strikes=${1:-40}
attack cluster $((300 + 60 * strikes)) TestKillCluster -cluster-strikes "$strikes" -kill-seed "${2:-$(date +%s)}"
