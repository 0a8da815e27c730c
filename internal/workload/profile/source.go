package profile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"pitot/internal/say"
	"pitot/internal/stats"
	"pitot/internal/workload"
	"pitot/internal/workload/seed"
	"pitot/internal/workload/token"
)

// Streams of a seed, one for each thing that is drawn.
const (
	streamClass = 1 + iota
	streamLengths
	streamNode
	streamAgain
	streamTurns
	streamCarried
	streamPause
	streamOwn  // of the nonce: words of a request's own
	streamStem // words of a node
)

// Config says how a profile is asked.
type Config struct {
	// Seed draws lengths and what is shared, Nonce the words alone.
	Seed, Nonce uint64
	Calibration workload.Calibration
}

// Source asks what is like the traffic of a profile. It is pure in the seeds and the item,
// and safe for concurrent use.
type Source struct {
	config  Config
	classes []*drawn
	names   []string
	sums    []int // of requests by class
	stems   []stem
	uses    [25]uses  // by octave of the prompt
	again   [25]again // by octave of the prompt
	turns   *sessions
}

// stem holds what prompts begin with, from the root to a node.
type stem struct {
	segments []workload.Segment
	tokens   int
}

// uses are nodes by how many prompts of an octave end their common part with them.
type uses struct {
	nodes []int // stems, -1 for none
	sums  []int
}

// again describes how prompts of an octave begin like an earlier prompt.
type again struct {
	share   float64 // of them
	buckets *drawn  // tokens, requests back
}

type sessions struct {
	count               []int // sums
	turns               [][3]int
	first, added, later *drawn
	carried             float64
	pauses              []float64
}

// NewSource makes a workload of a profile: one with sessions where the profile has some.
func NewSource(p *Profile, c Config) (workload.Source, error) {
	s, err := newSource(p, c)
	switch {
	case err != nil:
		return nil, err
	case s.turns != nil:
		return Conversations{s}, nil
	}
	return s, nil
}

// Conversations is a Source whose items have turns that follow them.
type Conversations struct{ *Source }

func newSource(p *Profile, c Config) (*Source, error) {
	s := &Source{config: c}
	sum := 0
	for i := range p.Classes {
		if p.Classes[i].Lengths == nil {
			continue
		}
		sum += p.Classes[i].Requests
		s.classes, s.sums = append(s.classes, drawnLengths(p.Classes[i].Lengths)), append(s.sums, sum)
		s.names = append(s.names, p.Classes[i].Name)
	}
	if len(s.classes) == 0 {
		return nil, errNoLengths
	}
	if len(s.names) == 1 {
		s.names[0] = ""
	}
	s.takePrefixes(p.Prefixes)
	if t := p.Sessions; t != nil {
		s.turns = &sessions{turns: t.Turns, carried: t.Carried, pauses: t.Pauses, first: drawnLengths(t.First), added: drawnLengths(t.Added), later: drawnLengths(t.Later)}
		n := 0
		for _, x := range t.Turns {
			n += x[2]
			s.turns.count = append(s.turns.count, n)
		}
	}
	return s, nil
}

var errNoLengths = say.Errorf("the profile has no lengths: its log does not say how long prompts and answers were").WithHint("take its arrivals alone, with --arrival 'profile(FILE)', and give --input and --output")

func (s *Source) takePrefixes(x *Prefixes) {
	if x == nil {
		return
	}
	for i, n := range x.Nodes {
		var t stem
		if n[0] > 0 {
			up := s.stems[n[0]-1]
			t = stem{append([]workload.Segment(nil), up.segments...), up.tokens}
		}
		words := max(1, s.wordsForTokens(n[1]))
		t.segments = append(t.segments, workload.WordSegment(s.config.Nonce, streamStem, uint64(i), words))
		t.tokens += words
		s.stems = append(s.stems, t)
	}
	var total [25]int
	for _, n := range x.Prompts {
		total[n[0]] = n[1]
	}
	// The shortest first, behind those that are left of an octave, which have none.
	depth := func(u [3]int) int { return s.stems[u[1]-1].tokens }
	list := slices.Clone(x.Uses)
	stats.SortStable(list, func(a, b [3]int) int { return depth(a) - depth(b) })
	var used [25]int
	for _, u := range list {
		used[u[0]] += u[2]
	}
	for _, u := range list {
		o := &s.uses[u[0]]
		if len(o.sums) == 0 {
			o.nodes, o.sums = append(o.nodes, -1), append(o.sums, max(total[u[0]]-used[u[0]], 0))
		}
		o.nodes, o.sums = append(o.nodes, u[1]-1), append(o.sums, u[2]+o.sums[len(o.sums)-1])
	}
	octaves := [25][][5]int{}
	for _, a := range x.Again {
		octaves[a[0]] = append(octaves[a[0]], [5]int{a[1], a[2], a[3], a[4], a[5]})
	}
	for k, buckets := range octaves {
		if len(buckets) == 0 {
			continue
		}
		d := newDrawn(buckets)
		s.again[k] = again{min(float64(d.sums[len(d.sums)-1])/float64(max(total[k], 1)), 0.98), d}
	}
}

