// Package profile is what a log tells of its traffic without telling what anybody asked: how
// long prompts and answers were, when requests came, what they shared, how sessions went on.
// A profile has no text, no name, no id and no time of day in it, and nothing that fewer than
// so many requests say; it is small enough to be handed on, and asked as a workload.
package profile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"pitot/internal/say"
	"pitot/internal/say/unreadable"
	"pitot/internal/workload"
	"pitot/internal/workload/arrival"
	"pitot/internal/workload/plain"
)

// Schema is the version of what is written.
const Schema = "pitot.workload-profile/v1"

// MostBytes bounds a profile's file.
const MostBytes = 1 << 20

// Profile is version 1 of the file. Numbers and the few words that [Profile.Check] knows are
// all that it can hold.
type Profile struct {
	Schema    string    `yaml:"schema"`
	Risks     string    `yaml:"risks"` // what can be told from it all the same
	Requests  int       `yaml:"requests"`
	LeftOut   int       `yaml:"left_out,omitempty"` // lines of the log that were no request
	Seconds   float64   `yaml:"seconds"`            // from the first request to the last
	Anonymity Anonymity `yaml:"anonymity"`
	Arrival   *Arrival  `yaml:"arrival,omitempty"`
	Classes   []Class   `yaml:"classes"`
	Prefixes  *Prefixes `yaml:"prefixes,omitempty"`
	Sessions  *Sessions `yaml:"sessions,omitempty"`
}

// Anonymity holds the smallest numbers of requests and clients that must share a fact before a
// profile states it.
type Anonymity struct {
	Requests int `yaml:"requests"`
	// Clients is the smallest number of different clients among them, 0 where the log names none.
	Clients int `yaml:"clients"`
}

// Arrival is when requests came.
type Arrival struct {
	Rate       float64    `yaml:"rate"` // requests per second
	CV         float64    `yaml:"cv"`   // coefficient of variation of the gaps
	Dispersion [3]float64 `yaml:"dispersion,flow"`
	Rounded    float64    `yaml:"rounded,omitempty"` // seconds that the log's times are rounded to; they are spread over it
	Distance   float64    `yaml:"distance"`          // Kolmogorov and Smirnov's, of the law's gaps from the log's
	// Law is one of --arrival that the times follow, "" where none comes near enough; then
	// Cascade is how they came, and Steady the nearest law without a rate that varies.
	Law     string           `yaml:"law,omitempty"`
	Steady  string           `yaml:"steady,omitempty"`
	Cascade *arrival.Cascade `yaml:"cascade,omitempty"`
}

// Class is the traffic of one model and route.
type Class struct {
	Name     string         `yaml:"name"` // class-1 is the one with most requests
	Requests int            `yaml:"requests"`
	Lengths  *Lengths       `yaml:"lengths,omitempty"`
	Finish   map[string]int `yaml:"finish,omitempty"` // why answers ended: requests
	TTFT     *Times         `yaml:"ttft_ms,omitempty"`
	E2E      *Times         `yaml:"e2e_ms,omitempty"`
}

// Times are quantiles of a latency, in ms; 0 where too few were longer.
type Times struct {
	Requests int     `yaml:"requests"`
	P50      float64 `yaml:"p50"`
	P90      float64 `yaml:"p90,omitempty"`
	P99      float64 `yaml:"p99,omitempty"`
}

// Lengths are prompts' and answers', together, in tokens.
type Lengths struct {
	// Buckets are a from, b below, c from, d below, and how many requests had a prompt of a
	// to b and an answer of c to d.
	Buckets [][5]int `yaml:"buckets,flow"`
	// Prompts and Answers are single lengths that many had, and their share of the quarter
	// octave that they are in.
	Prompts []Spike `yaml:"prompts,flow,omitempty"`
	Answers []Spike `yaml:"answers,flow,omitempty"`
}

// Spike is a length that many requests have.
type Spike struct {
	Tokens int     `yaml:"tokens"`
	Share  float64 `yaml:"share"`
}

// Prefixes describes what prompts had in common.
type Prefixes struct {
	// Nodes are the stretches that enough prompts began with, as a tree: the number of the
	// one before (0 for none; the first is number 1) and how many tokens it is long.
	Nodes [][2]int `yaml:"nodes,flow,omitempty"`
	// Uses say of prompts by their length, as its octave: so many ended their common part
	// with a node: octave, node, requests.
	Uses [][3]int `yaml:"uses,flow,omitempty"`
	// Again counts prompts that began like an earlier prompt beyond those nodes. Each entry holds
	// the octave of the prompt, tokens from, below, requests back from, below, and the number of
	// requests.
	Again [][6]int `yaml:"again,flow,omitempty"`
	// Requests are those whose beginnings are known, Prompts how many of them are of which
	// octave.
	Requests int      `yaml:"requests"`
	Prompts  [][2]int `yaml:"prompts,flow"`
}

