package lm

import (
	"bytes"
	"strconv"
	"strings"

	"pitot/internal/sim"
)

// Plan holds the common properties of the answers to one request: their length and their text.
type Plan struct {
	Limit    int // tokens that an answer may have
	Output   int // tokens after which it ends, if no stop string does
	Least    int // no stop string before
	Stops    []string
	KeepStop bool // a stop string belongs to the answer

	Reasoning int    // tokens of the answer that are reasoning
	Call      *Call  // the answer is a call
	Given     *Given // the answer says this
	garbled   bool   // see [Model.AnswerKnown]
	lead      int    // tokens before what is given
}

// Mode holds a request's restrictions on the model's habits.
type Mode struct {
	Chat      bool // the answer may begin with reasoning
	IgnoreEOS bool // the model does not end it by itself
}

// SettleLengths decides how long answers that begin at first are, and what of them is
// reasoning. Limit, Least, Stops, Call and Given are there already.
func (m *Model) SettleLengths(p *Plan, first int64, mode Mode) {
	p.Output = p.Limit
	switch {
	case p.Call != nil:
		p.Output = min(p.Limit, p.Call.Tokens())
	case p.Given != nil:
		m.settleGiven(p, mode)
		return
	case m.cfg.Ends != nil && !mode.IgnoreEOS:
		p.Output = min(p.Limit, max(m.cfg.Ends(first), p.Least, 1))
	}
	if mode.Chat && p.Call == nil {
		p.Reasoning = int(m.cfg.Reasoning * float64(p.Output))
	}
	if p.Reasoning > 0 || p.Call != nil {
		p.Stops = nil // they would have to be looked for in what is taken apart
	}
}

// settleGiven puts the reasoning before an answer whose words are given, in the
// share of the whole that it has otherwise.
func (m *Model) settleGiven(p *Plan, mode Mode) {
	if r := m.cfg.Reasoning; mode.Chat && r > 0 {
		p.Reasoning = p.Limit
		if before := r / (1 - r) * float64(p.Given.tokenCount()); before < float64(p.Limit) {
			p.Reasoning = int(before)
		}
	}
	if p.Reasoning > 0 {
		p.lead, p.Stops = p.Reasoning+1, nil
	}
	p.Output = min(p.Limit, p.lead+p.Given.tokenCount())
}

// FixedFirst is where the words begin of an answer that follows from prompts
// and seed.
func FixedFirst(prompts []Prompt, seed int64) int64 {
	h := uint64(seed)
	for _, p := range prompts {
		h = sim.Mix(h ^ p.hash)
	}
	return int64(h >> 2)
}

// FirstOf is where the words begin of the answer to a request of a number: the same prompts have
// the same answer where nothing is drawn, or what is drawn follows from a seed.
func FirstOf(prompts []Prompt, number int64, temperature *float64, seed *int64) int64 {
	switch {
	case seed != nil:
		return FixedFirst(prompts, *seed)
	case temperature != nil && *temperature == 0:
		return FixedFirst(prompts, 0)
	}
	return number
}

// isGiven says whether a token of the answer, and all after it, say what is
// given.
func (p *Plan) isGiven(token int) bool { return p.Given != nil && token >= p.lead }

// longestStop is the length of the longest stop string.
func (p *Plan) longestStop() int {
	n := 0
	for _, s := range p.Stops {
		n = max(n, len(s))
	}
	return n
}

// Answer is the text of one answer.
type Answer struct {
	m       *Model
	plan    *Plan
	first   int64  // where its words begin in the stock
	Output  int    // tokens after which it ends
	Stop    string // that ends it
	stays   int    // of its text, which that cuts off
	tail    []byte // text that may be the beginning of a stop string
	written int    // length of the text before it
	piece   []byte // see [Answer.EachPiece]
}

// Begin is the answer whose words begin at first. The plan must stay as it is.
func (m *Model) Begin(p *Plan, first int64) Answer {
	a := Answer{m: m, plan: p, first: first, Output: p.Output}
	if n, stop, stays := a.stopAt(); n > 0 {
		a.Output, a.Stop, a.stays = n, stop, stays
	}
	return a
}

// Content returns the keys by which the prefix cache knows prompt and answer, or nil where nothing
// is shared. Answers to prompts with different salts share nothing.
func (a *Answer) Content(p *Prompt, salt uint64) sim.Content {
	if p.keys == nil {
		return nil
	}
	return &content{salt: salt, keys: p.keys, a: a}
}

