package vllmapi

import (
	"encoding/json"
	"strings"
	"testing"

	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/lm"
)

// Blocks stand in blocks only so deep: more is refused, not read again and again.
func TestDeepBlocks(t *testing.T) {
	a := opened(lm.Config{}, 1000)
	for depth, refused := range map[int]bool{1: false, deepest: false, deepest + 1: true, 3000: true} {
		content := strings.Repeat(`[{"text":"a","content":`, depth) + `"b"` + strings.Repeat(`}]`, depth)
		for _, ask := range []func(*dialect.Request) (*dialect.Call, *dialect.Reply){a.beginMessages, a.beginResponses} {
			list := `[{"role":"user","content":` + content + `}]`
			_, got := ask(asking([]byte(`{"model":"` + a.Name + `","max_tokens":3,"messages":` + list + `,"input":` + list + `}`)))
			if (got != nil) != refused || refused && (got.Status != 400 || !json.Valid(got.Body)) {
				t.Errorf("depth %d: %+v", depth, got)
			}
		}
	}
}

// A response repeats which tool was to be called, whatever its choice leaves out.
func TestResponseToolChoice(t *testing.T) {
	a := opened(lm.Config{}, 1000)
	for _, choice := range []string{`{"name":"f"}`, `{"type":"function","name":"f"}`} {
		call, refused := a.beginResponses(asking([]byte(`{"model":"` + a.Name + `","input":"x","tools":[{"type":"function","name":"f","parameters":{}}],"tool_choice":` + choice + `}`)))
		if refused != nil {
			t.Fatalf("%s: %s", choice, refused.Body)
		}
		if _, got := call.Writer.(*responsesWriter).echoedTools(); got != `{"name":"f","type":"function"}` {
			t.Errorf("%s: %s", choice, got)
		}
	}
}
