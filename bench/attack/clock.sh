#!/usr/bin/env bash
# Steps the time of day of a service under load, by a year and an hour ahead, an hour behind, and back, and starts it while
# the time of day is an hour behind. It shows that nothing acknowledged is lost, no decision expires before its
# window is over, no entry is removed, and entries stay in order: TestClockStepsUnderLoad of cmd/vitrine. The time
# of day is an argument of the service in the test: no clock of the machine is touched. It takes about 2 s a step.
#
#   bench/attack/clock.sh [STEPS]       default 24
set -euo pipefail
cd "$(dirname "$0")/../.."
source bench/attack/attack.sh
steps=${1:-24}
attack clock $((300 + 60 * steps)) TestClockStepsUnderLoad -clock-steps "$steps"
