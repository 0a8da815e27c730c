package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
)

func TestNewDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "one")
	for range 2 { // an empty directory may be used
		if err := NewDir(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteFile(dir, "run.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := NewDir(dir); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("a directory with a run in it: %v", err)
	}
	if err := NewDir(filepath.Join(dir, "run.json")); err == nil {
		t.Error("a file is no directory")
	}
}

func TestName(t *testing.T) {
	now := time.Date(2026, 11, 20, 23, 48, 0, 0, time.UTC)
	for label, want := range map[string]string{
		"llama-3.1-8b":                     "20261120-234800-llama-3.1-8b",
		"meta-llama/Llama-3.1-8B Instruct": "20261120-234800-meta-llama-llama-3.1-8b-instruct",
		"../../etc":                        "20261120-234800-etc",
		"":                                 "20261120-234800",
		"模型":                               "20261120-234800",
	} {
		if got := Name(now, label); got != want {
			t.Errorf("Name(%q) = %s, want %s", label, got, want)
		}
	}
	plain := regexp.MustCompile(`^20261120-234800(-[a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$`)
	rapid.Check(t, func(t *rapid.T) {
		name := Name(now, rapid.String().Draw(t, "label"))
		if !plain.MatchString(name) || len(name) > 80 {
			t.Fatalf("name %q", name)
		}
	})
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"one", "two"} {
		if err := WriteFile(dir, "run.json", []byte(text)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, "run.json"))
		if err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	for _, name := range []string{"", ".", "..", "../x", "a/b", "/x"} {
		if err := WriteFile(dir, name, nil); err == nil {
			t.Errorf("WriteFile(%q) wrote", name)
		}
	}
	if err := WriteFile(filepath.Join(dir, "none"), "x", nil); err == nil {
		t.Error("no error for a directory that is not there")
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}
