package target

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitot/internal/results/result"
	"pitot/internal/tokenizer"
	"pitot/internal/workload/token"
)

// spelling writes a tokenizer that has the plain words and single bytes, and what more it is given.
func spelling(t *testing.T, more ...string) (path string, tok *tokenizer.Tokenizer) {
	t.Helper()
	vocab := [][2]any{{"<unk>", 0}}
	for b := range 256 {
		vocab = append(vocab, [2]any{fmt.Sprintf("<0x%02X>", b), -40})
	}
	for w := range token.Universal().Words() {
		vocab = append(vocab, [2]any{"▁" + w, -5})
	}
	for w := range token.Universal().FirstWords() {
		vocab = append(vocab, [2]any{w, -6})
	}
	for _, w := range append([]string{"▁", "user", "assistant", "system", ":"}, more...) {
		vocab = append(vocab, [2]any{w, -6})
	}
	words := map[string]any{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": true}
	data, err := json.Marshal(map[string]any{
		"added_tokens": []any{map[string]any{"id": len(vocab), "content": "<s>"}}, "pre_tokenizer": words, "decoder": words,
		"model": map[string]any{"type": "Unigram", "unk_id": 0, "byte_fallback": true, "vocab": vocab},
	})
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if tok, err = tokenizer.Open(path); err != nil {
		t.Fatal(err)
	}
	return path, tok
}

// spelled is a server of a model with a tokenizer and the template "<s>", role, ": ", text, "\n".
type spelled struct {
	tok    *tokenizer.Tokenizer
	tells  string // its tokens, as "vllm" or "tgi" do, "nothing" or "an empty list", "" for no route
	counts bool   // in usage
}

func (s *spelled) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var ask struct {
		Prompt, Inputs string
		Messages       []struct{ Role, Content string }
	}
	_ = json.Unmarshal(body, &ask)
	e := s.tok.NewEncoder()
	switch {
	case r.URL.Path == "/v1/models":
		_, _ = io.WriteString(w, `{"data":[{"id":"m"}]}`)
	case r.URL.Path == "/tokenize" && s.tells == "vllm":
		ids, _ := e.Append(nil, []byte(ask.Prompt))
		_ = json.NewEncoder(w).Encode(map[string]any{"count": len(ids), "tokens": ids})
	case r.URL.Path == "/tokenize" && s.tells == "nothing":
		_, _ = io.WriteString(w, `{"count":0,"max_model_len":4096,"tokens":[]}`)
	case r.URL.Path == "/tokenize" && s.tells == "an empty list":
		_, _ = io.WriteString(w, `[]`)
	case r.URL.Path == "/tokenize" && s.tells == "tgi":
		ids, _ := e.Append(nil, []byte("<s>"+ask.Inputs))
		var list []map[string]any
		for _, id := range ids {
			list = append(list, map[string]any{"id": id})
		}
		_ = json.NewEncoder(w).Encode(list)
	case r.URL.Path == "/v1/chat/completions":
		n := 0
		for _, m := range ask.Messages {
			k, _ := e.Count([]byte("<s>" + m.Role + ": " + m.Content + "\n"))
			n += k
		}
		usage := ""
		if s.counts {
			usage = fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":1}`, n)
		}
		fmt.Fprintf(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]%s}`, usage)
	default:
		http.NotFound(w, r)
	}
}

func openSpelled(t *testing.T, s *spelled, file string, more ...string) *Target {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	x, err := Open(context.Background(), planned(t, append([]string{server.URL, "--api", "openai-chat", "--no-stream", "--tokenizer", file, "--input", "32", "--output", "1", "--rate", "1"}, more...)...), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	return x
}

// The right file is told from one of another model, by ids and by counts, whatever a template adds.
func TestHeldTokenizer(t *testing.T) {
	right, tok := spelling(t)
	fewer, _ := spelling(t, "1984", "123456789", "total", "end", "year") // other tokens of the same words
	_, ofServer := spelling(t, "Größenänderungen", "быстрая", "year", "tokens")
	for name, c := range map[string]struct {
		server spelled
		file   string
		differ bool
		says   string
	}{
		"right, by ids":      {spelled{tok, "vllm", true}, right, false, ""},
		"right, with <s>":    {spelled{tok, "tgi", true}, right, false, ""},
		"right, by counts":   {spelled{tok, "", true}, right, false, ""},
		"right, by ids only": {spelled{tok, "vllm", false}, right, false, ""},
		"no ids, by counts":  {spelled{tok, "nothing", true}, right, false, ""},
		"[], by counts":      {spelled{tok, "an empty list", true}, fewer, true, "the server counts"},
		"other, by ids":      {spelled{tok, "vllm", true}, fewer, true, "differ from the server"},
		"other, by counts":   {spelled{tok, "", true}, fewer, true, "the server counts"},
		"ids beyond":         {spelled{ofServer, "vllm", true}, right, true, "and the file ends at"},
	} {
		t.Run(name, func(t *testing.T) {
			x := openSpelled(t, &c.server, c.file)
			notes := strings.Join(x.Notes, "\n")
			if x.Held == nil || x.Held.Differ > 0 != c.differ || !strings.Contains(notes, c.says) || strings.Contains(notes, "not that of the served model") != c.differ {
				t.Errorf("%+v, %q", x.Held, notes)
			}
		})
	}
	for _, tells := range []string{"", "nothing", "an empty list"} {
		if x := openSpelled(t, &spelled{tok, tells, false}, right); x.Held != nil {
			t.Errorf("a server that tells %q: %+v", tells, x.Held)
		}
	}
}

// Where a server counts no prompts, or is not asked, the tokenizer counts their text alone, and
// the result says so. Where it counts them, its count has the chat template.
func TestLengthsByTokenizer(t *testing.T) {
	file, tok := spelling(t)
	counted := openSpelled(t, &spelled{tok, "vllm", true}, file, "--turns", "3")
	if c := counted.Calibration; len(counted.Adaptations) > 0 || c.Overhead <= 0 || c.Turn <= 0 || c.System <= 0 {
		t.Errorf("counted by the server: %v %+v", counted.Adaptations, c)
	}
	for name, x := range map[string]*Target{
		"the server counts none": openSpelled(t, &spelled{tok, "", false}, file, "--turns", "3"),
		"nothing is requested":   openSpelled(t, &spelled{tok, "", true}, file, "--no-probe", "--model", "m"),
	} {
		a, c := x.Adaptations, x.Calibration
		if len(a) != 1 || a[0].Kind != result.TextLengths || c.PerWord != 1 || c.Overhead != 0 || c.Turn != 0 || c.System != 0 {
			t.Errorf("%s: %v %+v", name, a, c)
		}
	}
	server := httptest.NewServer(&spelled{tok, "", true})
	t.Cleanup(server.Close)
	bare, err := Open(context.Background(), planned(t, server.URL, "--api", "openai-completions", "--tokenizer", file, "--rate", "1", "--no-probe", "--model", "m"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bare.Close)
	if a := bare.Adaptations; len(a) != 1 || a[0].Kind != result.TokenizerLengths {
		t.Errorf("prompts without a template: %v", a)
	}
}
