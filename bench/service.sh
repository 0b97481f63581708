# For scripts that measure a service of their own: source it in the root of the repository. It stops the service and removes
# "$work" at the end.
#
#   build             builds vitrine as "$work/vitrine"
#   start [PROGRAM]   starts a service with the data in "$work/data"; sets $service, its process, and $address
#   stop              stops it
#   program A NAME    makes A, a file of a built program or a revision of this repository such as 3a6edb5, "$work/NAME"
#   median NAME N     the median of column N of the lines in "$work/NAME.turns"

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

program() {
	if [[ -x $1 && ! -d $1 ]]; then
		cp "$1" "$work/$2"
	else
		mkdir "$work/source"
		git archive "$1" | tar -x -C "$work/source"
		(cd "$work/source" && CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags=-s -o "$work/$2" ./cmd/vitrine)
		rm -r "$work/source"
	fi
}

median() { cut -d' ' -f"$2" "$work/$1.turns" | sort -n | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }

build() { CGO_ENABLED=0 go build -o "$work/vitrine" ./cmd/vitrine; }

start() {
	: >"$work/log" # the address in it is that of the service before
	"${1:-$work/vitrine}" serve --listen 127.0.0.1:0 --data "$work/data" 2>"$work/log" &
	service=$!
	address=
	for _ in {1..1000}; do
		address=$(sed -n 's/.*"msg":"listening","address":"\([^"]*\)".*/\1/p' "$work/log")
		[[ -n $address ]] && return
		sleep 0.01
	done
	cat "$work/log" >&2
	exit 1
}
