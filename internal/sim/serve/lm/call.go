package lm

import (
	"encoding/json"

	"pitot/internal/sim/serve/example"
)

// The tokens of a call that carry no text of its arguments: what a model
// writes around it, which a server takes away.
const (
	callOpen  = 6 // before the name is known
	callClose = 2 // after the last argument
	callPiece = 4 // bytes of the arguments in one token
)

// Call is an answer that calls a function.
type Call struct {
	Name  string
	Args  string // JSON
	Named bool   // the client named the function
}

// Function is one that the model may call.
type Function struct {
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"` // as a JSON Schema
}

// NewCall is a call of it, with arguments that its schema allows.
func (f *Function) NewCall() *Call { return &Call{Name: f.Name, Args: example.OfSchema(f.Parameters)} }

// Tokens returns the number of tokens in the whole call.
func (c *Call) Tokens() int {
	return callOpen + 1 + (len(c.Args)+callPiece-1)/callPiece + callClose
}

// NamedIn says whether the name becomes known within the tokens [from, to).
func (c *Call) NamedIn(from, to int) bool { return from <= callOpen && callOpen < to }

// ArgsIn is the part of the arguments that lies in the tokens [from, to).
func (c *Call) ArgsIn(from, to int) string {
	characterOf := func(token int) int {
		return characterAt(c.Args, min(max(token-callOpen-1, 0)*callPiece, len(c.Args)))
	}
	return c.Args[characterOf(from):characterOf(to)]
}

// TextOf returns the text of the first tokens of the call, in the model's own format.
func (c *Call) TextOf(tokens int) string {
	raw := `<tool_call>` + "\n" + `{"name": "` + c.Name + `", "arguments": ` + c.Args + "}\n</tool_call>"
	return raw[:characterAt(raw, min(tokens*callPiece, len(raw)))]
}
