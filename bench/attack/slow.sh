#!/usr/bin/env bash
# Crowds under one key hold what a service has: connections without a word, with half a header or idle, bodies that do not
# end, subscriptions of events; more than it has room for, each for itself and all at once. No timeout sends them away.
# It shows that requests and subscriptions under another key are answered: TestSlowCallers of cmd/vitrine.
#
#   bench/attack/slow.sh [TIMES]       default 5
set -euo pipefail
cd "$(dirname "$0")/../.."
source bench/attack/attack.sh
times=${1:-5}
attack slow $((300 + 300 * times)) TestSlowCallers -slow-times "$times"
