package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitot/internal/results/record"
	"pitot/internal/results/rundir"
	"pitot/internal/workload/token"
)

// Answers that are not streamed are counted as well.
func TestTokenizerWithoutStream(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/models") {
			fmt.Fprint(w, `{"object":"list","data":[{"id":"m"}]}`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"index":0,"message":{"role":"assistant","reasoning_content":" able above","content":" able above able"},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	dir := filepath.Join(t.TempDir(), "run")
	var out, errs bytes.Buffer
	code := Run(context.Background(), []string{"run", server.URL, "--api", "openai-chat", "--no-stream", "--rate", "50", "--requests", "30", "--seed", "1", "--warmup", "0s", "--input", "32", "--output", "12",
		"--tokenizer", plainTokenizer(t), "--full", "--out", dir}, strings.NewReader(""), &out, &errs)
	if code != Done && code != 4 {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	run, err := rundir.ReadResult(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := run.Points[0]
	if x := p.Throughput.OutputTokensPerS; x == nil || math.Abs(p.Window["common_tokens_per_s"]-*x) > .01**x {
		t.Errorf("%v output tok/s, %v\n%s%s", x, p.Window, out.String(), errs.String())
	}
	if s := p.Metrics.SummaryOf("output tokens"); s == nil || s.Mean == nil || *s.Mean != 5 {
		t.Errorf("%+v", s)
	}
}

// plainTokenizer writes a tokenizer to which each plain word is a token.
func plainTokenizer(t *testing.T) string {
	t.Helper()
	vocab := [][2]any{{"<unk>", 0}}
	for w := range token.Universal().Words() {
		vocab = append(vocab, [2]any{"▁" + w, -5})
	}
	for _, c := range "▁abcdefghijklmnopqrstuvwxyz" {
		vocab = append(vocab, [2]any{string(c), -20})
	}
	words := map[string]any{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}
	data, err := json.Marshal(map[string]any{"pre_tokenizer": words, "decoder": words, "model": map[string]any{"type": "Unigram", "unk_id": 0, "vocab": vocab}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// A server that reports no usage and sends two tokens in a chunk: with its tokenizer
// the answers are counted, chunk by chunk.
func TestTokenizerWithoutUsage(t *testing.T) {
	t.Parallel()
	const chunks = 6
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/models") {
			fmt.Fprint(w, `{"object":"list","data":[{"id":"m"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for range chunks {
			fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":" able above"}}]}`+"\n\n")
			w.(http.Flusher).Flush()
			time.Sleep(3 * time.Millisecond) // what is being measured
		}
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	dir := filepath.Join(t.TempDir(), "run")
	var out, errs bytes.Buffer
	code := Run(context.Background(), []string{"run", server.URL, "--api", "openai-chat", "--concurrency", "1", "--requests", "20", "--warmup", "0s", "--input", "32", "--output", "12",
		"--tokenizer", plainTokenizer(t), "--full", "--out", dir}, strings.NewReader(""), &out, &errs)
	if code != Done && code != 4 {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	for _, want := range []string{"tok/s: the server reported no usage: tokens are those that --tokenizer counts", "ITL amortised"} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("the report does not say %q:\n%s%s", want, out.String(), errs.String())
		}
	}
	run, err := rundir.ReadResult(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := run.Target.Server["tokenizer"]; !strings.HasPrefix(got, "Unigram, ") || !strings.Contains(got, "SHA-256") {
		t.Errorf("run.json says of the tokenizer %q", got)
	}
	// Two tokens an event, each 3 ms at least behind the one before: the common counter has the
	// same tokens as the throughput, which is of the same count.
	w, output := run.Points[0].Window, run.Points[0].Throughput.OutputTokensPerS
	if rate, speed := w["common_tokens_per_s"], w["common_speed"]; output == nil || math.Abs(rate-*output) > .01**output || speed <= 0 || speed > 2/.003 {
		t.Errorf("common tok/s %g of %v, speed %g", rate, output, speed)
	}
	rows, each := 0, 0
	for f, err := range record.Frames(dir) {
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range f.Rows {
			if r.Class == record.ProbeClass || r.Outcome != record.OK {
				continue
			}
			rows++
			if r.CompletionTokens != 2*chunks || !r.NoUsage || r.Counted != 2*chunks || r.FirstTokens != 2 {
				t.Errorf("row %d: %d completion tokens, counted %d, %d at first", r.ID, r.CompletionTokens, r.Counted, r.FirstTokens)
			}
		}
		for _, c := range f.Chunks {
			if each++; c.Tokens != 2 {
				t.Errorf("a chunk of %d tokens", c.Tokens)
			}
		}
	}
	if rows < 20 || each < rows*chunks {
		t.Errorf("%d rows, %d chunks", rows, each)
	}
}
