#!/usr/bin/env bash
# Cuts the power of the disk of a service under load, at random moments, also while it starts: an ext4 file system in a file
# is shut down without its journal, so that all that was not written to the device is lost, and mounted again as a machine
# does that starts. It shows that nothing acknowledged is lost, changed or doubled: TestPowerLoss of cmd/vitrine. A cut
# that does not lose what nobody synced is no cut, and fails. It needs Linux, root and loop devices. It takes about 2 s a cut.
#
#   bench/attack/power.sh [CUTS [SEED]]       default 100, and a seed from the clock
set -euo pipefail
cd "$(dirname "$0")/../.."
source bench/attack/attack.sh
cuts=${1:-100}
attack power $((300 + 30 * cuts)) TestPowerLoss -power-cuts "$cuts" -kill-seed "${2:-$(date +%s)}"
