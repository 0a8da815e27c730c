package serve

import (
	"encoding/json"
	"fmt"

	"pitot/internal/twin/serve/example"
)

// The tokens of a call that carry no text of its arguments: what a model
// writes around it, which a server takes away.
const (
	callOpen  = 6 // before the name is known
	callClose = 2 // after the last argument
	callPiece = 4 // bytes of the arguments in one token
)

// toolCall is an answer that calls a function.
type toolCall struct {
	name  string
	args  string // JSON
	named bool   // the client named the function
}

// tokens is how many tokens the whole call has.
func (t *toolCall) tokens() int {
	return callOpen + 1 + (len(t.args)+callPiece-1)/callPiece + callClose
}

// argsIn is the part of the arguments that lies in the tokens [from, to).
func (t *toolCall) argsIn(from, to int) string {
	at := func(token int) int {
		return characterAt(t.args, min(max(token-callOpen-1, 0)*callPiece, len(t.args)))
	}
	return t.args[at(from):at(to)]
}

// raw is the whole call as the model writes it.
func (t *toolCall) raw() string {
	return `<tool_call>` + "\n" + `{"name": "` + t.name + `", "arguments": ` + t.args + "}\n</tool_call>"
}

// tool is one entry of a request's tools.
type tool struct {
	Type     string `json:"type"`
	Function *struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// call is one of a tool, with arguments that its schema allows.
func (t *tool) call() *toolCall {
	return &toolCall{name: t.Function.Name, args: example.OfSchema(t.Function.Parameters)}
}

// toolCall gives the call that tools and tool_choice ask for, nil for none.
// With "auto" it is the model that decides: auto are the tools it may call.
func (b *body) toolCall() (call *toolCall, auto []tool, refused *reply) {
	choice, chosen := b.text("tool_choice")
	if !b.has("tools") {
		if b.has("tool_choice") && choice != "none" && choice != "auto" {
			return nil, nil, parameter("tool_choice", "", "When using `tool_choice`, `tools` must be set.")
		}
		return nil, nil, nil
	}
	var tools []tool
	if err := json.Unmarshal(b.m["tools"], &tools); err != nil {
		b.add("list_type", "body.tools", "Input should be a valid list", b.m["tools"])
		return nil, nil, nil
	}
	if len(tools) == 0 {
		return nil, nil, parameter("tools", "", "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely.")
	}
	for i, t := range tools {
		if t.Function == nil {
			b.add("missing", fmt.Sprintf("body.tools.%d.function", i), "Field required", json.RawMessage("{}"))
			return nil, nil, nil
		}
	}
	switch {
	case choice == "none":
		return nil, nil, nil
	case !b.has("tool_choice"), choice == "auto":
		return nil, tools, nil
	case choice == "required":
		return tools[0].call(), nil, nil
	case chosen:
		return nil, nil, parameter("tool_choice", "", "Invalid value for `tool_choice`: "+choice+
			"! Only named tools, \"none\", \"auto\" or \"required\" are supported.")
	}
	var named tool
	_ = json.Unmarshal(b.m["tool_choice"], &named)
	if named.Function != nil {
		for _, t := range tools {
			if t.Function.Name == named.Function.Name {
				call := t.call()
				call.named = true
				return call, nil, nil
			}
		}
	}
	return nil, nil, parameter("tool_choice", "", "The tool specified in `tool_choice` does not match any of the specified `tools`")
}
