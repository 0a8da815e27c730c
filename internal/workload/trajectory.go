package workload

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitot/internal/say"
	"pitot/internal/workload/plain"
	"pitot/internal/workload/seed"
	"pitot/internal/workload/token"
)

// Trajectories are recorded sessions of coding agents, as Weka published them (AgentX): a
// JSON object a session, in a file of its own, in a directory or in a tar archive of them.
//
//	{"id":"trace_0003","block_size":64,"requests":[
//	  {"t":0.0,"type":"n","in":16564,"out":244,"hash_ids":[1,2],"think_time":0.0,"api_time":7.27},
//	  {"t":134.2,"type":"subagent","agent_id":"agent_001","duration_ms":91243,"requests":[…]}]}
//
// Times are in seconds since the session or the sub-agent began. The ids name blocks of
// block_size tokens from the beginning of a prompt, within the session; what remains of a
// prompt has none.
type Trajectories struct {
	path string
	list []trajectory
	// Left are the sessions that could not be read, by reason, with the file of the first.
	Left map[string]LeftOut
}

// LeftOut counts what was left out for one reason.
type LeftOut struct {
	N     int
	First string
}

// trajectory is one session.
type trajectory struct {
	block int
	steps []step
	mains []int32 // steps of the agent itself, in order
}

// step is one request.
type step struct {
	input, output int32
	ids           []int32
	next          []int32       // steps that its end is waited for by
	join          int32         // how many steps it waits for
	after         time.Duration // pause before it
	before        int32         // the step of the same agent before it, -1 for its first
}

const (
	// mostSteps bounds what is read: of some 400 blocks a request this is 16 GB of prompts.
	mostSteps   = 2_000_000
	mostSession = 256 << 20 // bytes of one
	largestStep = MaxLength
)

// wekaSession and wekaStep are what is read of the files.
type wekaSession struct {
	Block    int        `json:"block_size"`
	Requests []wekaStep `json:"requests"`
}

type wekaStep struct {
	T        float64    `json:"t"`
	Type     string     `json:"type"`
	In       *int64     `json:"in"`
	Out      *int64     `json:"out"`
	IDs      []int64    `json:"hash_ids"`
	Think    *float64   `json:"think_time"`
	Took     float64    `json:"api_time"`
	Duration float64    `json:"duration_ms"`
	Requests []wekaStep `json:"requests"`
}

func isTrajectory(h *Head) bool {
	return h.HasAnyKey("requests") && h.HasAnyKey("block_size", "hash_id_scope") || isTar(h.Text) ||
		bytes.Contains(h.Text[:min(len(h.Text), 4096)], []byte(`"hash_id_scope"`)) && strings.HasPrefix(h.Line(), "{")
}

// isTar says that a file is an archive: POSIX has the word at this place.
func isTar(head []byte) bool { return len(head) > 262 && string(head[257:262]) == "ustar" }

// OpenTrajectories reads the sessions of a file, a directory or an archive, in the order
// of their names. Sessions that cannot be read are counted; where there is none left it is
// an error.
func OpenTrajectories(path string) (*Trajectories, error) {
	t := &Trajectories{path: path, Left: map[string]LeftOut{}}
	fail := func(err error) (*Trajectories, error) { return nil, &FileError{Path: path, Trace: true, Err: err} }
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open workload: %w", err)
	}
	names := []string{path}
	if info.IsDir() {
		if names, err = filepath.Glob(filepath.Join(path, "*.json")); err != nil || len(names) == 0 {
			return fail(errors.New("the directory has no .json files"))
		}
		slices.Sort(names)
	}
	for _, name := range names {
		f, err := plain.Open(name)
		if err != nil {
			return fail(err)
		}
		err = t.readFile(filepath.Base(name), f.Text())
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return fail(err)
		}
	}
	if len(t.list) == 0 {
		return fail(errors.New("no session in it" + t.leftText()))
	}
	return t, nil
}

