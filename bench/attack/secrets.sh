#!/usr/bin/env bash
# Runs everything with secrets: passwords and tokens in URLs, tokens, seeds and a JWT in files, API keys, a private key;
# right ones and wrong ones, on servers that take them, refuse them and go away. Then it looks for each of them, as it
# is and encoded, in all that was printed, answered and written: TestSecrets of cmd/vitrine. It takes about 40 s.
#
#   bench/attack/secrets.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
source bench/attack/attack.sh
attack secrets 1200 TestSecrets
