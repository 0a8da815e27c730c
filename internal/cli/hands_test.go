package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"testing"

	"pitot/internal/experiment"
)

// Waiting for Enter ends with its context, and takes no line that is typed afterwards.
func TestAskLeavesTheNextLine(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	asked := func(h *hands, ctx context.Context) bool {
		h.progress = &progress{w: new(bytes.Buffer)}
		return h.Ask(ctx, &experiment.Waiting{})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	h := &hands{stdin: r}
	if asked(h, ended) {
		t.Error("nobody pressed Enter")
	}
	_, _ = io.WriteString(w, "next\nmore\n")
	if !asked(h, t.Context()) {
		t.Error("Enter was not seen")
	}
	line := make([]byte, 5)
	if _, err := io.ReadFull(r, line); err != nil || string(line) != "more\n" {
		t.Errorf("%q is left, %v", line, err)
	}

	// Of a reader that cannot be interrupted the line goes to whoever asks next.
	plain, typed := io.Pipe()
	h = &hands{stdin: plain}
	if asked(h, ended) {
		t.Error("nobody pressed Enter")
	}
	go io.WriteString(typed, "\n")
	if !asked(h, t.Context()) {
		t.Error("Enter was not seen")
	}
}
