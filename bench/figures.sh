#!/usr/bin/env bash
# Draws the committed figures of docs/figures again, each with the command that
# docs/figures/figures.toml names, and writes there of which configuration they
# are. Look at the pictures before you commit them.
#
#   bench/figures.sh [NAME ...]     main-theory main-tuned geometric-condition theory
#                                   tractability sessions rivers; default all. tractability is a
#                                   measurement: draw it on a machine with no other work
set -euo pipefail
cd "$(dirname "$0")/.."
go test ./docs -count=1 -timeout 2h -run TestFiguresAreOfTheirConfiguration -v -draw "${*:-all}"
git status --short docs/figures
