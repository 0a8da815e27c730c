package lm

// Kind is the kind of a piece of an answer.
type Kind uint8

// The kinds that there are.
const (
	Text Kind = iota
	Thought
	CallName
	CallArgs
)

// EachPiece gives what the tokens [from, to) say, each piece as it stands inside a JSON
// string, and none that is empty. end says that nothing follows. The pieces are valid
// during the call only.
func (a *Answer) EachPiece(from, to int, end bool, give func(Kind, []byte)) {
	some := func(k Kind, text []byte) {
		if len(text) > 0 {
			give(k, text)
		}
	}
	p := a.plan
	if call := p.Call; call != nil {
		if call.NamedIn(from, to) {
			some(CallName, AppendQuoted(nil, call.Name))
		}
		some(CallArgs, AppendQuoted(nil, call.ArgsIn(from, to)))
		return
	}
	if p.Reasoning == 0 {
		a.piece = a.Append(a.piece[:0], from, to, end)
		some(Text, a.piece)
		return
	}
	if until := min(to, p.Reasoning); from < until {
		a.piece = a.Append(a.piece[:0], from, until, end)
		some(Thought, a.piece)
	}
	// One token ends the reasoning and has no text.
	if from = max(from, p.Reasoning+1); from < to {
		a.piece = a.Append(a.piece[:0], from, to, end)
		some(Text, a.piece)
	}
}
