package workload

import (
	"fmt"
	"math"

	"pitot/internal/workload/seed"
)

// Streams of a seed, one for each thing that is drawn.
const (
	streamInput = 1 + iota
	streamOutput
	streamShare
	streamContent
	streamPrefix
	streamOrder
)

// Classes of requests where some share a prefix and others do not.
const (
	SharedPrefix = "shared prefix"
	OwnPrefix    = "own prefix"
	NoPrefix     = "no prefix"
)

// Calibration maps generated words to a server's tokens: its prompt_tokens = Overhead + PerWord ×
// words. The overhead is the chat template. The zero value means that no calibration is known. Then
// one word counts as one token, and the template adds to that.
type Calibration struct {
	Overhead float64 `json:"overhead_tokens"`
	PerWord  float64 `json:"tokens_per_word"`

	// What a chat's template adds besides: to a conversation for each further turn, which
	// is an answer and a message of the user, and for a system prompt.
	Turn   float64 `json:"turn_tokens,omitempty"`
	System float64 `json:"system_tokens,omitempty"`
}

func (c Calibration) isKnown() bool { return c != Calibration{} }

// ifKnown returns the calibration for run.json, nil where none is known.
func (c Calibration) ifKnown() *Calibration {
	if !c.isKnown() {
		return nil
	}
	return &c
}

// withOverhead is the calibration of texts with another overhead.
func (c Calibration) withOverhead(tokens float64) Calibration {
	c.Overhead = tokens
	return c
}

// wordsAtLeastOne is [Calibration.wordsForTokens], at least 1.
func (c Calibration) wordsAtLeastOne(tokens int) int { return max(c.wordsForTokens(tokens), 1) }

// wordsForTokens returns the number of words that comes nearest to the given number of prompt
// tokens.
func (c Calibration) wordsForTokens(tokens int) int {
	if !c.isKnown() {
		return tokens
	}
	return int(math.Round((float64(tokens) - c.Overhead) / c.PerWord))
}

// tokensForWords returns the number of tokens of the given number of words.
func (c Calibration) tokensForWords(words int) int {
	if !c.isKnown() {
		return words
	}
	return int(math.Round(c.Overhead + c.PerWord*float64(words)))
}

// RandomConfig describes a Random workload.
type RandomConfig struct {
	Preset string  // name of the [Preset] that lengths come from, "" for none
	Input  Lengths // prompt tokens, without the prefix
	Output Lengths // tokens to ask for

	// Every prompt is Prefix tokens longer than Input says. For a share
	// PrefixShare of the requests these tokens are the same, for the others
	// their own: the share changes what a cache can do, and nothing else.
	Prefix      int     // tokens, 0 for none
	PrefixShare float64 // 0 to 1
	// Or they begin with the texts of a tree, which come on top of Input just so; nil for none.
	Tree *Tree
	// Or a share of their tokens is the same, with no token on top of Input.
	Reuse Reuse
	// Cold asks for the same lengths with nothing in common: what would be shared is each
	// request's own.
	Cold bool

	// Seed draws lengths and who shares the prefix. Nonce draws the words
	// alone: a new nonce asks for the same lengths with prompts that no cache
	// has seen.
	Seed, Nonce uint64

	// Correlation is Spearman's between the lengths of a prompt, without its prefix, and of
	// its answer: -1 to 1, 0 for lengths that have nothing to do with each other.
	Correlation float64

	Calibration Calibration
}

// Random is the synthetic workload: generated words of planned length, cold
// by default. It is safe for concurrent use.
//
// No two requests of a nonce have text seeds in common, and texts of different
// seeds are apart within their first eight words (see
// [token.Vocabulary.AppendText]); what requests without a shared prefix have
// in common is the head of the chat template only.
type Random struct {
	config RandomConfig
	prefix Segment
}

// NewRandom makes the workload, or says what in its description makes none.
func NewRandom(c RandomConfig) (*Random, error) {
	switch k := c.Calibration; {
	case c.Input.IsZero() || c.Output.IsZero():
		return nil, fmt.Errorf("random workload: input and output lengths are missing")
	case c.Prefix > 0 && c.Tree != nil:
		return nil, fmt.Errorf("random workload: a prefix and a tree of prefixes")
	case c.Prefix < 0 || c.Prefix > MaxLength:
		return nil, fmt.Errorf("random workload: prefix is %d, want 0 to %d tokens", c.Prefix, MaxLength)
	case !(c.PrefixShare >= 0 && c.PrefixShare <= 1):
		return nil, fmt.Errorf("random workload: prefix share is %g, want 0 to 1", c.PrefixShare)
	case !(c.Reuse.Share >= 0 && c.Reuse.Share < 1) || c.Reuse.Share > 0 && c.Reuse.Block < 1:
		return nil, fmt.Errorf("random workload: a share of %g in blocks of %d tokens is none", c.Reuse.Share, c.Reuse.Block)
	case c.Reuse.Share > 0 && (c.Prefix > 0 || c.Tree != nil):
		return nil, fmt.Errorf("random workload: a prefix and a share of shared tokens")
	case !(c.Correlation >= -1 && c.Correlation <= 1):
		return nil, fmt.Errorf("random workload: the correlation of lengths is %g, want -1 to 1", c.Correlation)
	case c.Correlation != 0 && c.Input.Pairs(c.Output):
		return nil, fmt.Errorf("random workload: lengths of pairs have the correlation that they have in their file")
	case k.isKnown() && !(k.PerWord >= 0.1 && k.PerWord <= 100 && math.Abs(k.Overhead) <= MaxLength):
		return nil, fmt.Errorf("random workload: %g + %g × words is no number of tokens", k.Overhead, k.PerWord)
	}
	r := &Random{config: c}
	if c.Reuse.Share > 0 {
		r.config.Reuse = c.Reuse.adjustForLengths(c.Calibration, c.Input)
		r.prefix = Segment{Seed: seed.At(c.Nonce, streamPrefix, 0)} // as long as each request has it
	}
	if c.Prefix > 0 {
		// The template's tokens belong to the prompt as a whole: the prefix is
		// Prefix tokens of text.
		words := c.Calibration.withOverhead(0).wordsAtLeastOne(c.Prefix)
		r.prefix = WordSegment(c.Nonce, streamPrefix, 0, words)
	}
	return r, nil
}