// stopAt looks for the first stop string in the answer: after how many tokens
// it is complete, what it is, and how long the text is that stays; 0 if there
// is none.
func (a *Answer) stopAt() (tokens int, stop string, stays int) {
	p := a.plan
	longest := p.longestStop()
	if longest == 0 {
		return 0, "", 0
	}
	var text []byte
	end := a.Output
	if p.Given == nil { // it repeats itself: what is not found in two rounds is not there
		end = min(end, p.Least+2*len(stock)+longest)
	}
	for i := range end {
		before := len(text)
		text = append(text, a.TokenText(i)...)
		if i+1 < p.Least {
			continue
		}
		from := max(before-longest+1, 0)
		for _, s := range p.Stops {
			if at := bytes.Index(text[from:], []byte(s)); at >= 0 {
				stays = from + at
				if p.KeepStop {
					stays += len(s)
				}
				return i + 1, s, stays
			}
		}
	}
	return 0, "", 0
}

// FinishReason returns the finish reason of the answer, given the engine's reason.
func (a *Answer) FinishReason(finish string) string {
	p := a.plan
	whole := p.Call != nil && a.Output == p.Call.Tokens() || p.Given != nil && a.Output == p.lead+p.Given.tokenCount()
	if finish != "" && (a.Stop != "" || a.Output < p.Limit || whole) {
		return "stop"
	}
	return finish
}

// StockIndex is which word of the stock token i is; false for what is given.
func (a *Answer) StockIndex(i int) (word int, ok bool) {
	return a.stockWord(i), !a.plan.isGiven(i)
}

// TokenText is the text of token i.
func (a *Answer) TokenText(i int) string {
	if p := a.plan; p.isGiven(i) {
		return p.Given.slice(i-p.lead, i-p.lead+1)
	}
	return stock[a.stockWord(i)]
}

// TokenJSON is token i inside a JSON string, and its bytes as a JSON list; of rank 1 and more the
// words that are the next best in its place.
func (a *Answer) TokenJSON(i, rank int) (text, bytes string) {
	if word, ok := a.StockIndex(i); ok || rank > 0 {
		return StockWord(word + rank)
	}
	raw := a.TokenText(i)
	list := make([]string, len(raw))
	for k := range len(raw) {
		list[k] = strconv.Itoa(int(raw[k]))
	}
	return string(AppendQuoted(nil, raw)), "[" + strings.Join(list, ",") + "]"
}

// LogprobText is that of the rank-th best token, 0 the one that is sent.
func LogprobText(rank int) string { return strconv.Itoa(-1-rank) + ".5" }

// cacheKey returns the key by which the prefix cache knows token i: that of the text it is sent as.
func (a *Answer) cacheKey(i int) uint32 {
	p := a.plan
	switch {
	case p.Call != nil:
		return foldHash(uint64(i)) ^ tokenKey([]byte(p.Call.Args))
	case p.isGiven(i):
		return p.Given.cacheKey(i - p.lead)
	}
	return a.m.stock[a.stockWord(i)].key
}

// ID is the id of token i.
func (a *Answer) ID(i int) uint32 {
	p, v := a.plan, &a.m.vocab
	switch {
	case p.Call != nil:
		if text := p.Call.ArgsIn(i, i+1); text != "" {
			return v.idOf([]byte(text))
		}
		return v.specialID(i)
	case p.isGiven(i):
		return p.Given.tokenID(v, i-p.lead)
	case p.Reasoning > 0 && i == p.Reasoning:
		return v.specialID(1) // what ends the reasoning
	}
	return a.m.stock[a.stockWord(i)].id
}

// Append appends the text of the tokens [from, to), as it stands inside a JSON
// string, without what may be the beginning of a stop string (vLLM's
// IncrementalDetokenizer): that is held back until it is known. end says that
// nothing follows.
func (a *Answer) Append(b []byte, from, to int, end bool) []byte {
	p := a.plan
	if len(p.Stops) == 0 {
		if p.isGiven(from) {
			return AppendQuoted(b, p.Given.slice(from-p.lead, to-p.lead))
		}
		for i := from; i < to; i++ {
			b = append(b, stock[a.stockWord(i)]...)
		}
		return b
	}
	for i := from; i < to; i++ {
		a.tail = append(a.tail, a.TokenText(i)...)
	}
	n := len(a.tail)
	switch {
	case end && a.Stop != "":
		n = min(max(a.stays-a.written, 0), n)
	case !end && !p.KeepStop:
		n = characterAt(string(a.tail), max(n-p.longestStop()+1, 0))
	}
	a.written += n
	b = AppendQuoted(b, string(a.tail[:n]))
	a.tail = a.tail[:copy(a.tail, a.tail[n:])]
	return b
}
