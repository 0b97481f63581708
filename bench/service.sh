# For scripts that measure a service of their own: source it in the root of the repository. It stops the service and removes
# "$work" at the end.
#
#   build             builds vitrine as "$work/vitrine"
#   start [PROGRAM]   starts a service with the data in "$work/data"; sets $service, its process, and $address
#   stop              stops it

work=$(mktemp -d)
service=
stop() {
	if [[ -n $service ]]; then
		kill "$service"
		wait "$service" || true
		service=
	fi
}
trap 'stop; rm -r "$work"' EXIT

build() { CGO_ENABLED=0 go build -o "$work/vitrine" ./cmd/vitrine; }

start() {
	: >"$work/log" # the address in it is that of the service before
	"${1:-$work/vitrine}" serve --listen 127.0.0.1:0 --data "$work/data" 2>"$work/log" &
	service=$!
	address=
	for _ in {1..100}; do
		address=$(sed -n 's/.*"msg":"listening","address":"\([^"]*\)".*/\1/p' "$work/log")
		[[ -n $address ]] && return
		sleep 0.1
	done
	cat "$work/log" >&2
	exit 1
}
