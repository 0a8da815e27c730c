package workload

import "pitot/internal/workload/seed"

// BatchConfig holds the number and the lengths of the texts in a request to a model that generates
// nothing.
type BatchConfig struct {
	Texts       int     // of a request, at least 1
	Query       Lengths // tokens of what the texts are held against, zero for nothing
	Seed, Nonce uint64  // of the lengths and of the words of queries
	Calibration Calibration
}

// Batched is a source whose requests have the texts of several of another's, each as a
// message, behind a query where there is one. Nothing is generated of them. Its item i has
// the items Texts·i and those that follow.
type Batched struct {
	Source
	config BatchConfig
}

// NewBatched gives a source whose requests are for a model that generates nothing.
func NewBatched(src Source, c BatchConfig) *Batched { return &Batched{src, c} }

// Streams of a seed that queries are drawn from.
const (
	streamQueryLength = 0x7175_6572_7900 + iota
	streamQueryWords
)

// At implements [Source]. How many tokens a query adds is not known: some models read it
// once, others with each text.
func (b *Batched) At(item int64) (Request, error) {
	c := &b.config
	out := Request{ID: item, Session: Unknown}
	if !c.Query.IsZero() {
		tokens := c.Query.Draw(seed.At(c.Seed, streamQueryLength, uint64(item)))
		words := c.Calibration.withOverhead(0).wordsAtLeastOne(tokens)
		query := WordSegment(c.Nonce, streamQueryWords, uint64(item), words)
		out.Messages = append(out.Messages, NewMessage("user", query))
		out.Input = Unknown
	}
	for i := range int64(c.Texts) {
		one, err := b.Source.At(item*int64(c.Texts) + i)
		if err != nil {
			return Request{}, err
		}
		if i == 0 {
			out.Class, out.Body = one.Class, one.Body
		}
		text := Message{Role: "user"}
		for _, m := range one.Messages {
			text.Segments = append(text.Segments, m.Segments...)
		}
		out.Messages = append(out.Messages, text)
		if one.Input < 0 || out.Input < 0 {
			out.Input = Unknown
			continue
		}
		out.Input += one.Input
	}
	return out, nil
}

// Inner is the source that the texts are of.
func (b *Batched) Inner() Source { return b.Source }

// BatchDescription holds what the requests of a [Batched] have, as run.json states it.
type BatchDescription struct {
	Texts int    `json:"inputs"`          // of a request
	Query string `json:"query,omitempty"` // tokens of what they are held against, as ParseLengths reads them
}

// Describe describes it.
func (b *Batched) Describe() *BatchDescription {
	d := &BatchDescription{Texts: b.config.Texts}
	if !b.config.Query.IsZero() {
		d.Query = b.config.Query.String()
	}
	return d
}
