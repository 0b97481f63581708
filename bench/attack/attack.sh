# What the attacks have in common; sourced, not run.
#
#   attack NAME SECONDS TEST [FLAGS OF THE TEST]
#
# runs a test of cmd/vitrine on the program as it is built, for SECONDS at most, and prints its verdict in a line. If it
# fails, attack prints what the test says, and its status is 1.

apart=() # a command before that of the test

attack() {
	local name=$1 seconds=$2 test=$3 held
	shift 3
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	CGO_ENABLED=0 go build -o "$work/vitrine" ./cmd/vitrine
	if VITRINE_LONG=1 TMPDIR=$work "${apart[@]}" go test ./cmd/vitrine -count=1 -v -timeout "${seconds}s" -run "^$test\$" -vitrine "$work/vitrine" "$@" >"$work/said" 2>&1 &&
		held=$(sed -n "s/^ *[a-z_]*.go:[0-9]*: verdict: /$name: held: /p" "$work/said") && [[ -n $held ]]; then
		echo "$held"
		rm -rf "$work"
	else
		cat "$work/said" >&2
		echo "$name: BROKEN: see above" >&2
		return 1
	fi
}
