package unreadable

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitot/internal/say"
)

func TestFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "prompts.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, hint := range map[string]string{
		"promts.jsonl":    "did you mean " + filepath.Join(dir, "prompts.jsonl") + "?",
		"other.txt":       "a text",
		"nowhere/prompts": "a text",
	} {
		path := filepath.Join(dir, name)
		_, err := os.ReadFile(path)
		err = FileError("--workload", path, err, "a text")
		if want := "read --workload " + path + ": "; !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error()[len(want):], "open") || say.HintOf(err) != hint {
			t.Errorf("%v; hint %s", err, say.HintOf(err))
		}
	}
	err := FileError("config", "x", &os.PathError{Op: "open", Path: "x", Err: os.ErrPermission}, "a text")
	if say.HintOf(err) != "give yourself the right to read it" {
		t.Error(say.HintOf(err))
	}
	if err := FileError("config", "x", errors.New("odd"), "a text"); err.Error() != "read config x: odd" {
		t.Error(err)
	}
}