func (t *Trajectories) readFile(name string, r io.Reader) error {
	head := make([]byte, 512)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return plain.CutError(err)
	}
	r = io.MultiReader(bytes.NewReader(head[:n]), r)
	if !isTar(head[:n]) {
		return t.read(name, r)
	}
	files := tar.NewReader(r)
	for {
		h, err := files.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("archive: %w", plain.CutError(err))
		}
		if h.Typeflag == tar.TypeReg && strings.HasSuffix(h.Name, ".json") {
			if err := t.read(h.Name, files); err != nil {
				return err
			}
		}
	}
}

// read takes the sessions of one file.
func (t *Trajectories) read(name string, r io.Reader) error {
	d := json.NewDecoder(io.LimitReader(r, mostSession))
	for {
		var s wekaSession
		err := d.Decode(&s)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			t.leaveOut("not JSON as it should be", name)
			return nil
		}
		one, why := s.toTrajectory()
		if why != "" {
			t.leaveOut(why, name)
			continue
		}
		if t.stepCount()+len(one.steps) > mostSteps {
			return fmt.Errorf("over %d requests", mostSteps)
		}
		t.list = append(t.list, one)
	}
}

func (t *Trajectories) leaveOut(why, name string) {
	l := t.Left[why]
	if l.N++; l.N == 1 {
		l.First = name
	}
	t.Left[why] = l
}

// leftText says what was left out, "" for nothing.
func (t *Trajectories) leftText() (text string) {
	for _, why := range slices.Sorted(maps.Keys(t.Left)) {
		text += fmt.Sprintf("; %s left out: %s (%s)", say.Plural(t.Left[why].N, "session"), why, t.Left[why].First)
	}
	return text
}

func (t *Trajectories) stepCount() (n int) {
	for i := range t.list {
		n += len(t.list[i].steps)
	}
	return n
}

// toTrajectory is the session as it is asked again, or why it cannot be.
func (s *wekaSession) toTrajectory() (one trajectory, why string) {
	if one.block = s.Block; one.block < 1 || one.block > 1<<20 {
		return one, "no block_size"
	}
	if _, why = one.addChain(s.Requests, -1, 0, true); why == "" && len(one.mains) == 0 {
		why = "no requests"
	}
	return one, why
}

// addChain takes the requests of one agent: each waits for the one before it and for the
// sub-agents that were begun meanwhile. from is the step that the first waits for, -1 for
// none. The last steps, which whoever comes next waits for, are its ends.
func (one *trajectory) addChain(list []wekaStep, from int32, delay time.Duration, main bool) (ends []int32, why string) {
	last := from
	answered := 0. // when the step before had ended, in the record
	ended := 0.    // and all that is waited for
	if from >= 0 {
		ends = []int32{from}
	}
	own := int32(-1)
	for i := range list {
		r := &list[i]
		if !(r.T >= 0 && r.T < 1e9) {
			return nil, "a time that is none"
		}
		if r.Type == "subagent" {
			if last < 0 || len(r.Requests) == 0 { // nobody began it, or it asked nothing
				continue
			}
			after := secondsToDuration(min(max(r.T-answered, 0), LongestPause.Seconds()))
			children, why := one.addChain(r.Requests, last, after, false)
			if why != "" {
				return nil, why
			}
			// The agent waits for them all, and no longer for what it asked before them.
			ends = slices.DeleteFunc(ends, func(e int32) bool { return e == last })
			ends = append(ends, children...)
			ended = max(ended, r.T+max(r.Duration, 0)/1e3)
			continue
		}
		if r.In == nil || *r.In < 1 || *r.In > largestStep || r.Out != nil && (*r.Out < 0 || *r.Out > largestStep) {
			return nil, "a request of no length"
		}
		if len(one.steps) >= mostSteps {
			return nil, "too many requests"
		}
		q := step{input: int32(*r.In), output: 1, before: own}
		if r.Out != nil {
			q.output = int32(max(*r.Out, 1))
		}
		for _, id := range r.IDs[:min(len(r.IDs), int(*r.In)/one.block+1)] {
			if id < 0 || id > 1<<31-1 {
				return nil, "a block id that is none"
			}
			q.ids = append(q.ids, int32(id))
		}
		switch {
		case own < 0:
			q.after = delay
		case len(ends) > 0 && ends[0] != last: // behind sub-agents the record's own pause has them in it
			q.after = secondsToDuration(max(r.T-ended, 0))
		case r.Think != nil:
			q.after = secondsToDuration(max(*r.Think, 0))
		}
		at := int32(len(one.steps))
		q.join = int32(len(ends))
		one.steps = append(one.steps, q)
		for _, e := range ends {
			one.steps[e].next = append(one.steps[e].next, at)
		}
		if main {
			one.mains = append(one.mains, at)
		}
		last, own, ends = at, at, []int32{at}
		answered = r.T + min(max(r.Took, 0), 1e9)
		ended = answered
	}
	if own < 0 && from >= 0 { // it asked nothing: its parent goes on from where it was
		return []int32{from}, ""
	}
	return ends, ""
}

