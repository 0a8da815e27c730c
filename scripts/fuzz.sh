#!/usr/bin/env bash
# Runs every fuzz target for a while, each package compiled once.
#
#   scripts/fuzz.sh [TIME]      of each target, by default 2s
#
# An input that fails is written into testdata/fuzz of its package, where go test
# finds it again.
set -euo pipefail
cd "$(dirname "$0")/.."

each=${1:-2s}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# late says that nothing failed but the end of the time came while an input was
# tried: the testing package calls that a failure too.
late() { grep -q 'context deadline exceeded' "$work/said" && ! grep -q 'Failing input\|panic:' "$work/said"; }

count=0
for dir in $(grep -rl --include='*_test.go' '^func Fuzz' internal | xargs -n1 dirname | sort -u); do
	go test -c -fuzz=. -o "$work/fuzz.test" "./$dir"
	for target in $(cd "$dir" && "$work/fuzz.test" -test.list '^Fuzz'); do
		(cd "$dir" && "$work/fuzz.test" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$each" -test.fuzzcachedir "$work/cache") >"$work/said" 2>&1 ||
			late || { cat "$work/said" && echo "$dir: $target failed" && exit 1; }
		count=$((count + 1))
	done
done
echo "$count fuzz targets, $each each"
