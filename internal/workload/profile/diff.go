package profile

import (
	"container/list"
	"math"
	"slices"

	"pitot/internal/workload"
	"pitot/internal/workload/arrival"
	"pitot/internal/workload/token"

	"pitot/internal/stat"
)

// Seen is what is known of the requests of a workload.
type Seen struct {
	Name   string
	Format string
	*workload.Trace
	turns []int32 // of each session, nil where none are known
	size  int     // tokens of a block
}

// Bounds of what is drawn of a profile to look at it.
const (
	leastDrawn, mostDrawn = 2000, 50_000
	// mostSeenBlocks bounds the blocks of what is drawn.
	mostSeenBlocks = 4 << 20
)

// LookBoth reads two workloads: presets, traces, files of prompts or profiles. What is drawn
// of a profile has blocks as long as the other's.
func LookBoth(a, b string) (x, y *Seen, err error) {
	size := 0
	for i, name := range []string{a, b} {
		if IsFile(name) {
			continue
		}
		t, err := workload.Look(name, token.Universal().Count)
		if err != nil {
			return nil, nil, err
		}
		s := &Seen{Name: name, Format: t.Format, Trace: t}
		s.size, _ = t.BlockSize()
		size = max(size, s.size)
		s.turns = turnsOf(t.Clients)
		if *[]**Seen{&x, &y}[i] = s; len(t.At) > 0 {
			t.At = Spread(t.At)
		}
	}
	for i, name := range []string{a, b} {
		if at := []**Seen{&x, &y}[i]; *at == nil {
			if *at, err = look(name, size); err != nil {
				return nil, nil, err
			}
		}
	}
	return x, y, nil
}

