package target

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pitot/internal/client/api"
	"pitot/internal/config"
	"pitot/internal/results/record"
	"pitot/internal/sim/engines"
	"pitot/internal/sim/serve"
	"pitot/internal/workload"
)

// faces are the APIs, and which server of the mock's has them.
var faces = []struct {
	face, api, route string
	shown            bool // its events tell how many tokens they have
}{
	{"vllm", "openai-chat", "", true},
	{"vllm", "openai-responses", "", false},
	{"vllm", "anthropic", "", false},
	{"sglang", "sglang", "", true},
	{"ollama", "ollama", "", false},
	{"ollama", "ollama", "/api/generate", false},
}

// openFace opens a mock with a face.
func openFace(t *testing.T, face, api, settings string, args ...string) *Target {
	t.Helper()
	p := planned(t, append([]string{"mock:?ttft=2ms&itl=100us&face=" + face + settings, "--api", api, "--no-probe", "--model", "fixed"}, args...)...)
	target, err := Open(context.Background(), p, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	if err := target.prepareOptions("pitot"); err != nil { // as a probe would
		t.Fatal(err)
	}
	return target
}

// Every face that there is can be named, and no other.
func TestFaceNames(t *testing.T) {
	for _, name := range engines.FaceNames() {
		if _, is, err := config.ParseSimulated("mock:?face=" + name); err != nil || is.Face != name {
			t.Errorf("face=%s is %q: %v", name, is.Face, err)
		}
	}
	for _, f := range faces {
		if !slices.Contains(engines.FaceNames(), f.face) {
			t.Errorf("%s is no face", f.face)
		}
	}
}

func someWords(n int) workload.Request {
	r := requestOfWords(n, 7)
	r.Output = 12
	return r
}

// Each API gives the same of the same engine: the tokens, how the answer ended, when it
// began; streamed or whole.
func TestFaces(t *testing.T) {
	for _, f := range faces {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprint(f.api, f.route, stream), func(t *testing.T) {
				var args []string
				if !stream {
					args = append(args, "--no-stream")
				}
				target := openFace(t, f.face, f.api, "", args...)
				if f.route != "" {
					target.Options.Route = f.route
					target.setRoute()
				}
				row := target.askOnce(context.Background(), someWords(20), 12)
				if row.Outcome != record.OK || row.Finish != "length" || row.CompletionTokens != 12 || row.PromptTokens < 20 || row.TextBytes < 12 {
					t.Fatalf("%+v", row)
				}
				if stream && (row.Chunks != 12 || row.FirstToken < 2e6 || row.LastToken < row.FirstToken || f.shown != (row.FirstTokens == 1)) {
					t.Errorf("%d chunks, first at %d with %d", row.Chunks, row.FirstToken, row.FirstTokens)
				}
			})
		}
	}
}

// What goes wrong is told in each API.
func TestFacesWithFaults(t *testing.T) {
	for _, f := range faces {
		for _, c := range []struct {
			faults string
			errors []string // "" for an answer that is well
		}{
			{"error:100%", []string{record.ErrStream}},
			{"malformed:100%", []string{record.ErrMalformed}},
			{"reset:100%", []string{record.ErrReset, record.ErrClosed}},
			{"500:100%", []string{record.ServerError(500)}},
			{"no-done:100%", []string{"", record.ErrUnfinished}},
			{"no-usage:100%", []string{""}},
			{"crlf:100%", []string{""}}, {"split:100%", []string{""}}, {"coalesce:100%:3", []string{""}}, {"gzip:100%", []string{""}}, {"ping:100%", []string{""}},
		} {
			target := openFace(t, f.face, f.api, "&faults="+c.faults)
			row := target.askOnce(context.Background(), someWords(4), 12)
			if !slices.Contains(c.errors, row.Error) {
				t.Errorf("%s with %s: %q %s", f.api, c.faults, row.Error, row.Detail)
			}
			if c.faults == "no-usage:100%" && (f.api == "openai-responses" || f.api == "ollama" || f.api == "anthropic") && row.CompletionTokens >= 0 {
				t.Errorf("%s: usage without one: %+v", f.api, row)
			}
		}
	}
}

// Calls, and reasoning.
func TestFacesReason(t *testing.T) {
	for _, f := range faces {
		if f.api == "sglang" || f.route == "/api/generate" { // a bare prompt has no such
			continue
		}
		target := openFace(t, f.face, f.api, "&reasoning=0.5")
		row := target.askOnce(context.Background(), someWords(4), 12)
		if row.Outcome != record.OK || row.FirstAnswer < row.FirstToken || row.HiddenTokens > 0 {
			t.Errorf("%s: %+v", f.api, row)
		}
	}
}

// What a dialect is said to have is an API, and one that generates is had by one at most.
func TestAPIsOfDialects(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range serve.APIs() {
		a, known := api.ByName(name)
		if !known || !api.GeneratesTokens(a) || seen[name] {
			t.Errorf("%s: known %v, twice %v", name, known, seen[name])
		}
		seen[name] = true
		if face, ok := serve.DialectOf(name); !ok || !slices.Contains(engines.FaceNames(), face) {
			t.Errorf("%s has the dialect %q", name, face)
		}
	}
}
