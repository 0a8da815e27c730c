package vllmapi

import (
	"encoding/json"
	"fmt"
	"sync/atomic"

	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/lm"
)

// tool is one entry of a request's tools.
type tool struct {
	Type     string       `json:"type"`
	Function *lm.Function `json:"function"`
}

// toolCall gives the call that tools and tool_choice ask for, nil for none.
// With "auto" it is the model that decides: auto are the tools it may call.
func (b *body) toolCall() (call *lm.Call, auto []tool, refused *dialect.Reply) {
	choice, chosen := b.stringField("tool_choice")
	if !b.hasField("tools") {
		if b.hasField("tool_choice") && choice != "none" && choice != "auto" {
			return nil, nil, parameterReply("tool_choice", "", "When using `tool_choice`, `tools` must be set.")
		}
		return nil, nil, nil
	}
	var tools []tool
	if err := json.Unmarshal(b.m["tools"], &tools); err != nil {
		b.noteFault("list_type", "tools", b.m["tools"])
		return nil, nil, nil
	}
	if len(tools) == 0 {
		return nil, nil, parameterReply("tools", "", "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely.")
	}
	for i, t := range tools {
		if t.Function == nil {
			b.noteFault("missing", fmt.Sprintf("tools.%d.function", i), json.RawMessage("{}"))
			return nil, nil, nil
		}
	}
	switch {
	case choice == "none":
		return nil, nil, nil
	case !b.hasField("tool_choice"), choice == "auto":
		return nil, tools, nil
	case choice == "required":
		return tools[0].Function.NewCall(), nil, nil
	case chosen:
		return nil, nil, parameterReply("tool_choice", "", "Invalid value for `tool_choice`: %s! Only named tools, \"none\", \"auto\" or \"required\" are supported.", choice)
	}
	var named tool
	_ = json.Unmarshal(b.m["tool_choice"], &named)
	if named.Function != nil {
		for _, t := range tools {
			if t.Function.Name == named.Function.Name {
				call := t.Function.NewCall()
				call.Named = true
				return call, nil, nil
			}
		}
	}
	return nil, nil, parameterReply("tool_choice", "", "The tool specified in `tool_choice` does not match any of the specified `tools`")
}

// parsing counts how often an output was looked through for calls of tools: of a
// stream each delta, otherwise each choice.
type parsing struct{ streamed, whole lookups }

// lookups counts those that found a call, and those that found words alone.
type lookups struct{ call, words atomic.Int64 }

func (l *lookups) count(found bool) {
	if found {
		l.call.Add(1)
	} else {
		l.words.Add(1)
	}
}

// values are the counts by their names in the layout of the page of metrics.
func (p *parsing) values() map[string]float64 {
	return map[string]float64{
		"streamed_call": float64(p.streamed.call.Load()), "streamed_words": float64(p.streamed.words.Load()),
		"whole_call": float64(p.whole.call.Load()), "whole_words": float64(p.whole.words.Load()),
	}
}
