package telemetry

import (
	"bytes"
	"errors"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
)

// Reading holds the values of a page of metrics, by the signals of the vocabulary.
type Reading struct {
	Sources []string // whose page it is, an engine first: "vllm", "dcgm"
	Engine  bool     // an engine's is among them
	Values  map[Signal]float64
	Series  int // lines of the page with a name
}

var (
	// ErrNoMetrics says that a page is no page of metrics: HTML, JSON, nothing.
	ErrNoMetrics = errors.New("what it answers is no page of metrics")
	// ErrUnknownMetrics says that a page has metrics, and none that is in the table of names.
	ErrUnknownMetrics = errors.New("its metrics are of no engine or exporter that is known here")
)

// Read reads a page of metrics: in Prometheus' text format or in OpenMetrics. Lines
// that cannot be read, values that are no numbers and series that stand there twice are
// passed over. Where a page has the metrics of several engines those of the one that
// tells most are taken.
func (t *Table) Read(page []byte) (Reading, error) {
	r := reader{table: t, seed: hashSeed}
	eachSeriesLine(page, r.readSeries)
	return r.makeReading(page)
}

// hashSeed is that of the hashes of series, which are compared within a page.
var hashSeed = maphash.MakeSeed()

// reader gathers what the lines of a page say.
type reader struct {
	table   *Table
	seed    maphash.Seed
	count   int
	created float64 // when the first counter was made, 0 if none says
	name    []byte
	labels  labels
	seen    map[uint64]bool // series by name and labels
	once    map[onceKey]bool
	found   map[*Name]*gathered
}

type onceKey struct {
	name  *Name
	value string
}

// gathered holds what the series of one line of the table add up to.
type gathered struct {
	n                    int
	sum, lowest, highest float64
}

func (g *gathered) add(x float64) {
	if g.n == 0 {
		g.lowest, g.highest = x, x
	}
	g.n++
	g.sum += x
	g.lowest, g.highest = min(g.lowest, x), max(g.highest, x)
}

// merge takes in what another line of the same rank said.
func (g *gathered) merge(o *gathered) {
	if g.n == 0 {
		*g = *o
		return
	}
	g.n += o.n
	g.sum += o.sum
	g.lowest, g.highest = min(g.lowest, o.lowest), max(g.highest, o.highest)
}

// readSeries takes in one line.
func (r *reader) readSeries(name, rest []byte) {
	r.count++
	if bytes.HasSuffix(name, []byte("_created")) { // the Python client writes it with each of its counters
		if _, x, ok := parseSeries(rest, r.labels); ok && isNumber(x) && x > 0 && (r.created == 0 || x < r.created) {
			r.created = x
		}
		return
	}
	r.name = append(r.name[:0], name...)
	for i, c := range r.name {
		if c == ':' {
			r.name[i] = '_'
		}
	}
	all := r.table.byName[string(r.name)]
	if len(all) == 0 {
		return
	}
	of, x, ok := parseSeries(rest, r.labels)
	r.labels = of
	if !ok || !isNumber(x) || r.isRepeated(of) {
		return
	}
	for _, l := range all {
		r.takeSeries(l, of, x)
	}
}

// isRepeated says whether a series stood there before.
func (r *reader) isRepeated(of labels) bool {
	hash := maphash.Bytes(r.seed, r.name)
	for _, l := range of { // in whatever order
		hash += maphash.String(r.seed, l.name+"\x00"+l.value)
	}
	if r.seen[hash] {
		return true
	}
	if r.seen == nil {
		r.seen = map[uint64]bool{}
	}
	r.seen[hash] = true
	return false
}

// takeSeries takes in a series for one line of the table, if it is meant.
func (r *reader) takeSeries(l *line, of labels, x float64) {
	for _, c := range l.where {
		if v, has := of.value(c.label); has && !slices.Contains(c.is, v) {
			return
		}
	}
	if l.from != nil {
		x = 1
		for _, name := range l.from {
			v, _ := of.value(name)
			f, err := strconv.ParseFloat(v, 64)
			if err != nil || !(f > 0) || !isNumber(f) {
				return
			}
			x *= f
		}
	}
	if l.NoZero && x == 0 {
		return
	}
	if v, has := of.value(l.Once); has {
		key := onceKey{l.Name, v}
		if r.once[key] {
			return
		}
		if r.once == nil {
			r.once = map[onceKey]bool{}
		}
		r.once[key] = true
	}
	if l.Count {
		x = 1
	} else if l.Scale != 0 {
		x *= l.Scale
	}
	if r.found == nil {
		r.found = map[*Name]*gathered{}
	}
	g := r.found[l.Name]
	if g == nil {
		g = &gathered{}
		r.found[l.Name] = g
	}
	g.add(x)
}

// makeReading returns the values of all of them.
func (r *reader) makeReading(page []byte) (Reading, error) {
	out := Reading{Values: map[Signal]float64{}, Series: r.count}
	if r.count == 0 || bytes.HasPrefix(trimSpace(page), []byte("<")) {
		return out, ErrNoMetrics
	}
	sources := r.table.sources
	told := make([]int, len(sources)) // signals
	for i := range sources {
		told[i] = r.countSignals(sources[i].Names)
	}
	engine := -1
	for i := range sources {
		if sources[i].isEngine() && told[i] > 0 && (engine < 0 || told[i] > told[engine]) {
			engine = i
		}
	}
	if engine >= 0 {
		out.Engine = true
		out.Sources = append(out.Sources, sources[engine].Name)
		r.putValues(out.Values, sources[engine].Names)
		r.putValues(out.Values, process)
		if _, ok := out.Values[ProcessStart]; !ok && r.created > 0 {
			out.Values[ProcessStart] = r.created
		}
	}
	for i := range sources {
		if !sources[i].isEngine() && told[i] > 0 {
			out.Sources = append(out.Sources, sources[i].Name)
			r.putValues(out.Values, sources[i].Names)
		}
	}
	if len(out.Sources) == 0 {
		return out, ErrUnknownMetrics
	}
	return out, nil
}

// isEngine says that a source is an engine.
func (s *Source) isEngine() bool {
	return slices.ContainsFunc(s.Names, func(n Name) bool { return index[n.Signal].Of == Engine })
}

// countSignals returns the number of signals of a source that were found.
func (r *reader) countSignals(names []Name) int {
	signals := map[Signal]bool{}
	for i := range names {
		if r.found[&names[i]] != nil {
			signals[names[i].Signal] = true
		}
	}
	return len(signals)
}

// putValues puts what was found under the signals. It goes by the order of the table, so
// that sums do not depend on that of a map.
func (r *reader) putValues(to map[Signal]float64, names []Name) {
	type ranked struct {
		rank int
		all  gathered
	}
	best := map[Signal]*ranked{}
	for i := range names {
		n := &names[i]
		g := r.found[n]
		if g == nil {
			continue
		}
		b := best[n.Signal]
		if b == nil || n.Rank < b.rank {
			b = &ranked{rank: n.Rank}
			best[n.Signal] = b
		}
		if n.Rank == b.rank {
			b.all.merge(g)
		}
	}
	for signal, b := range best {
		x := b.all.sum
		switch index[signal].Across {
		case Mean:
			x /= float64(b.all.n)
		case Highest:
			x = b.all.highest
		case Lowest:
			x = b.all.lowest
		}
		if !math.IsInf(x, 0) {
			to[signal] = x
		}
	}
}