// Sessions describes the course of conversations.
type Sessions struct {
	Sessions int `yaml:"sessions"`
	// Turns are turns from, below, and how many sessions had so many.
	Turns [][3]int `yaml:"turns,flow"`
	// Carried is the share of the later turns whose prompt has the history in front.
	Carried float64 `yaml:"carried"`
	// First are lengths of first turns, Added what a turn brings beside its history, Later
	// those of later turns without it.
	First *Lengths `yaml:"first,omitempty"`
	Added *Lengths `yaml:"added,omitempty"`
	Later *Lengths `yaml:"later,omitempty"`
	// Pauses are quantiles of the seconds between turns, of the middles of even steps;
	// FromEnd says that they are from the end of the answer before, else from its request.
	Pauses  []float64 `yaml:"pauses,flow,omitempty"`
	FromEnd bool      `yaml:"from_end"`
	Arrival *Arrival  `yaml:"arrival,omitempty"` // of sessions
}

// Is tells a profile by how it begins.
func Is(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	return schemaLine.Match(head[:min(len(head), 4096)])
}

var schemaLine = regexp.MustCompile(`(?m)^\s*["']?schema["']?\s*:\s*["']?pitot\.workload-profile/`)

// IsFile tells whether there is a profile under that name.
func IsFile(name string) bool {
	kind, err := workload.Identify(name)
	return err == nil && kind == workload.Profiled
}

// Open reads a profile.
func Open(name string) (*Profile, error) {
	f, err := plain.OpenStream(name)
	if err != nil {
		return nil, unreadable.FileError("--workload", name, err, "pitot workload profile LOG -o FILE makes a profile")
	}
	defer f.Close()
	p, err := Read(f)
	if err != nil {
		return nil, say.Errorf("%s: %v", name, err).WithHint(say.HintOf(err))
	}
	return p, nil
}