func secondsToDuration(s float64) time.Duration {
	return time.Duration(min(s, LongestPause.Seconds()) * 1e9)
}

// StartShare is the point of a recorded session at which the load begins with it. It is a share of
// the agent's own requests between two bounds, drawn for each session.
type StartShare struct{ Least, Most float64 }

// TrajectoryConfig says how recorded sessions are asked.
type TrajectoryConfig struct {
	Start       StartShare
	MaxThink    time.Duration // longest pause, 0 for as they were
	Seed, Nonce uint64        // as in [RandomConfig]
	Calibration Calibration
}

// Agents asks recorded sessions again: the requests in their order, each after the ends of
// those it waited for and the recorded pause, with prompts of generated words that share
// what the ids of their blocks say. Which session comes next is drawn, all of them before
// any comes again; each time with other words. It is safe for concurrent use.
type Agents struct {
	t      *Trajectories
	config TrajectoryConfig
}

// NewAgents makes the workload.
func (t *Trajectories) NewAgents(c TrajectoryConfig) *Agents { return &Agents{t, c} }

const (
	streamAgent = 0x6167_656e_0000_0000 + iota
	streamAgentStart
	streamAgentBlock
	streamAgentOwn
	streamAgentPass
)

// sessionAt is the recorded session that session s of the load is, and the step it begins with.
func (a *Agents) sessionAt(s int64) (one *trajectory, first int32) {
	n := uint64(len(a.t.list))
	pass, i := uint64(s)/n, uint64(s)%n
	one = &a.t.list[permuteIndex(i, n, seed.At(a.config.Seed, streamAgent, pass))]
	x := seed.Float(seed.At(a.config.Seed, streamAgentStart, uint64(s)))
	return one, one.firstAt(a.config.Start.Least + float64(x*(a.config.Start.Most-a.config.Start.Least)))
}

// firstAt is the step at a share of the agent's own requests.
func (one *trajectory) firstAt(share float64) int32 {
	return one.mains[min(int(share*float64(len(one.mains))), len(one.mains)-1)]
}

// permuteIndex is where i goes in a permutation of n that a key draws: a Feistel network over
// the next power of four, walked until it is within n again (Black and Rogaway, "Ciphers
// with arbitrary finite domains", CT-RSA 2002).
func permuteIndex(i, n, key uint64) uint64 {
	half := uint64(1)
	for uint64(1)<<(2*half) < n {
		half++
	}
	mask := uint64(1)<<half - 1
	for {
		l, r := i>>half, i&mask
		for round := range uint64(4) {
			l, r = r, l^seed.At(key, round, r)&mask
		}
		if i = l<<half | r; i < n {
			return i
		}
	}
}

