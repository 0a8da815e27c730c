package profile

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"math"
	"slices"
	"strconv"

	"pitot/internal/say"
	"pitot/internal/stats"
	"pitot/internal/workload"
	"pitot/internal/workload/arrival"
)

// Request is one request as a log has it. Its strings and bytes go no further than the
// [Builder], which keeps keyed hashes of them.
type Request struct {
	At, End       int64 // nanoseconds of any clock, Unknown where the log does not say
	Input, Output int   // tokens, Unknown likewise
	Model, Route  string
	Client        string // who asked, "" for unknown
	Session       string // conversation, "" for unknown
	Finish        string // as the log calls it
	Failed        bool
	TTFT          int64 // nanoseconds, Unknown
	// Prompt holds the text by which prompts share beginnings, or Blocks holds ids of blocks of
	// BlockTokens tokens.
	Prompt      []byte
	Blocks      []int64
	BlockTokens int
}

const unknown = workload.Unknown

// newRequest is a request of which the log says when it came, and nothing more yet.
func newRequest(at int64) *Request {
	return &Request{At: at, End: unknown, Input: unknown, Output: unknown, TTFT: unknown}
}

// Bounds of what is kept of a log: some 300 MB at the most.
const (
	mostRequests = 1 << 24 // times
	mostSessions = 1 << 20
	mostClasses  = 64
)

// MostClients bounds how many clients can be asked for.
const MostClients = 64

// Options holds the settings with which a profile is made.
type Options struct {
	Requests, Clients int // that have to say a thing for it to be written
}

// Builder makes a profile of requests, one after the other, in bounded memory.
type Builder struct {
	enough   enough
	mac      hash.Hash
	key      [32]byte
	count    int
	leftOut  int
	failed   int
	clients  bool // the log names them
	times    []int64
	starts   []int64 // of sessions
	classes  map[uint64]*classCount
	others   *classCount
	tree     *tree
	sessions map[uint64]*conversation
	turns    struct {
		first, added, later *grid
		every               *grid     // later turns, whether or not they carry the history
		read                bool      // whether they do was told by their texts
		pauses              []float64 // seconds, a sample
		seen                int
		carried, followed   int
		fromEnd             bool
	}
	draws uint64
}

type classCount struct {
	n       int
	clients []uint64
	lengths *grid
	finish  map[string]int
	ttft    latencies
	e2e     latencies
}

// conversation holds what is known of a conversation while it goes on.
type conversation struct {
	turns         int32
	input, output int32
	at, end       int64
	client        uint64
	chain         uint64 // of the last turn's whole blocks
}

// NewBuilder begins a profile with a key of its own, which nobody ever sees.
func NewBuilder(o Options) (*Builder, error) {
	b := &Builder{classes: map[uint64]*classCount{}, sessions: map[uint64]*conversation{}}
	b.enough = enough{max(o.Requests, 1), max(o.Clients, 1)}
	if _, err := rand.Read(b.key[:]); err != nil {
		return nil, err
	}
	b.mac = hmac.New(sha256.New, b.key[:])
	b.others = newClassCount()
	b.tree = newTree(b.enough)
	b.turns.first, b.turns.added, b.turns.later, b.turns.every = newGrid(), newGrid(), newGrid(), newGrid()
	b.turns.fromEnd = true
	return b, nil
}

func newClassCount() *classCount {
	return &classCount{
		lengths: newGrid(), finish: map[string]int{},
		ttft: latencies{counts: map[int]int{}}, e2e: latencies{counts: map[int]int{}},
	}
}

// keyedHash is the keyed hash of a name of some kind: HMAC-SHA256, cut to 64 bits.
func (b *Builder) keyedHash(kind byte, before uint64, data ...[]byte) uint64 {
	b.mac.Reset()
	var head [9]byte
	head[0] = kind
	binary.LittleEndian.PutUint64(head[1:], before)
	b.mac.Write(head[:])
	for _, d := range data {
		b.mac.Write(d)
	}
	var sum [sha256.Size]byte
	return binary.LittleEndian.Uint64(b.mac.Sum(sum[:0]))
}

// Kinds of what is hashed.
const (
	kindClient = 1 + iota
	kindSession
	kindClass
	kindText
	kindBlock
)

// LeaveOut counts lines that are no request.
func (b *Builder) LeaveOut(n int) { b.leftOut += n }