// wordsForTokens are so many tokens of text.
func (s *Source) wordsForTokens(tokens int) int {
	if p := s.config.Calibration.PerWord; p > 0 {
		return max(int(math.Round(float64(tokens)/p)), 0)
	}
	return tokens
}

// promptWords returns the number of words of a prompt of the given tokens, without the template.
func (s *Source) promptWords(tokens int) int {
	return max(s.wordsForTokens(tokens-int(math.Round(s.config.Calibration.Overhead))), 1)
}

// shape holds what is drawn for a request before its words.
type shape struct {
	class         int
	input, output int // tokens
	words         int // of the prompt
	stem          int // what it begins with, -1 for nothing
	back          int64
	depth         int // words that are those of the request so far back
}

// drawShape is the shape of an item that comes by itself.
func (s *Source) drawShape(item int64) shape {
	h := s.drawLengths(item)
	s.drawPrefix(&h, uint64(item))
	return h
}

// drawLengths is the same without what it has in common with others.
func (s *Source) drawLengths(item int64) (h shape) {
	at := uint64(item)
	h.class = drawIndex(s.sums, seed.At(s.config.Seed, streamClass, at))
	from := s.classes[h.class]
	if s.turns != nil {
		from = s.turns.first
	}
	h.input, h.output = from.drawPair(seed.At(s.config.Seed, streamLengths, at))
	h.words, h.stem = s.promptWords(h.input), -1
	return h
}

// drawPrefix draws what a prompt has in common with others.
func (s *Source) drawPrefix(h *shape, at uint64) {
	session := sessionOf(int64(at))
	octave := min(bits.Len(uint(h.input))-1, len(s.uses)-1)
	place := seed.At(s.config.Seed, streamNode, at)
	if o := &s.uses[octave]; len(o.sums) > 0 && o.sums[len(o.sums)-1] > 0 {
		h.stem = o.nodes[drawIndex(o.sums, place)] // a shorter prompt is the first part of it
	}
	// Those that begin as one before them did, further than many do, are those of which many
	// know the least: stems are in the order of their lengths.
	known := &s.again[octave]
	if known.buckets == nil || session == 0 || seed.Float(place) >= known.share {
		return
	}
	r := seed.Rand(seed.At(s.config.Seed, streamAgain, at))
	b := known.buckets.buckets[drawIndex(known.buckets.sums, r.Uint64())]
	words := min(s.wordsForTokens(drawLogEven(b[0], b[1], seed.Float(r.Uint64()))), h.words)
	least := 0
	if h.stem >= 0 {
		least = s.stems[h.stem].tokens
	}
	// Of the requests about as far back one that is as long; long prompts are few, and looked
	// for further back where there is none; else the longest that was seen.
	below := b[3]
	for k := range 96 {
		back := int64(drawLogEven(b[2], below, seed.Float(r.Uint64())))
		if back <= session {
			if there := min(s.drawLengths(session-back).words, words); there > max(h.depth, least) {
				h.depth, h.back = there, back
			}
		}
		if h.depth == words {
			return
		}
		if k%16 == 15 {
			below = min(3*below, 1<<40)
		}
	}
}

// mostEchoes bounds how often a prompt begins as one that begins as one.
const mostEchoes = 64

// promptBeginning is the first so many words of an item's prompt.
func (s *Source) promptBeginning(at int64, h shape, words, left int) []workload.Segment {
	if h.depth > 0 && left > 0 {
		before := at - h.back
		if words <= h.depth {
			return s.beginOf(before, words, left-1)
		}
		list := s.beginOf(before, h.depth, left-1)
		return s.appendOwnWords(list, at, words)
	}
	if h.stem >= 0 {
		return s.appendOwnWords(firstWords(s.stems[h.stem].segments, words), at, words)
	}
	return s.appendOwnWords(nil, at, words)
}

func (s *Source) beginOf(at int64, words, left int) []workload.Segment {
	h := s.drawShape(at)
	return s.promptBeginning(at, h, min(words, h.words), left)
}

// appendOwnWords adds words of an item's own.
func (s *Source) appendOwnWords(list []workload.Segment, at int64, words int) []workload.Segment {
	for _, x := range list {
		words -= x.Words
	}
	if words > 0 {
		list = append(list, workload.WordSegment(s.config.Nonce, streamOwn, uint64(at), words))
	}
	return list
}

// firstWords is the first so many words.
func firstWords(list []workload.Segment, words int) (out []workload.Segment) {
	for _, x := range list {
		if words <= 0 {
			break
		}
		x.Words = min(x.Words, words)
		words -= x.Words
		out = append(out, x)
	}
	return out
}