// At gives the i-th request: one user message, Input planned as the tokens the
// server will count, as far as Calibration knows.
func (r *Random) At(i int64) (Request, error) {
	if i < 0 {
		return Request{}, fmt.Errorf("random workload: no request %d", i)
	}
	c, at := &r.config, uint64(i)
	prefix, common, class := c.Prefix, []Segment(nil), ""
	if c.Tree != nil {
		prefix, common = r.requestPath(at)
	} else if c.Prefix > 0 {
		common = []Segment{r.prefix}
	}
	begins := 0 // words
	for _, s := range common {
		begins += s.Words
	}
	// At least one word is the request's own, even where the template alone is
	// longer than the input asked for.
	words := c.Calibration.wordsForTokens(prefix + c.Input.Draw(seed.At(c.Seed, streamInput, at)))
	words = max(words, begins+1)
	own := WordSegment(c.Nonce, streamContent, at, words)
	if c.Reuse.Share > 0 {
		begins = c.Reuse.sharedWords(c.Calibration, words, seed.Float(seed.At(c.Seed, streamReuse, at)))
		common = []Segment{{Seed: r.prefix.Seed, Words: begins}}
	}
	shares := !c.Cold && (c.Reuse.Share > 0 || r.sharesPrefix(at))
	switch s := c.PrefixShare; {
	case c.Cold:
	case c.Prefix == 0 && c.Tree == nil || s == 0 || s == 1 && !c.Tree.hasPartialShare():
	case prefix == 0:
		class = NoPrefix
	case shares:
		class = SharedPrefix
	default:
		class = OwnPrefix
	}
	segments := []Segment{own}
	if shares && begins > 0 {
		own.Words -= begins
		segments = append(common, own)
	}
	return Request{
		ID:       i,
		Class:    class,
		Messages: []Message{NewMessage("user", segments...)},
		Input:    c.Calibration.tokensForWords(words),
		Output:   c.Output.Draw(c.answerDraw(at)),
		Exact:    true,
		Session:  Unknown,
	}, nil
}

// requestPath returns the tokens and the texts that request i passes on its way through the tree.
func (r *Random) requestPath(i uint64) (tokens int, texts []Segment) {
	way := r.config.Tree.requestPath(r.config.Seed, r.config.Seed, i)
	for _, n := range way {
		tokens += n.tokens
	}
	return tokens, r.pathTexts(way)
}

// pathTexts are those of a way through the tree.
func (r *Random) pathTexts(way []node) (texts []Segment) {
	inside := r.config.Calibration.withOverhead(0)
	for _, n := range way {
		words := inside.wordsAtLeastOne(n.tokens)
		texts = append(texts, WordSegment(r.config.Nonce, streamNodeText, n.key, words))
	}
	return texts
}

// answerDraw returns the draw for the length of an answer. With a correlation it follows the
// prompt's draw by a Gaussian copula. The copula for rank correlation ρ has the parameter
// 2·sin(πρ/6) (Kruskal, Ordinal measures of association, JASA 53, 1958). So each length keeps its
// own distribution. Without a correlation it is a draw of its own.
func (c *RandomConfig) answerDraw(at uint64) uint64 {
	if c.Input.Pairs(c.Output) {
		return seed.At(c.Seed, streamInput, at)
	}
	u := seed.At(c.Seed, streamOutput, at)
	if c.Correlation == 0 {
		return u
	}
	r := 2 * math.Sin(math.Pi*c.Correlation/6)
	z := float64(r*normalQuantile(seed.At(c.Seed, streamInput, at))) + float64(math.Sqrt(max(0, 1-float64(r*r)))*normalQuantile(u))
	p := math.Erfc(-z/math.Sqrt2) / 2
	return uint64(min(max(p, 0), math.Nextafter(1, 0)) * (1 << 63) * 2)
}

// sharesPrefix tells whether request i begins with the common prefix.
func (r *Random) sharesPrefix(i uint64) bool {
	return (r.prefix.Words > 0 || r.config.Tree != nil) && seed.Float(seed.At(r.config.Seed, streamShare, i)) < r.config.PrefixShare
}