// Add takes a request in. It keeps none of its strings. ok is false where the log has more
// requests than are kept.
func (b *Builder) Add(q *Request) (ok bool) {
	if b.count >= mostRequests {
		b.leftOut++
		return false
	}
	b.count++
	client, session := uint64(0), uint64(0)
	if q.Session != "" {
		session = b.keyedHash(kindSession, 0, []byte(q.Session))
		client = session
	}
	if q.Client != "" {
		client = b.keyedHash(kindClient, 0, []byte(q.Client))
	}
	b.clients = b.clients || client != 0
	if q.At != unknown {
		b.times = append(b.times, q.At)
	}
	c := b.classOf(q)
	c.n++
	c.clients = appendNew(c.clients, []uint64{client}, b.enough.clients)
	finish := finishOf(q)
	c.finish[finish]++
	if q.TTFT > 0 {
		c.ttft.add(q.TTFT)
	}
	if q.At != unknown && q.End > q.At {
		c.e2e.add(q.End - q.At)
	}
	if finish == "error" && q.Output <= 0 {
		b.failed++
		return true
	}
	sized := q.Input >= 1 && q.Output >= 1
	if sized {
		c.lengths.add(q.Input, q.Output, client, b.enough.clients)
	}
	chain, tokens := b.blockChain(q)
	b.addTurn(q, session, client, chain, sized)
	if len(chain) > 0 && q.Input > 0 {
		b.tree.add(chain, tokens, q.Input, client, session)
	}
	return true
}

func (b *Builder) classOf(q *Request) *classCount {
	key := uint64(0)
	if q.Model != "" || q.Route != "" {
		key = b.keyedHash(kindClass, 0, []byte(q.Model), []byte{0}, []byte(q.Route))
	}
	c := b.classes[key]
	if c == nil {
		if len(b.classes) >= mostClasses {
			return b.others
		}
		c = newClassCount()
		b.classes[key] = c
	}
	return c
}

func finishOf(q *Request) string {
	if q.Failed {
		return "error"
	}
	switch q.Finish {
	case "":
		return ""
	case "stop", "eos", "end_turn", "stop_sequence", "completed", "eos_token", "success":
		return "stop"
	case "length", "max_tokens", "max_output_tokens", "incomplete":
		return "length"
	case "tool_calls", "tool_use", "function_call":
		return "tool_calls"
	case "content_filter", "refusal", "safety":
		return "content_filter"
	case "error", "abort", "failure", "failed", "cancelled":
		return "error"
	}
	return "other"
}

// textBlock is the number of bytes of text in one block: about 16 tokens of English.
const textBlock = 64

// mostBlocks bounds the blocks of a prompt that are looked at.
const mostBlocks = 8192

// blockChain is the keyed hashes of a prompt's whole blocks, each with all before it, and how many
// tokens one is.
func (b *Builder) blockChain(q *Request) (chain []uint64, tokens float64) {
	h := uint64(0)
	switch {
	case len(q.Blocks) > 0 && q.BlockTokens > 0:
		for i, id := range q.Blocks {
			if i == mostBlocks || (i+1)*q.BlockTokens > max(q.Input, 0) { // the last one is not whole
				break
			}
			var data [8]byte
			binary.LittleEndian.PutUint64(data[:], uint64(id))
			h = b.keyedHash(kindBlock, h, data[:])
			chain = append(chain, h)
		}
		return chain, float64(q.BlockTokens)
	case len(q.Prompt) >= textBlock:
		for i := 0; i+textBlock <= len(q.Prompt) && len(chain) < mostBlocks; i += textBlock {
			h = b.keyedHash(kindText, h, q.Prompt[i:i+textBlock])
			chain = append(chain, h)
		}
		return chain, float64(q.Input) / float64(len(q.Prompt)) * textBlock
	}
	return nil, 0
}