// At gives a request.
func (s *Source) At(at int64) (workload.Request, error) {
	if at < 0 {
		return workload.Request{}, fmt.Errorf("profile: no request %d", at)
	}
	session, turn := int64(workload.Unknown), int32(0)
	if s.turns != nil {
		session, turn = workload.SplitItem(at)
	}
	if turn > 0 {
		return s.laterTurn(at, session, turn)
	}
	h := s.drawShape(at)
	return workload.Request{
		ID: at, Class: s.names[h.class], Input: h.input, Output: h.output, Exact: true, Session: session,
		Messages: []workload.Message{workload.NewMessage("user", s.promptBeginning(at, h, h.words, mostEchoes)...)},
	}, nil
}

// laterTurn is a turn that follows others: with the history since its session began afresh, or
// without any.
func (s *Source) laterTurn(at, session int64, turn int32) (workload.Request, error) {
	first := turn
	for first > 0 && s.carriesHistory(workload.TurnItem(session, first)) {
		first--
	}
	r := workload.Request{ID: at, Exact: true, Session: session, Turn: turn}
	for t := first; t <= turn; t++ {
		item := workload.TurnItem(session, t)
		h := s.turnShape(item, t, t > first)
		own := s.appendOwnWords(nil, item, max(h.words, 1))
		if t == first {
			own = s.promptBeginning(item, h, h.words, mostEchoes)
			r.Class = s.names[h.class]
		}
		r.Messages = append(r.Messages, workload.NewMessage("user", own...))
		r.Input += h.input
		if r.Output = h.output; t < turn {
			r.Input += h.output
			words := max(s.wordsForTokens(h.output), 1)
			answer := workload.WordSegment(s.config.Nonce, streamOwn, uint64(item)|1<<63, words)
			answer.Served, answer.Item = true, item
			r.Messages = append(r.Messages, workload.NewMessage("assistant", answer))
		}
	}
	return r, nil
}

// turnShape is the shape of what a turn asks, without the history that it carries.
func (s *Source) turnShape(item int64, turn int32, carried bool) shape {
	if turn == 0 {
		return s.drawShape(item)
	}
	h := shape{stem: -1, class: s.drawShape(sessionOf(item)).class}
	from := s.turns.later
	if carried || from == nil {
		from = s.turns.added
	}
	h.input, h.output = from.drawPair(seed.At(s.config.Seed, streamLengths, uint64(item)))
	if carried {
		h.words = max(s.wordsForTokens(h.input), 1)
		return h
	}
	h.words = s.promptWords(h.input)
	s.drawPrefix(&h, uint64(item))
	return h
}

func sessionOf(at int64) int64 { s, _ := workload.SplitItem(at); return s }

func (s *Source) carriesHistory(item int64) bool {
	return seed.Float(seed.At(s.config.Seed, streamCarried, uint64(item))) < s.turns.carried
}

// turnCount returns the number of turns of a session.
func (s *Source) turnCount(session int64) int32 {
	r := seed.Rand(seed.At(s.config.Seed, streamTurns, uint64(session)))
	b := s.turns.turns[drawIndex(s.turns.count, r.Uint64())]
	return int32(drawLogEven(b[0], b[1], seed.Float(r.Uint64())))
}

// Follow is the next turn of a session.
func (s Conversations) Follow(item int64, answered bool) []workload.Next {
	if !answered {
		return nil
	}
	session, turn := workload.SplitItem(item)
	if turn+1 >= s.turnCount(session) {
		return nil
	}
	next := workload.TurnItem(session, turn+1)
	return []workload.Next{{Item: next, After: s.drawPause(next)}}
}

func (s *Source) drawPause(item int64) time.Duration {
	n := len(s.turns.pauses)
	if n == 0 {
		return 0
	}
	x := seed.Float(seed.At(s.config.Seed, streamPause, uint64(item)))*float64(n) - .5
	i := min(max(int(math.Floor(x)), 0), n-1)
	k := min(i+1, n-1)
	part := min(max(x-float64(i), 0), 1)
	return time.Duration((s.turns.pauses[i] + float64(part*(s.turns.pauses[k]-s.turns.pauses[i]))) * 1e9)
}

// Describe is the workload as run.json has it, rendered with v.
func Describe(p *Profile, path string, k workload.Calibration, v *token.Vocabulary) workload.Description {
	sum := sha256.New()
	if data, err := p.Encode(); err == nil {
		sum.Write(data)
	}
	d := workload.Description{Kind: "profile", File: &workload.FileDescription{
		Name: path, SHA256: hex.EncodeToString(sum.Sum(nil)), Format: "profile", Records: p.Requests, Requests: p.Requests, Skipped: map[string]int{},
	}}
	d.Vocabulary = workload.DescribeVocabulary(v)
	if k != (workload.Calibration{}) {
		d.Calibration = &workload.Calibration{Overhead: k.Overhead, PerWord: k.PerWord}
	}
	return d
}
