package loadgen

import (
	"cmp"
	"slices"
	"sync"

	"pitot/internal/results/record"
	"pitot/internal/tokenizer"
)

// Counter counts the tokens of answers with the model's tokenizer. It is safe for
// concurrent use.
type Counter struct {
	mu      sync.Mutex
	encoder *tokenizer.Encoder
	run     []byte // text of one kind, of one choice
	ends    []int
	counts  []int32 // of each chunk
	of      []int   // chunks of the run
	gaveUp  int     // answers that it could not count
	err     error   // why, of the first
	begins  []int   // where the text of each chunk begins
	order   []int   // chunks by choice
}

// NewCounter gives one, nil without a tokenizer.
func NewCounter(t *tokenizer.Tokenizer) *Counter {
	if t == nil {
		return nil
	}
	return &Counter{encoder: t.NewEncoder()}
}

// Count puts what the tokenizer makes of an answer into its row: the tokens of its text, and
// these in place of a usage that the server does not report. text is that of the chunks in
// turn. A chunk whose tokens the server does not tell is given those that end in it, where
// each of the answer has one at least: if one has none, the model wrote what is one token as
// several, and no more is known than that.
func (c *Counter) Count(r *record.Row, chunks []record.Chunk, text []byte) {
	bytes := 0
	for i := range chunks {
		bytes += int(chunks[i].Bytes)
	}
	if bytes != len(text) || int64(bytes) != r.TextBytes || bytes == 0 {
		return // what is here is not what was streamed
	}
	if r.HiddenTokens > 0 { // reasoning that is shown is a summary, whose tokens the server does not count
		for i := range chunks {
			if chunks[i].Kind == record.Reasoning {
				return
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	total, placed, err := c.countRuns(chunks, text)
	if err != nil {
		if c.gaveUp++; c.err == nil {
			c.err = err
		}
		return
	}
	r.Counted = int32(total)
	if r.CompletionTokens < 0 && r.Outcome == record.OK {
		r.CompletionTokens, r.NoUsage = r.Counted, true
	}
	if !placed {
		return
	}
	for i := range chunks {
		if chunks[i].Tokens > 0 || c.counts[i] == 0 {
			return
		}
	}
	for i := range chunks {
		chunks[i].Tokens = c.counts[i]
	}
	if r.FirstTokens < 0 {
		r.FirstTokens = chunks[0].Tokens
	}
}

// Whole is [Counter.Count] for an answer that was not streamed, of which pieces have the
// lengths: no event was the first.
func (c *Counter) Whole(r *record.Row, pieces []record.Chunk, text []byte) {
	first := r.FirstTokens
	c.Count(r, pieces, text)
	r.FirstTokens = first
}

// countRuns counts those of all runs of text, which are of one choice and of one kind. placed says
// that counts has those of each chunk.
func (c *Counter) countRuns(chunks []record.Chunk, text []byte) (total int, placed bool, err error) {
	c.counts = append(c.counts[:0], make([]int32, len(chunks))...)
	placed = true
	c.run, c.of, c.begins, c.order = c.run[:0], c.of[:0], c.begins[:0], c.order[:0]
	at := 0
	for i := range chunks {
		c.begins, c.order = append(c.begins, at), append(c.order, i)
		at += int(chunks[i].Bytes)
	}
	// A choice is whatever number the server gave it: those that occur are gone through.
	slices.SortStableFunc(c.order, func(i, j int) int { return cmp.Compare(chunks[i].Choice, chunks[j].Choice) })
	end := func() {
		if len(c.of) == 0 || err != nil {
			return
		}
		var known bool
		c.ends, known, err = c.encoder.TokenEnds(c.ends[:0], c.run)
		total, placed = total+len(c.ends), placed && known
		c.assignTokens(chunks)
		c.run, c.of = c.run[:0], c.of[:0]
	}
	for _, i := range c.order {
		if n := len(c.of); n > 0 {
			if last := &chunks[c.of[n-1]]; last.Choice != chunks[i].Choice || last.Kind != chunks[i].Kind {
				end()
			}
		}
		c.run, c.of = append(c.run, text[c.begins[i]:c.begins[i]+int(chunks[i].Bytes)]...), append(c.of, i)
	}
	end()
	return total, placed, err
}

// GaveUp returns the number of answers that could not be counted, and the error of the first.
func (c *Counter) GaveUp() (answers int, why error) {
	if c == nil {
		return 0, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gaveUp, c.err
}

// assignTokens gives each chunk of the run the tokens that end in it.
func (c *Counter) assignTokens(chunks []record.Chunk) {
	at, k := 0, 0
	for _, i := range c.of {
		at += int(chunks[i].Bytes)
		for k < len(c.ends) && c.ends[k] <= at {
			c.counts[i]++
			k++
		}
	}
}