// addTurn takes a request as a turn of its session.
func (b *Builder) addTurn(q *Request, session, client uint64, chain []uint64, sized bool) {
	if session == 0 || !sized {
		return
	}
	s := b.sessions[session]
	if s == nil {
		if len(b.sessions) >= mostSessions {
			return
		}
		s = &conversation{client: client}
		b.sessions[session] = s
		b.turns.first.add(q.Input, q.Output, client, b.enough.clients)
		if q.At != unknown {
			b.starts = append(b.starts, q.At)
		}
	} else {
		b.turns.followed++
		// The history is there where the prompt before is, and its answer as well.
		carried := q.Input > int(s.input)+int(s.output)*3/4
		if carried && s.chain != 0 && len(chain) > 0 {
			carried, b.turns.read = slices.Contains(chain, s.chain), true
		}
		b.turns.every.add(q.Input, q.Output, client, b.enough.clients)
		if carried {
			b.turns.carried++
			b.turns.added.add(max(q.Input-int(s.input)-int(s.output), 1), q.Output, client, b.enough.clients)
		} else {
			b.turns.later.add(q.Input, q.Output, client, b.enough.clients)
		}
		if q.At != unknown && s.at != unknown {
			from := s.at
			if s.end != unknown && s.end >= s.at {
				from = s.end
			} else {
				b.turns.fromEnd = false
			}
			b.addPause(max(float64(q.At-from)/1e9, 0))
		}
	}
	s.turns++
	s.input, s.output, s.at, s.end, s.chain = int32(q.Input), int32(q.Output), q.At, q.End, 0
	if len(chain) > 0 {
		s.chain = chain[len(chain)-1]
	}
}

// mostPauses is the largest number of pauses that are kept, as a sample of all (Vitter, Random
// sampling with a reservoir, ACM TOMS 11, 1985).
const mostPauses = 1 << 18

func (b *Builder) addPause(seconds float64) {
	p := &b.turns
	if p.seen++; len(p.pauses) < mostPauses {
		p.pauses = append(p.pauses, seconds)
		return
	}
	b.draws++
	if i := b.keyedHash(0, b.draws) % uint64(p.seen); i < mostPauses {
		p.pauses[i] = seconds
	}
}

// BuildProfile ends the log: it makes the profile and forgets the key.
func (b *Builder) BuildProfile() (*Profile, error) {
	defer func() {
		clear(b.key[:])
		b.mac = nil
	}()
	if b.count < b.enough.requests {
		return nil, say.Errorf("%s in all: a profile shows only what at least %d have in common", say.Plural(b.count, "request"), b.enough.requests).WithHint("take a longer log, or a lower --k")
	}
	e := b.enough
	if !b.clients {
		e.clients = 0
	}
	p := &Profile{Schema: Schema, Requests: b.count, LeftOut: b.leftOut, Anonymity: Anonymity{e.requests, e.clients}}
	if err := b.takeArrival(p); err != nil {
		return nil, err
	}
	p.Classes = b.takeClasses(e)
	if slices.ContainsFunc(p.Classes, func(c Class) bool { return c.Lengths != nil }) {
		p.Prefixes = b.tree.prefixes(e)
		if err := b.takeSessions(p, e); err != nil {
			return nil, err
		}
	}
	p.Risks = riskNotice(p)
	if err := p.Check(); err != nil {
		return nil, err
	}
	return p, nil
}

// riskNotice are told in every profile.
func riskNotice(p *Profile) string {
	text := "It shows how much was requested, how the load changed over time, and the greatest lengths that " + strconv.Itoa(p.Anonymity.Requests) + " requests have"
	if p.Prefixes != nil {
		text += ", and how long common beginnings of prompts are and how often they were used"
	}
	if p.Anonymity.Clients == 0 {
		text += ". The log names no clients: what stands here may be of one alone"
	}
	return text + ". Who knows when a great event was, or how long a common system prompt is, may find it again."
}

func (b *Builder) takeArrival(p *Profile) error {
	if len(b.times) < 2 {
		return nil
	}
	slices.Sort(b.times)
	p.Seconds = float64(b.times[len(b.times)-1]-b.times[0]) / 1e9
	p.Seconds = math.Round(p.Seconds*1000) / 1000
	a, err := arrivalOf(b.times, b.enough.requests)
	p.Arrival = a
	return err
}

func (b *Builder) takeClasses(e enough) (out []Class) {
	type named struct {
		key uint64
		*classCount
	}
	var list []named
	for key, c := range b.classes {
		list = append(list, named{key, c})
	}
	// Those of equal number are told apart by nothing that says more.
	stats.SortStable(list, func(x, y named) int {
		return cmp.Or(cmp.Compare(y.n, x.n), cmp.Compare(x.key, y.key))
	})
	others := b.others
	var kept []*classCount
	for _, c := range list {
		if e.isMet(c.n, len(c.clients)) {
			kept = append(kept, c.classCount)
			continue
		}
		others.merge(c.classCount, e.clients)
	}
	if others.n > 0 && (len(kept) == 0 || e.isMet(others.n, len(others.clients))) {
		kept = append(kept, others)
	} else if others.n > 0 {
		kept[len(kept)-1].merge(others, e.clients)
		others = nil
	}
	for i, c := range kept {
		k := Class{Name: "class-" + strconv.Itoa(i+1), Requests: c.n, Lengths: c.lengths.lengthBuckets(e), Finish: map[string]int{}}
		if c == others && i > 0 {
			k.Name = "other"
		}
		rest := 0
		for name, n := range c.finish {
			switch {
			case name == "":
			case n >= e.requests:
				k.Finish[name] += n
			default:
				rest += n
			}
		}
		if rest >= e.requests {
			k.Finish["other"] += rest
		}
		if len(k.Finish) == 0 {
			k.Finish = nil
		}
		k.TTFT, k.E2E = c.ttft.times(e), c.e2e.times(e)
		out = append(out, k)
	}
	return out
}

