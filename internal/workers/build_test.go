package workers

import (
	"strings"
	"testing"

	"pitot/internal/results/result"
)

// A build without a commit, or with changes behind it, is told from another by what the linker
// made of it; one of a commit has its name alone.
func TestBuild(t *testing.T) {
	plain := BuildID(result.Version{Version: "v1", Commit: "abc", Go: "go1.26"})
	if plain != "v1 abc go1.26" {
		t.Errorf("of a commit it is %q", plain)
	}
	for _, commit := range []string{"", "unknown", "abc-dirty"} {
		b := BuildID(result.Version{Version: "v1", Commit: commit, Go: "go1.26"})
		if name, found := strings.CutPrefix(b, "v1 "+commit+" go1.26 "); !found || name != linked() {
			t.Errorf("of %q it is %q", commit, b)
		}
	}
	if linked() == "" {
		t.Error("this program has no name")
	}
	for head, want := range map[string]string{
		"\x7fELF\x02 \xff Go build ID: \"a/b/c/d\"\n \xff":                           "d",
		"\x7fELF\x02 \xff Go build ID: \"d\"\n \xff":                                 "d",
		"\x7fELF \xff Go build ID: \"cut":                                            "",
		"\x7fELF\x04\x00\x00\x00\x05\x00\x00\x00\x04\x00\x00\x00Go\x00\x00a/b/c\x00": "c",
		"\xff\xff\xff\xff\x04\x00\x00\x00Go\x00\x00a/b":                              "b",
		"\x04\x00\x00\x00Go\x00\x00a/b":                                              "",
		"":                                                                           "",
	} {
		if got := linkedIn([]byte(head)); got != want {
			t.Errorf("in %q it finds %q", head, got)
		}
	}
}