// At implements [Source]. The first item of a session is item s, whichever step it is.
func (a *Agents) At(item int64) (Request, error) {
	if item < 0 {
		return Request{}, fmt.Errorf("trace %s: no request %d", a.t.path, item)
	}
	s, turn := SplitItem(item)
	one, first := a.sessionAt(s)
	at := first + turn
	if int(at) >= len(one.steps) {
		return Request{}, fmt.Errorf("trace %s: session %d has no request %d", a.t.path, s, turn)
	}
	q, c := &one.steps[at], a.config.Calibration
	words := c.wordsAtLeastOne(int(q.input))
	nonce := seed.At(a.config.Nonce, streamAgentBlock, uint64(s))
	segments := make([]Segment, 0, len(q.ids)+1)
	left, size := words, c.withOverhead(0).wordsAtLeastOne(one.block)
	for _, id := range q.ids {
		if left <= 0 {
			break
		}
		n := min(size, left)
		segments = append(segments, WordSegment(nonce, 0, uint64(id), n))
		left -= n
	}
	if left > 0 {
		segments = append(segments, WordSegment(a.config.Nonce, streamAgentOwn, uint64(item), left))
	}
	r := Request{
		ID: item, Session: s, Turn: turn, Turns: int32(one.remainingRequests(first)), Exact: true,
		Messages: []Message{NewMessage("user", segments...)}, Input: c.tokensForWords(words), Output: int(q.output),
	}
	if at != first && q.before >= 0 {
		common, before := 0, one.steps[q.before].ids
		for common < min(len(q.ids), len(before)) && q.ids[common] == before[common] {
			common++
		}
		r.History = min(common*one.block, r.Input)
	}
	return r, nil
}

// remainingRequests returns the number of requests from one of the agent's own steps on. Sub-agents
// come after the step that began them.
func (one *trajectory) remainingRequests(first int32) int { return len(one.steps) - int(first) }

// Follow implements [Sessions].
func (a *Agents) Follow(item int64, answered bool) []Next {
	if !answered {
		return nil
	}
	s, turn := SplitItem(item)
	one, first := a.sessionAt(s)
	at := first + turn
	if int(at) >= len(one.steps) {
		return nil
	}
	var out []Next
	for _, n := range one.steps[at].next {
		q := &one.steps[n]
		after := q.after
		if a.config.MaxThink > 0 {
			after = min(after, a.config.MaxThink)
		}
		out = append(out, Next{Item: TurnItem(s, n-first), After: after, Join: int(q.join)})
	}
	return out
}

// Shape holds summary figures of recorded sessions.
type Shape struct {
	Sessions int
	Turns    float64       // requests of a session from where it begins, mean
	Cluster  float64       // requests of the session that a request is of, mean
	Think    time.Duration // mean pause between them
	Longest  int           // tokens of prompt and answer
}

// Shape is that of the sessions as they are asked.
func (t *Trajectories) Shape(c TrajectoryConfig) Shape {
	x := Shape{Sessions: len(t.list)}
	var requests, squares, pauses, sum float64
	const draws = 16
	for i := range t.list {
		one := &t.list[i]
		for k := range draws {
			share := c.Start.Least + (float64(k)+.5)/draws*(c.Start.Most-c.Start.Least)
			first := one.firstAt(share)
			left := float64(one.remainingRequests(first))
			requests, squares = requests+left/draws, squares+left*left/draws
		}
		for k := range one.steps {
			q := &one.steps[k]
			x.Longest = max(x.Longest, int(q.input)+int(q.output))
			if q.join > 0 {
				p := q.after
				if c.MaxThink > 0 {
					p = min(p, c.MaxThink)
				}
				sum += p.Seconds()
				pauses++
			}
		}
	}
	x.Turns, x.Cluster = requests/float64(len(t.list)), squares/max(requests, 1)
	if pauses > 0 {
		x.Think = time.Duration(sum / pauses * 1e9)
	}
	return x
}

// Describe describes the workload when it is rendered with v.
func (a *Agents) Describe(v *token.Vocabulary) Description {
	d := Description{
		Kind: "sessions", Vocabulary: DescribeVocabulary(v), Calibration: a.config.Calibration.ifKnown(),
		File: &FileDescription{Name: a.t.path, Format: "Weka's sessions", Records: len(a.t.list), Requests: a.t.stepCount(), Skipped: map[string]int{}},
	}
	for why, l := range a.t.Left {
		d.File.Skipped[why] = l.N
		d.File.Records += l.N
	}
	return d
}