func (c *classCount) merge(o *classCount, clients int) {
	c.n += o.n
	c.clients = appendNew(c.clients, o.clients, max(clients, 1))
	for name, n := range o.finish {
		c.finish[name] += n
	}
	c.lengths.merge(o.lengths, clients)
	c.ttft.merge(&o.ttft)
	c.e2e.merge(&o.e2e)
}

func (g *grid) merge(o *grid, clients int) {
	mergeCells(g.cells, o.cells, clients)
	mergeCells(g.first, o.first, clients)
	mergeCells(g.second, o.second, clients)
	g.n += o.n
}

func mergeCells[K comparable](into, from map[K]*cell, clients int) {
	for key, c := range from {
		addToCell(into, key, c.n, c.clients, clients)
	}
}

// latencies counts times by eighths of an octave.
type latencies struct {
	counts map[int]int
	n      int
}

func (l *latencies) add(ns int64) {
	l.counts[int(math.Floor(8*math.Log2(float64(ns))))]++
	l.n++
}

func (l *latencies) merge(o *latencies) {
	for k, n := range o.counts {
		l.counts[k] += n
	}
	l.n += o.n
}

// times are quantiles that enough are beyond.
func (l *latencies) times(e enough) *Times {
	if l.n < 2*e.requests {
		return nil
	}
	keys := slices.Sorted(maps.Keys(l.counts))
	at := func(p float64) float64 {
		if float64(l.n)*(1-p) < float64(e.requests) {
			return 0
		}
		sum := 0
		for _, k := range keys {
			if sum += l.counts[k]; float64(sum) >= p*float64(l.n) {
				return roundDigits(math.Exp2((float64(k)+.5)/8)/1e6, 2)
			}
		}
		return 0
	}
	return &Times{l.n, at(.5), at(.9), at(.99)}
}

// allCarried is the share of turns that must exceed history and answer to count as turns that carry
// them. It applies where only lengths are known.
const allCarried = 0.9

func (b *Builder) takeSessions(p *Profile, e enough) error {
	followed := b.turns.followed
	if len(b.sessions) < e.requests || followed < e.requests {
		return nil
	}
	s := &Sessions{Sessions: len(b.sessions), FromEnd: b.turns.fromEnd}
	counts := newGrid()
	for _, c := range b.sessions {
		counts.add(int(c.turns), 1, c.client, e.clients)
	}
	for _, r := range counts.mergeBuckets(e) {
		s.Turns = append(s.Turns, [3]int{r[0], r[1], r[4]})
	}
	s.Carried = math.Round(float64(b.turns.carried)/float64(followed)*1000) / 1000
	s.First, s.Added, s.Later = b.turns.first.lengthBuckets(e), b.turns.added.lengthBuckets(e), b.turns.later.lengthBuckets(e)
	if !b.turns.read && s.Carried < allCarried { // prompts are longer than those before by chance
		s.Carried, s.Added, s.Later = 0, nil, b.turns.every.lengthBuckets(e)
	}
	switch {
	case s.Added == nil && s.Later == nil || s.First == nil || s.Turns == nil:
		return nil
	case s.Added == nil:
		s.Carried = 0
	case s.Later == nil:
		s.Carried = 1
	}
	if n := len(b.turns.pauses); n >= 2*e.requests {
		for _, x := range arrival.StepMiddles(b.turns.pauses, min(64, n/e.requests)) {
			s.Pauses = append(s.Pauses, min(roundDigits(x, 2), 366*86400))
		}
	}
	slices.Sort(b.starts)
	if len(b.starts) > 1 {
		a, err := arrivalOf(b.starts, e.requests)
		if err != nil {
			return err
		}
		s.Arrival = a
	}
	p.Sessions = s
	return nil
}
