package cli

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"pitot/internal/results/result"
)

// Set by the linker for releases: see release/binaries.go. Other builds know
// themselves, as far as the go command tells them.
var (
	releaseVersion string
	releaseCommit  string
)

// unknownCommit says that the build does not tell which commit it is of.
const unknownCommit = "unknown"

func versionOf() result.Version {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		b = &debug.BuildInfo{}
	}
	return versionFrom(b, releaseVersion, releaseCommit)
}

// versionFrom takes the version and the commit from the linker, else from the
// build: the module's version, which is a tag or tells time and commit, and what
// version control recorded, with "-dirty" for uncommitted changes. Of a module that was
// downloaded the checksum stands for the commit.
func versionFrom(b *debug.BuildInfo, version, commit string) result.Version {
	if commit == "" {
		dirty := ""
		for _, s := range b.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = "-dirty"
			}
		}
		if commit != "" {
			commit += dirty
		}
	}
	if b.Main.Version == "(devel)" {
		b.Main.Version = ""
	}
	return result.Version{
		Version: cmp.Or(version, b.Main.Version, "dev"),
		Go:      runtime.Version(),
		Commit:  cmp.Or(commit, pseudoCommit(b.Main.Version), b.Main.Sum, unknownCommit),
	}
}

// pseudoCommit is the commit that a version such as
// v0.0.0-20260102150405-5e5792741b96 names, "" for any other.
func pseudoCommit(version string) string {
	version, _, _ = strings.Cut(version, "+")
	parts := strings.Split(version, "-")
	last := parts[len(parts)-1]
	if len(parts) < 3 || len(last) != 12 || strings.Trim(last, "0123456789abcdef") != "" {
		return ""
	}
	return last
}

func versionVerb(_ context.Context, e *Env) (int, error) {
	fmt.Fprintln(e.Stdout, versionLine(versionOf()))
	return Done, nil
}

func versionLine(v result.Version) string {
	commit := v.Commit
	if commit == unknownCommit {
		commit += ": built without version control"
	}
	return fmt.Sprintf("pitot %s (commit %s) %s", v.Version, commit, v.Go)
}

func versionHelp() manual {
	return manual{about: "Print the version.", usage: "pitot version"}
}
