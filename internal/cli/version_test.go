package cli

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// The version names the commit where the build knows it, and what is unknown
// once.
func TestVersion(t *testing.T) {
	of := func(pairs ...string) *debug.BuildInfo {
		b := &debug.BuildInfo{}
		for i := 0; i < len(pairs); i += 2 {
			b.Settings = append(b.Settings, debug.BuildSetting{Key: pairs[i], Value: pairs[i+1]})
		}
		return b
	}
	module := func(version, sum string, pairs ...string) *debug.BuildInfo {
		b := of(pairs...)
		b.Main = debug.Module{Path: "pitot", Version: version, Sum: sum}
		return b
	}
	for _, c := range []struct {
		build           *debug.BuildInfo
		version, commit string // of the linker
		want            string
	}{
		{of(), "", "", "pitot dev (commit unknown: built without version control) "},
		{module("(devel)", ""), "", "", "pitot dev (commit unknown: built without version control) "},
		{of("vcs.modified", "true"), "", "", "pitot dev (commit unknown: built without version control) "},
		{of("vcs.revision", "13dd5261", "vcs.modified", "false"), "", "", "pitot dev (commit 13dd5261) "},
		{of("vcs.revision", "13dd5261", "vcs.modified", "true"), "", "", "pitot dev (commit 13dd5261-dirty) "},
		{module("v1.2.0", "", "vcs.revision", "13dd5261"), "", "", "pitot v1.2.0 (commit 13dd5261) "},
		{module("v0.0.0-20261122041200-5e5792741b96+dirty", "", "vcs.revision", "5e5792741b96e2a3", "vcs.modified", "true"), "", "",
			"pitot v0.0.0-20261122041200-5e5792741b96+dirty (commit 5e5792741b96e2a3-dirty) "},
		{module("v1.2.1-0.20261122041200-5e5792741b96", "h1:abc="), "", "", "pitot v1.2.1-0.20261122041200-5e5792741b96 (commit 5e5792741b96) "},
		{module("v1.2.0", "h1:abc="), "", "", "pitot v1.2.0 (commit h1:abc=) "},
		{module("v1.2.0-rc1", ""), "", "", "pitot v1.2.0-rc1 (commit unknown: built without version control) "},
		{module("(devel)", ""), "v1.3.0", "13dd5261", "pitot v1.3.0 (commit 13dd5261) "},
		{module("v1.2.0", "", "vcs.revision", "other", "vcs.modified", "true"), "v1.3.0", "13dd5261", "pitot v1.3.0 (commit 13dd5261) "},
	} {
		if got := versionLine(versionFrom(c.build, c.version, c.commit)); got != c.want+runtime.Version() {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}
