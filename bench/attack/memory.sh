#!/usr/bin/env bash
# Asks a service with the default memory for decisions and tells it no outcomes. It shows that none of the decisions
# expires early or is evicted, and that outcomes of the first ones are accepted and learned then: TestMemoryWaits of
# cmd/vitrine. It prints the rate that was reached, and the service's resident set.
#
#   bench/attack/memory.sh [RATE [DURATION]]       default 3000 decisions a second for 30s
set -euo pipefail
cd "$(dirname "$0")/../.."
source bench/attack/attack.sh
attack memory 600 TestMemoryWaits -memory-rate "${1:-3000}" -memory-time "${2:-30s}"
