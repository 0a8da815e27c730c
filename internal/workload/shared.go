package workload

import (
	"fmt"
	"math"
)

// templateTail is the number of tokens of a chat template after the prompt. They end the user's
// turn and begin the assistant's, and number 4 or 5 in the usual templates.
const templateTail = 5

// HeadTokens returns the number of tokens of a chat template before the first word, as far as that
// is known. All prompts share them.
func (c Calibration) HeadTokens() int { return max(int(math.Round(c.Overhead))-templateTail, 0) }

// tokensPerWord is 1 where no calibration is known.
func (c Calibration) tokensPerWord() float64 {
	if !c.isKnown() {
		return 1
	}
	return c.PerWord
}

// Reuse is a share of the prompts' tokens that all requests begin with, within the lengths
// that the input says. A prefix cache has whole blocks: each request shares as many as make
// the share come out right on average, and never its last token, which has to be computed.
type Reuse struct {
	Share float64 // of all prompt tokens, 0 for none
	Block int     // tokens of the server's blocks
}

const streamReuse = 0x7265_7573_6500_0000 // how a request's blocks are rounded

// sharedWords returns the number of words of a prompt that all prompts share.
func (u Reuse) sharedWords(c Calibration, words int, draw float64) int {
	perWord := c.tokensPerWord()
	own := 1.
	head, block := float64(c.HeadTokens()), float64(u.Block)
	blocks := math.Floor(u.Share*float64(c.tokensForWords(words))/block + draw)
	blocks = min(blocks, math.Floor((head+(float64(words)-own)*perWord)/block))
	if blocks < 1 {
		return 0
	}
	// Half a block more, so that a head of another length than is thought takes no block away.
	return int(min(max(math.Ceil((blocks*block+math.Floor(block/2)-head)/perWord), 0), float64(words)-own))
}

// adjustForLengths is the share to aim at so that the share comes out right over prompts of such
// lengths, where the short ones have no whole block to share; as far as that can be.
func (u Reuse) adjustForLengths(c Calibration, input Lengths) Reuse {
	const ranks = 1000
	var words [ranks]int
	tokens := 0.
	for k := range words {
		words[k] = c.wordsAtLeastOne(input.Quantile((float64(k) + .5) / ranks))
		tokens += float64(c.tokensForWords(words[k]))
	}
	perWord := c.tokensPerWord()
	got := func(share float64) (sum float64) {
		for _, w := range words {
			x := share * float64(c.tokensForWords(w)) / float64(u.Block)
			most := max(math.Floor((float64(c.HeadTokens())+float64(w-1)*perWord)/float64(u.Block)), 0)
			low := math.Floor(x)
			least := math.Floor(float64(c.HeadTokens()) / float64(u.Block)) // which all have in common anyway
			sum += max(least, min(low, most))*(low+1-x) + max(least, min(low+1, most))*(x-low)
		}
		return sum * float64(u.Block) / tokens
	}
	if math.Abs(got(u.Share)-u.Share) < 1e-9 {
		return u
	}
	low, high := 0., 16.
	for range 40 {
		if mid := (low + high) / 2; got(mid) < u.Share {
			low = mid
		} else {
			high = mid
		}
	}
	if got(high) < u.Share-1e-6 {
		high = 16 // as much as there are blocks
	}
	u.Share = high
	return u
}

// MostShared is the largest number of prefixes that are sent before a load.
const MostShared = 4096

// SharedRequests gives requests that ask once for all that requests have in common, the least
// popular first; none where nothing is. No prompt has more than so many tokens.
func (r *Random) SharedRequests(most int) (list []Request, err error) {
	c := &r.config
	add := func(texts []Segment) {
		k := int64(len(list))
		own := WordSegment(c.Nonce, streamContent, math.MaxUint64-uint64(k), 1)
		words := own.Words
		for _, s := range texts {
			words += s.Words
		}
		list = append(list, Request{
			ID: math.MaxInt32 - k, Messages: []Message{NewMessage("user", append(texts, own)...)},
			Input: c.Calibration.tokensForWords(words), Output: 1, Exact: true, Session: Unknown,
		})
	}
	switch {
	case c.Cold:
	case c.Reuse.Share > 0:
		const rare = 1e-5 // of the prompts are longer
		longest := min(c.Input.Quantile(1-rare)+c.Reuse.Block, most-templateTail)
		text := r.prefix
		text.Words = max(c.Reuse.sharedWords(c.Calibration, max(c.Calibration.wordsForTokens(longest), 2), 1), 1)
		add([]Segment{text})
	case c.PrefixShare == 0:
	case c.Prefix > 0:
		add([]Segment{r.prefix})
	case c.Tree != nil:
		if n := c.Tree.LeafCount(); n > MostShared {
			return nil, fmt.Errorf("%d prefixes are too many to ask for each before the load, want at most %d", n, MostShared)
		}
		for _, way := range c.Tree.allPaths(c.Seed) {
			add(r.pathTexts(way))
		}
	}
	return list, nil
}
