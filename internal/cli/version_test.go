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
	for _, c := range []struct {
		build *debug.BuildInfo
		want  string
	}{
		{of(), "pitot dev (commit unknown: built without version control) "},
		{of("vcs.modified", "true"), "pitot dev (commit unknown: built without version control) "},
		{of("vcs.revision", "13dd5261", "vcs.modified", "false"), "pitot dev (commit 13dd5261) "},
		{of("vcs.revision", "13dd5261", "vcs.modified", "true"), "pitot dev (commit 13dd5261-dirty) "},
	} {
		if got := versionLine(versionFrom(c.build)); got != c.want+runtime.Version() {
			t.Errorf("%s", got)
		}
	}
}