// Read decodes strictly what Write wrote.
func Read(r io.Reader) (*Profile, error) {
	const hint = "pitot workload profile LOG -o FILE makes one"
	data, err := io.ReadAll(io.LimitReader(r, MostBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read profile: %w", err)
	case len(data) > MostBytes:
		return nil, say.Errorf("it is longer than a profile can be, 1 MiB").WithHint(hint)
	case !Is(data):
		return nil, say.Errorf("it is no profile: the key schema is missing").WithHint(hint)
	}
	p := &Profile{}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(p); err != nil {
		if types, ok := errors.AsType[*yaml.TypeError](err); ok && len(types.Errors) > 0 {
			return nil, say.Errorf("%s", types.Errors[0]).WithHint(hint)
		}
		return nil, say.Errorf("%v", err).WithHint(hint)
	}
	if p.Schema != Schema {
		return nil, say.Errorf("its schema is %.60q, and this program reads %s", p.Schema, Schema).WithHint("take the pitot that wrote it, or a newer one")
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	return p, nil
}

// Encode is the profile as it is written.
func (p *Profile) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(p); err != nil {
		return nil, fmt.Errorf("encode profile: %w", err)
	}
	if b.Len() > MostBytes {
		return nil, fmt.Errorf("encode profile: %d bytes are more than %d", b.Len(), MostBytes)
	}
	return b.Bytes(), nil
}

var className = regexp.MustCompile(`^(class-[1-9][0-9]{0,3}|other)$`)

// finishes are why an answer can have ended.
var finishes = []string{"stop", "length", "tool_calls", "content_filter", "error", "other"}

// Check says what makes no workload of it.
func (p *Profile) Check() error {
	fail := func(what string) error {
		return say.Errorf("%s makes no sense", what).WithHint("pitot workload profile LOG -o FILE makes one that does")
	}
	if p.Requests < 1 || p.Anonymity.Requests < 1 || p.Anonymity.Clients < 0 || len(p.Classes) == 0 || !(p.Seconds >= 0) {
		return fail("what it says of the log")
	}
	for i := range p.Classes {
		c := &p.Classes[i]
		if !className.MatchString(c.Name) || c.Requests < 1 {
			return fail("class " + say.Exact(float64(i+1)))
		}
		if what := c.Lengths.check(); what != "" {
			return fail(c.Name + ": " + what)
		}
		for name := range c.Finish {
			if !slices.Contains(finishes, name) {
				return fail(c.Name + ": finish")
			}
		}
	}
	if err := p.Arrival.check(); err != nil {
		return err
	}
	if what := p.Prefixes.check(); what != "" {
		return fail("prefixes: " + what)
	}
	if s := p.Sessions; s != nil {
		if what := s.check(); what != "" {
			return fail("sessions: " + what)
		}
		return s.Arrival.check()
	}
	return nil
}

func (l *Lengths) check() string {
	switch {
	case l == nil:
		return ""
	case len(l.Buckets) == 0:
		return "no lengths"
	}
	if !bucketsFit(l.Buckets, workload.MaxLength) {
		return "a bucket of lengths"
	}
	for _, list := range [][]Spike{l.Prompts, l.Answers} {
		for i, s := range list {
			if s.Tokens < 1 || s.Tokens > workload.MaxLength || !(s.Share > 0 && s.Share <= 1) || i > 0 && s.Tokens <= list[i-1].Tokens {
				return "a single length"
			}
		}
	}
	return ""
}

// bucketsFit says whether each holds something.
func bucketsFit(list [][5]int, most int) bool {
	total := 0
	for _, b := range list {
		if b[0] < 1 || b[1] <= b[0] || b[1] > most+1 || b[2] < 0 || b[3] <= b[2] || b[3] > most+1 || b[4] < 1 || b[4] > math.MaxInt32 {
			return false
		}
		total += b[4]
	}
	return total > 0
}

// most nodes and entries that are read.
const mostEntries = 1 << 16

func (x *Prefixes) check() string {
	if x == nil {
		return ""
	}
	if x.Requests < 1 || len(x.Nodes) > mostEntries || len(x.Uses) > mostEntries || len(x.Again) > mostEntries {
		return "their number"
	}
	for _, n := range x.Prompts {
		if n[0] < 0 || n[0] > 24 || n[1] < 1 || n[1] > x.Requests {
			return "the prompts of an octave"
		}
	}
	for i, n := range x.Nodes {
		if n[0] < 0 || n[0] > i || n[1] < 1 || n[1] > workload.MaxLength {
			return "a node"
		}
	}
	for _, u := range x.Uses {
		if u[0] < 0 || u[0] > 24 || u[1] < 1 || u[1] > len(x.Nodes) || u[2] < 1 || u[2] > x.Requests {
			return "a use"
		}
	}
	for _, a := range x.Again {
		if a[0] < 0 || a[0] > 24 || !bucketsFit([][5]int{{a[1], a[2], a[3], a[4], a[5]}}, 1<<40) {
			return "a bucket"
		}
	}
	return ""
}

func (s *Sessions) check() string {
	switch {
	case s.Sessions < 1 || len(s.Turns) == 0 || len(s.Turns) > mostEntries:
		return "their number"
	case !(s.Carried >= 0 && s.Carried <= 1):
		return "the share that is carried"
	case s.First == nil:
		return "the lengths of first turns are missing"
	case s.Carried > 0 && s.Added == nil:
		return "the lengths of what turns add are missing"
	case s.Carried < 1 && s.Later == nil && s.mostTurns() > 1:
		return "the lengths of later turns are missing"
	}
	for _, t := range s.Turns {
		if t[0] < 1 || t[1] <= t[0] || t[1] > 1<<20 || t[2] < 1 {
			return "a number of turns"
		}
	}
	for _, l := range []*Lengths{s.First, s.Added, s.Later} {
		if what := l.check(); what != "" {
			return what
		}
	}
	for i, x := range s.Pauses {
		if !(x >= 0 && x <= 366*86400) || i > 0 && x < s.Pauses[i-1] {
			return "a pause"
		}
	}
	return ""
}

func (s *Sessions) mostTurns() (n int) {
	for _, t := range s.Turns {
		n = max(n, t[1]-1)
	}
	return n
}

// check says what makes no law of it, where it is known.
func (a *Arrival) check() error {
	if a == nil {
		return nil
	}
	_, err := a.newLaw()
	return err
}

// newLaw is the law of due times with the log's own rate.
func (a *Arrival) newLaw() (*arrival.Law, error) {
	if !(a.Rate >= arrival.MinRate && a.Rate <= arrival.MaxRate) {
		return nil, say.Errorf("a rate of %s requests per second makes no sense", say.Exact(a.Rate))
	}
	if a.Cascade == nil {
		l, err := arrival.ParseLaw(a.Law, arrival.Files{})
		if err != nil {
			return nil, err
		}
		return l.WithRate(a.Rate), nil
	}
	if a.Steady != "" {
		if _, err := arrival.ParseLaw(a.Steady, arrival.Files{}); err != nil {
			return nil, err
		}
	}
	return arrival.FromCascade(a.Cascade)
}

// LawOf is the law of the profile under that name, for --arrival.
func LawOf(name string) (*arrival.Law, error) {
	p, err := Open(name)
	if err != nil {
		return nil, err
	}
	return p.ArrivalLaw()
}

// ownArrival returns the arrivals of sessions where there are any, else those of requests.
func (p *Profile) ownArrival() *Arrival {
	if p.Sessions != nil && p.Sessions.Arrival != nil {
		return p.Sessions.Arrival
	}
	return p.Arrival
}

// ArrivalLaw is when requests come by themselves: sessions where there are any, else requests.
func (p *Profile) ArrivalLaw() (*arrival.Law, error) {
	a := p.ownArrival()
	if a == nil {
		return nil, say.Errorf("the profile has no arrivals: its log has no times").WithHint("give a load: --rate R or --concurrency N, and a law with --arrival")
	}
	return a.newLaw()
}

// SteadyLaw is the nearest law with a steady state.
func (p *Profile) SteadyLaw() string {
	switch a := p.ownArrival(); {
	case a == nil:
		return ""
	case a.Cascade == nil:
		return a.Law
	default:
		return a.Steady
	}
}
