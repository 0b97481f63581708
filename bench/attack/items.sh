#!/usr/bin/env bash
# Kills a service while a catalogue is pushed in parts of 1000 items. The kills are spread over a push and a half, so that the last
# one is of a service with all items. It shows that each part is there as a whole or not at all, that nothing acknowledged is lost,
# that the pusher goes on, and that a replay has the same state: TestKillItems of cmd/vitrine.
#
#   bench/attack/items.sh [ITEMS [KILLS [SEED]]]       default 1000000 and 6, and a seed from the clock
set -euo pipefail
cd "$(dirname "$0")/../.."
source bench/attack/attack.sh
items=${1:-1000000} kills=${2:-6} seed=${3:-$(date +%s)}
attack items $((600 + 300 * kills)) TestKillItems -item-kills "$kills" -killed-items "$items" -kill-seed "$seed"
