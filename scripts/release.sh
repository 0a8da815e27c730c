#!/usr/bin/env bash
# Builds the programs for all platforms, static and reproducible: the same commit
# and the same Go give the same bytes, wherever the checkout lies.
#
#   scripts/release.sh [DIR] [OS/ARCH…]      by default dist, and all platforms
#
# DIR gets pitot-VERSION-OS-ARCH of each, pitot-fleet-VERSION-OS-ARCH, which is the same with a
# NATS server in it, and SHA256SUMS of all.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=${1:-dist}
shift || true
platforms=("$@")
((${#platforms[@]})) || platforms=(linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64)

# The version as the go command has it: a tag, else time and commit.
commit=$(git rev-parse HEAD)
version=$(git describe --tags --exact-match --match 'v*' 2>/dev/null ||
	TZ=UTC git show -s --date=format-local:%Y%m%d%H%M%S --format="v0.0.0-%cd-${commit:0:12}")
if test -n "$(git status --porcelain)"; then
	version+=+dirty commit+=-dirty
fi

# Of the builder's settings only those count by which modules are downloaded.
GOPROXY=$(go env GOPROXY) GOSUMDB=$(go env GOSUMDB) GOPRIVATE=$(go env GOPRIVATE)
export GOPROXY GOSUMDB GOPRIVATE GOENV=off
export CGO_ENABLED=0 GOFLAGS= GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT=
flags="-s -w -buildid= -X pitot/internal/cli.releaseVersion=$version -X pitot/internal/cli.releaseCommit=$commit"

mkdir -p "$dir"
rm -f "$dir"/pitot-* "$dir"/SHA256SUMS
for platform in "${platforms[@]}"; do
	os=${platform%/*} arch=${platform#*/}
	for program in pitot pitot-fleet; do
		name=$program-$version-$os-$arch
		test "$os" != windows || name+=.exe
		GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=false -ldflags "$flags" -o "$dir/$name" "./cmd/$program"
	done
done
cd "$dir"
if command -v sha256sum >/dev/null; then sha256sum pitot-*; else shasum -a 256 pitot-*; fi | tee SHA256SUMS