func turnsOf(clients []string) (out []int32) {
	counts := map[string]int32{}
	for _, c := range clients {
		if c != "" {
			counts[c]++
		}
	}
	for _, n := range counts {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// look draws of a profile what there was in its log. Answers take no time in it: a turn comes
// a pause behind the request before it.
func look(name string, size int) (*Seen, error) {
	p, err := Open(name)
	if err != nil {
		return nil, err
	}
	src, err := NewSource(p, Config{Seed: 1, Nonce: 2})
	if err != nil {
		return nil, err
	}
	if size == 0 {
		size = 64
	}
	var process arrival.Process
	if law, err := p.Law(); err == nil {
		if process, err = law.Process(law.OwnRate(), 1, 0); err != nil {
			return nil, err
		}
	}
	follow, _ := src.(workload.Sessions)
	type one struct {
		at     int64
		in     int32
		out    int32
		blocks []int64
	}
	var all []one
	s := &Seen{Name: name, Format: "profile", size: size}
	n, blocks, end := min(max(p.Requests, leastDrawn), mostDrawn), 0, int64(0)
	for i := int64(0); len(all) < n; i++ {
		at, turns := int64(0), int32(0)
		if process != nil {
			at = process.Next()
			end = at
		}
		for next := []workload.Next{{Item: i}}; len(next) > 0; turns++ {
			r, err := src.At(next[0].Item)
			if err != nil {
				return nil, err
			}
			at += int64(next[0].After)
			o := one{at: at, in: int32(r.Input), out: int32(r.Output)}
			if (p.Prefixes != nil || follow != nil) && blocks < mostSeenBlocks {
				o.blocks = blocksOf(&r, size)
				blocks += len(o.blocks)
			}
			all = append(all, o)
			if next = nil; follow != nil {
				next = follow.Follow(r.ID, true)
			}
		}
		s.turns = append(s.turns, turns)
	}
	if follow == nil {
		s.turns = nil
	}
	slices.SortStableFunc(all, func(a, b one) int { return int(min(max(a.at-b.at, -1), 1)) })
	// A log ends in the middle of sessions.
	if follow != nil && process != nil {
		for len(all) > 0 && all[len(all)-1].at > end {
			all = all[:len(all)-1]
		}
	}
	t := &workload.Trace{Format: "profile", Records: len(all)}
	for _, o := range all {
		if process != nil {
			t.At = append(t.At, o.at)
		}
		t.Input, t.Output = append(t.Input, o.in), append(t.Output, o.out)
		if o.blocks != nil {
			t.Blocks = append(t.Blocks, o.blocks)
		}
	}
	if len(t.Blocks) != len(t.Input) {
		t.Blocks = nil
	}
	slices.Sort(s.turns)
	s.Trace = t
	return s, nil
}

// blocksOf numbers the blocks of a prompt: equal numbers are equal text with all before it.
func blocksOf(r *workload.Request, size int) []int64 {
	out := []int64{}
	h, room := uint64(14695981039346656037), size
	mix := func(x uint64) { h = (h ^ x) * 1099511628211; h ^= h >> 29 }
	for _, m := range r.Messages {
		for _, s := range m.Segments {
			for at := 0; at < s.Words; {
				k := min(room, s.Words-at)
				mix(s.Seed)
				mix(uint64(at)<<32 | uint64(k))
				at += k
				if room -= k; room == 0 {
					out, room = append(out, int64(h>>1)), size
				}
			}
		}
	}
	if room < size {
		mix(uint64(r.ID))
		out = append(out, int64(h>>1))
	}
	return out
}

// CacheSizes are those of the caches that are asked what they could serve, in tokens; 0 is
// one that forgets nothing.
var CacheSizes = [4]int{64 << 10, 512 << 10, 4 << 20, 0}

// Served is what share of the prompt tokens a cache of so many tokens could serve that
// forgets what was used least recently; NaN where it is not known what prompts share.
func (s *Seen) Served(size int) float64 {
	if s.Blocks == nil || s.size == 0 || s.Input == nil {
		return math.NaN()
	}
	most := math.MaxInt
	if size > 0 {
		most = max(size/s.size, 1)
	}
	where, order := map[int64]*list.Element{}, list.New()
	var prompt, served float64
	for i, ids := range s.Blocks {
		n := max(int(s.Input[i]), 0)
		hits := 0
		for hits < len(ids) && where[ids[hits]] != nil {
			hits++
		}
		prompt += float64(n)
		served += float64(min(hits*s.size, n))
		for k := len(ids) - 1; k >= 0; k-- { // the last of a prompt is forgotten first
			if e := where[ids[k]]; e != nil {
				order.MoveToFront(e)
				continue
			}
			where[ids[k]] = order.PushFront(ids[k])
			if order.Len() > most {
				last := order.Back()
				delete(where, last.Value.(int64))
				order.Remove(last)
			}
		}
	}
	if prompt == 0 {
		return math.NaN()
	}
	return served / prompt
}

// Row is one thing that two workloads are compared by.
type Row struct {
	Name     string  `json:"name"`
	A        float64 `json:"a"`
	B        float64 `json:"b"`
	Distance float64 `json:"distance,omitempty"` // Kolmogorov and Smirnov's, of distributions, whose medians A and B are
	P        float64 `json:"p,omitempty"`        // that such a distance comes by chance
	Differ   bool    `json:"differ"`
	Shown    string  `json:"-"` // "%" for shares
}

// From what on two workloads differ.
const (
	farLengths    = 0.05 // distance of the distributions, where P is below rare
	rare          = 0.01
	farRank       = 0.1 // of rank correlations
	farRatio      = 1.1 // of rates, CVs and turns
	farDispersion = 1.2 // of dispersions, or what their windows can tell
	farServed     = 0.05
)

// Diff sets two workloads beside each other, as far as both are known.
func Diff(a, b *Seen) (rows []Row) {
	distribution := func(name string, x, y []int32) {
		x, y = knownOnly(x), knownOnly(y)
		if len(x) == 0 || len(y) == 0 {
			return
		}
		r := Row{Name: name, A: float64(x[len(x)/2]), B: float64(y[len(y)/2])}
		r.Distance = stat.Distance(x, y)
		r.P = stat.DistanceP(r.Distance, len(x), len(y))
		r.Differ = r.Distance > farLengths && r.P < rare
		rows = append(rows, r)
	}
	ratio := func(name string, x, y, far float64) {
		if !(x > 0 && y > 0) {
			return
		}
		rows = append(rows, Row{Name: name, A: x, B: y, Differ: math.Abs(math.Log(x/y)) > math.Log(far)})
	}
	distribution("prompt tokens", a.Input, b.Input)
	distribution("answer tokens", a.Output, b.Output)
	if x, y := a.Correlation(), b.Correlation(); !math.IsNaN(x) && !math.IsNaN(y) {
		rows = append(rows, Row{Name: "rank correlation", A: x, B: y, Differ: math.Abs(x-y) > farRank})
	}
	if len(a.At) > 1 && len(b.At) > 1 {
		x, y := arrival.Observed(a.At), arrival.Observed(b.At)
		if x.Rate > 0 && y.Rate > 0 {
			// The rate of bursts is known as well as their number.
			scatter := func(e arrival.Expected, n int) float64 {
				for i := len(e.Dispersion) - 1; i >= 0; i-- {
					if d := e.Dispersion[i]; d > 0 {
						return d / float64(n)
					}
				}
				return 0
			}
			ratio("requests/s", x.Rate, y.Rate, max(farRatio, math.Exp(3*math.Sqrt(scatter(x, len(a.At))+scatter(y, len(b.At))))))
			d := GapDistance(a.At, b.At)
			r := Row{Name: "gaps, ms", A: median(a.At), B: median(b.At), Distance: d, P: stat.DistanceP(d, len(a.At)-1, len(b.At)-1)}
			r.Differ = d > farLengths && r.P < rare
			rows = append(rows, r)
			ratio("CV of the gaps", x.CV, y.CV, max(farRatio, math.Exp(3*math.Sqrt(1/float64(len(a.At))+1/float64(len(b.At))))))
			for i, s := range arrival.Scales {
				windows := func(due []int64) float64 { return float64(due[len(due)-1]-due[0]) / 1e9 / s }
				noise := 3 * math.Sqrt(2/windows(a.At)+2/windows(b.At)) // of counts that are about normal
				ratio("dispersion at "+[]string{"1", "10", "60"}[i]+" s", x.Dispersion[i], y.Dispersion[i], max(farDispersion, math.Exp(noise)))
			}
		}
	}
	if a.Blocks != nil && b.Blocks != nil {
		for _, size := range CacheSizes {
			x, y := a.Served(size), b.Served(size)
			if !math.IsNaN(x) && !math.IsNaN(y) {
				rows = append(rows, Row{Name: "served by a cache of " + sizeName(size), A: x, B: y, Differ: math.Abs(x-y) > farServed, Shown: "%"})
			}
		}
	}
	if len(a.turns) > 0 && len(b.turns) > 0 {
		mean := func(list []int32) (m float64) {
			for _, n := range list {
				m += float64(n) / float64(len(list))
			}
			return m
		}
		ratio("turns of a session", mean(a.turns), mean(b.turns), farRatio)
	}
	return rows
}

func sizeName(size int) string {
	switch {
	case size == 0:
		return "any size"
	case size >= 1<<20:
		return []string{"", "1M", "2M", "", "4M"}[size>>20] + " tokens"
	}
	return map[int]string{64 << 10: "64k", 512 << 10: "512k"}[size] + " tokens"
}

func knownOnly(column []int32) (out []int32) {
	for _, x := range column {
		if x > 0 {
			out = append(out, x)
		}
	}
	slices.Sort(out)
	return out
}

func median(due []int64) float64 {
	var gaps []int64
	for i := 1; i < len(due); i++ {
		gaps = append(gaps, due[i]-due[i-1])
	}
	slices.Sort(gaps)
	return float64(gaps[len(gaps)/2]) / 1e6
}
