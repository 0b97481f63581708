#!/usr/bin/env bash
# Flips bits in the data directory of a service that has ended: in its log of several files before and after the
# snapshot, in the mark, the snapshot and a base. The next start must be
# refused with the file or the entry named, or mend it with a warning, and lose nothing: TestFlips of
# cmd/vitrine, at length.
#
#   bench/attack/flips.sh [FLIPS [SEED]]       default 200, and a seed from the clock
set -euo pipefail
cd "$(dirname "$0")/../.."
source bench/attack/attack.sh
flips=${1:-200}
attack flips $((300 + 20 * flips)) TestFlips -flips "$flips" -flip-rounds 1500 -kill-seed "${2:-$(date +%s)}"
