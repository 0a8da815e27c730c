#!/usr/bin/env bash
# Runs every fuzz target for a while: each package compiled once, as many targets at a
# time as there are cores, each with one worker. go test has vetted them.
#
#   scripts/fuzz.sh [TIME [unguided]]      of each target, by default 2s
#
# unguided goes without the instrumentation that tells new inputs from old ones: in
# two seconds it finds nothing that chance does not, and every package would be
# compiled for it again.
#
# An input that fails is written into testdata/fuzz of its package, where go test
# finds it again.
set -euo pipefail
cd "$(dirname "$0")/.."

export each=${1:-2s}
export guided=-fuzz=.
[ "${2:-}" != unguided ] || guided=
work=$(mktemp -d)
export work
trap 'rm -rf "$work"' EXIT

# package DIR fuzzes the targets of one package, one after the other.
package() {
	local dir=$1 test=$work/${1//\//-} target
	go test -c $guided -vet=off -ldflags='-s -w' -o "$test" "./$dir"
	cd "$dir"
	for target in $("$test" -test.list '^Fuzz'); do
		"$test" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$each" -test.parallel 1 -test.fuzzcachedir "$work/cache" >"$test.said" 2>&1 ||
			late "$test.said" || { cat "$test.said" && echo "$dir: $target failed" && exit 1; }
		echo "$dir: $target" >>"$test.done"
	done
}

# late says that nothing failed but the end of the time came while an input was
# tried: the testing package calls that a failure too.
late() { grep -q 'context deadline exceeded' "$1" && ! grep -q 'Failing input\|panic:' "$1"; }
export -f package late

grep -rl --include='*_test.go' '^func Fuzz' internal | xargs -n1 dirname | sort -u |
	xargs -P "$(getconf _NPROCESSORS_ONLN)" -I {} bash -euo pipefail -c 'package {}'

count=$(cat "$work"/*.done | wc -l)
test "$count" -eq "$(grep -rh --include='*_test.go' '^func Fuzz' internal | wc -l)" || { echo "only $count fuzz targets ran" >&2 && exit 1; }
echo "$count fuzz targets, $each each"
