#!/usr/bin/env bash
# Sends the service thousands of requests that Schemathesis makes from the API's description: valid ones, almost valid ones, sequences of
# them, wrong methods. It fails if an answer has a status, a type, headers or a body that the description does not have, or is a server
# error. 503 is none: some requests ask for entries that the log does not have yet.
#
#   bench/attack/requests.sh [SECONDS [SEED]]       default 240 seconds; SCHEMATHESIS names the command (pip install schemathesis)
set -euo pipefail
cd "$(dirname "$0")/../.."
source bench/service.sh
build
start
cat >"$work/schemathesis.toml" <<-'END'
	[checks.not_a_server_error]
	expected-statuses = ["2xx", "3xx", "4xx", 503]
END
(
	cd "$work" # where it keeps what it found
	"${SCHEMATHESIS:-schemathesis}" --config-file schemathesis.toml run "http://$address/openapi.json" --exclude-path /v1/events \
		--checks not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance,unsupported_method,allow_header_conformance \
		--max-time "${1:-240}" --seed "${2:-1}" --continue-on-failure --warnings off
)
if grep '"msg":"panic"' "$work/log"; then exit 1; fi
