package arrival

import (
	"maps"
	"math"
	"math/bits"
	"slices"
	"sort"
	"strconv"

	"pitot/internal/say"
	"pitot/internal/stats"
	"pitot/internal/workload/seed"
)

// Cascade describes by sums how the requests of a log came. It has the times of knots, each Every
// requests apart, and how the time between two knots divides. The gaps between two knots are halved
// by number again and again. The share of the time that the first half takes is drawn from the
// shares in the log. The draw depends on the number of gaps and on their mean length. Such a
// multiplicative cascade has the log's gaps and the log's variance at every scale, and none of its
// times. Riedi, Crouse, Ribeiro and Baraniuk halve time (A multifractal wavelet model with
// application to network traffic, IEEE Transactions on Information Theory 45, 1999). Here the
// number is halved, so that the halving ends with single gaps.
type Cascade struct {
	Requests int `yaml:"requests"` // of the log
	// Every is the number of gaps between two knots; the last two have the rest between them.
	Every int `yaml:"every"`
	// Spans are seconds from knot to knot; behind the last the log begins again.
	Spans []float64 `yaml:"spans,flow"`
	// Slopes say by level how much of the difference of what is around some gaps, ln of the
	// mean gap on their left over that on their right, their two halves show.
	Slopes []float64 `yaml:"slopes,flow"`
	Splits []Split   `yaml:"splits"`
	// Gaps corrects the gaps that the halving ends with.
	Gaps Correction `yaml:",inline"`
}

// Correction makes of gaps of one distribution those of another, by quantiles of both at the
// same shares, in seconds and rising: where a log's gaps have peaks, such as at the time of a
// clock that sends, the halving alone blurs them.
type Correction struct {
	From []float64 `yaml:"from,flow,omitempty"`
	To   []float64 `yaml:"to,flow,omitempty"`
}

// Split describes how the times of gaps divide, for one number of gaps and one mean gap.
type Split struct {
	Level int `yaml:"level"` // 2^(Level+1) gaps are halved
	Gap   int `yaml:"gap"`   // octave of the mean gap: 2^Gap seconds to twice that
	// Logits are quantiles of ln(p/(1−p)), p being the part of the first half, without what
	// the slope makes of it: those of the middles of even steps.
	Logits []float64 `yaml:"logits,flow"`
}

const (
	// mostKnots bounds a cascade; longer logs have more requests between two knots.
	mostKnots = 4096
	// mostSteps is the largest number of steps in the quantiles of a split.
	mostSteps = 64
	// furthestLogit stands for a half that takes no time.
	furthestLogit = 20
	// Octaves of the mean gap: from a nanosecond to a year.
	pieces                = 4
	lowestGap, highestGap = -30 * pieces, 25 * pieces
)

// NewCascade makes one of the times of a log, in nanoseconds and in order, of which each knot
// and each step of a quantile has least at the least. It reports false where the log is too
// short or too fast to make a law.
func NewCascade(due []int64, least int) (*Cascade, bool) {
	n := len(due)
	least = max(least, 1)
	if n < 2*least || n < 16 || due[n-1] <= due[0] {
		return nil, false
	}
	c := &Cascade{Requests: n, Every: 1 << bits.Len(uint(max(least, 8, n/mostKnots)-1))}
	at := make([]float64, n+1)
	for i := range due {
		at[i] = float64(due[i]-due[0]) / 1e9
	}
	at[n] = at[n-1] + at[n-1]/float64(n-1) // the log begins again a mean gap behind its last request
	var knots []int
	for from := 0; from < n; from += c.Every {
		if n-from < least { // too few to be a group of their own
			break
		}
		knots = append(knots, from)
	}
	knots = append(knots, n)
	var seen []observed
	for g := range len(knots) - 1 {
		from, to := knots[g], knots[g+1]
		c.Spans = append(c.Spans, RoundDigits(at[to]-at[from], 4))
		own := (at[to] - at[from]) / float64(to-from)
		left, right := own, own
		if g > 0 {
			left = (at[from] - at[knots[g-1]]) / float64(from-knots[g-1])
		}
		if g+2 < len(knots) {
			right = (at[knots[g+2]] - at[to]) / float64(knots[g+2]-to)
		}
		seen = appendSplits(seen, at, from, to, left, right)
	}
	c.Slopes = slopesOf(seen)
	samples := map[[2]int][]float64{}
	for _, o := range seen {
		key := [2]int{o.level, o.gap}
		samples[key] = append(samples[key], o.logit-float64(c.Slopes[o.level]*o.around))
	}
	keys := slices.SortedFunc(maps.Keys(samples), func(a, b [2]int) int {
		return slices.Compare(a[:], b[:])
	})
	// What too few tell is told together with what is a little longer.
	var rest []float64
	for i, k := range keys {
		list := append(rest, samples[k]...)
		rest = nil
		last := i+1 == len(keys) || keys[i+1][0] != k[0]
		if len(list) < 8*least {
			if !last {
				rest = list
				continue
			}
			if m := len(c.Splits); m > 0 && c.Splits[m-1].Level == k[0] {
				continue // so few that those of shorter ones stand for them
			}
			if len(list) < 2*least {
				continue
			}
		}
		logits := logitQuantiles(list, min(mostSteps, len(list)/least))
		c.Splits = append(c.Splits, Split{Level: k[0], Gap: k[1], Logits: logits})
	}
	c.fitCorrection(at, least)
	return c, c.Check() == ""
}

// firstHalf returns the number of gaps in the first half.
func firstHalf(gaps int) int { return (gaps + 1) / 2 }

func levelOf(gaps int) int { return bits.Len(uint(gaps-1)) - 1 }

// octaveOf is that of a mean gap in seconds.
func octaveOf(gap float64) int {
	return min(max(int(math.Floor(pieces*math.Log2(gap))), lowestGap), highestGap)
}

// logGapRatio is ln of the mean gap on the left over that on the right, within bounds.
func logGapRatio(left, right float64) float64 {
	const most = 6
	return min(max(math.Log((left+noGap)/(right+noGap)), -most), most)
}

// observed is a division of gaps as it was.
type observed struct {
	level, gap    int
	logit, around float64
}

func appendSplits(seen []observed, at []float64, from, to int, left, right float64) []observed {
	gaps := to - from
	whole := at[to] - at[from]
	if gaps < 2 || whole <= 0 {
		return seen
	}
	mid := from + firstHalf(gaps)
	one, two := (at[mid]-at[from])/float64(mid-from), (at[to]-at[mid])/float64(to-mid)
	logit := min(max(math.Log((at[mid]-at[from])/(at[to]-at[mid])), -furthestLogit), furthestLogit)
	seen = append(seen, observed{levelOf(gaps), octaveOf(whole / float64(gaps)), logit, logGapRatio(left, right)})
	seen = appendSplits(seen, at, from, mid, left, two)
	return appendSplits(seen, at, mid, to, one, right)
}

// slopesOf is the regression through the origin of halves on what is around them, by level.
func slopesOf(seen []observed) []float64 {
	var xy, xx []float64
	for _, o := range seen {
		for len(xy) <= o.level {
			xy, xx = append(xy, 0), append(xx, 0)
		}
		xy[o.level] += o.around * o.logit
		xx[o.level] += o.around * o.around
	}
	out := make([]float64, len(xy))
	for i := range out {
		if xx[i] > 0 {
			out[i] = math.Round(min(max(xy[i]/xx[i], 0), 1)*1000) / 1000
		}
	}
	return out
}

const (
	// mostPeaks is the largest number of quantiles of a correction.
	mostPeaks = 256
	// corrections is the number of times that the correction is improved: correcting one gap of a
	// group moves others.
	corrections = 8
	// mostCorrected is the largest number of gaps that are drawn to find the correction.
	mostCorrected = 1 << 18
	// noGap is a gap that is none, in seconds.
	noGap = 1e-9
)

// fitCorrection finds the correction under which the gaps are the log's.
func (c *Cascade) fitCorrection(at []float64, least int) {
	n := min(c.Requests, mostCorrected)
	steps := min(mostPeaks, n/least)
	if steps < 2 {
		return
	}
	quantiles := func(gaps []float64) []float64 {
		out := StepMiddles(gaps, steps)
		for i := range out {
			out[i] = max(out[i], noGap)
		}
		return out
	}
	made := func(seed uint64) []float64 {
		p := &cascading{c: c, by: 1e9, seed: seed}
		var gaps []float64
		for len(gaps) < n {
			p.drawGroup()
			gaps = append(gaps, p.gaps...)
		}
		return gaps
	}
	// The last gap is not the log's.
	log := make([]float64, 0, len(at))
	for i := range len(at) - 2 {
		log = append(log, at[i+1]-at[i])
	}
	want := quantiles(log)
	from := quantiles(made(correctionSeed))
	to := slices.Clone(want)
	short := func(list []float64) []float64 {
		out := make([]float64, len(list))
		for i, x := range list {
			out[i] = RoundDigits(x, 4)
		}
		return out
	}
	best, near := Correction{}, stats.KSDistance(want, from)
	for range corrections {
		c.Gaps = Correction{short(from), short(to)}
		got := quantiles(made(correctionSeed))
		if d := stats.KSDistance(want, got); d < near {
			best, near = c.Gaps, d
		}
		for i := range to {
			to[i] = max(to[i]*math.Sqrt(want[i]/got[i]), noGap)
			if i > 0 {
				to[i] = max(to[i], to[i-1])
			}
		}
	}
	c.Gaps = best
}

const correctionSeed = 0x6a09e667f3bcc908 // of no run

// apply corrects gaps that come to whole, and still do then: what is left over goes to the
// longest of them, or to all where that is too short.
func (r *Correction) apply(gaps []float64, whole float64) {
	if len(r.From) == 0 || len(gaps) < 2 || whole <= 0 {
		return
	}
	sum, longest := 0.0, 0
	for i, x := range gaps {
		if x > 0 {
			gaps[i] = r.correctGap(x)
		}
		if sum += gaps[i]; gaps[i] > gaps[longest] {
			longest = i
		}
	}
	if rest := whole - sum; gaps[longest]+rest >= gaps[longest]/2 {
		gaps[longest] += rest
		return
	}
	for i := range gaps {
		gaps[i] *= whole / sum
	}
}

// correctGap is a gap corrected: straight between quantiles, in proportion beyond them.
func (r *Correction) correctGap(x float64) float64 {
	n := len(r.From)
	i := sort.SearchFloat64s(r.From, x)
	switch {
	case i == 0:
		return x * r.To[0] / r.From[0]
	case i == n:
		return x * r.To[n-1] / r.From[n-1]
	case r.From[i] == r.From[i-1]:
		return r.To[i]
	}
	part := (x - r.From[i-1]) / (r.From[i] - r.From[i-1])
	return r.To[i-1] + float64(part*(r.To[i]-r.To[i-1]))
}

// RoundDigits rounds to so many significant digits.
func RoundDigits(x float64, digits int) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	return y
}

// StepMiddles are quantiles of so many even steps. Of each step's values it takes the middle one,
// and none of the ends. It sorts the list.
func StepMiddles(list []float64, steps int) []float64 {
	slices.Sort(list)
	out := make([]float64, steps)
	for i := range out {
		out[i] = list[int((float64(i)+.5)/float64(steps)*float64(len(list)))]
	}
	return out
}

// logitQuantiles are quantiles of logits, within bounds and rounded.
func logitQuantiles(list []float64, steps int) []float64 {
	out := StepMiddles(list, max(steps, 1))
	for i, x := range out {
		out[i] = math.Round(min(max(x, -furthestLogit), furthestLogit)*100) / 100
	}
	return out
}

// Check says what makes no law of it, "" if nothing does.
func (c *Cascade) Check() string {
	n := len(c.Spans)
	switch {
	case c.Requests < 2 || c.Requests > 1<<40:
		return "the number of requests"
	case c.Every < 1 || c.Every > 1<<30:
		return "the number of requests between two knots"
	case n < 1 || n > (c.Requests+c.Every-1)/c.Every || (n-1)*c.Every >= c.Requests || c.Requests-(n-1)*c.Every > 2*c.Every:
		return "the number of spans"
	}
	for _, s := range c.Spans {
		if !(s >= 0 && s <= 100*longestTime.Seconds()) {
			return "a span"
		}
	}
	for _, s := range c.Slopes {
		if !(s >= 0 && s <= 1) {
			return "a slope"
		}
	}
	for i, s := range c.Splits {
		if len(s.Logits) == 0 || s.Level < 0 || s.Level > 40 || s.Gap < lowestGap || s.Gap > highestGap {
			return "a split"
		}
		if i > 0 && (s.Level < c.Splits[i-1].Level || s.Level == c.Splits[i-1].Level && s.Gap <= c.Splits[i-1].Gap) {
			return "the order of splits"
		}
		for k, x := range s.Logits {
			if !(math.Abs(x) <= furthestLogit) || k > 0 && x < s.Logits[k-1] {
				return "a split's quantiles"
			}
		}
	}
	if len(c.Gaps.From) != len(c.Gaps.To) {
		return "the correction of gaps"
	}
	for i, x := range c.Gaps.From {
		y := c.Gaps.To[i]
		if !(x > 0 && y > 0 && x <= longestTime.Seconds() && y <= longestTime.Seconds()) || i > 0 && (x < c.Gaps.From[i-1] || y < c.Gaps.To[i-1]) {
			return "the correction of gaps"
		}
	}
	if r := c.MeanRate(); !(r >= MinRate && r <= MaxRate) {
		return "the rate"
	}
	return ""
}

// cycleSeconds is the time of the log in seconds, up to where it begins again.
func (c *Cascade) cycleSeconds() (sum float64) {
	for _, s := range c.Spans {
		sum += s
	}
	return sum
}

// MeanRate is that of the log, per second.
func (c *Cascade) MeanRate() float64 { return float64(c.Requests) / c.cycleSeconds() }

// gapCount returns the number of gaps between a knot and the next.
func (c *Cascade) gapCount(group int) int {
	if group == len(c.Spans)-1 {
		return c.Requests - group*c.Every
	}
	return c.Every
}

// splitOf returns how gaps of that number and mean divide. Where the mean has no split, it takes
// the longest that is no longer, or the shortest. It returns nil where none is known.
func (c *Cascade) splitOf(level int, gap int) *Split {
	i := sort.Search(len(c.Splits), func(i int) bool {
		s := &c.Splits[i]
		return s.Level > level || s.Level == level && s.Gap >= gap
	})
	// An entry stands for its octave and those below it that have none of their own.
	if i < len(c.Splits) && c.Splits[i].Level == level {
		return &c.Splits[i]
	}
	if i > 0 && c.Splits[i-1].Level == level {
		return &c.Splits[i-1]
	}
	return nil
}

// parseProfile reads the name of a profile.
func parseProfile(a *arguments) law {
	if a.files.Profile == nil {
		a.fail(noFiles)
		return nil
	}
	l, err := a.files.Profile(a.list[0])
	if err != nil {
		a.failWith(err)
		return nil
	}
	a.own = l.own
	return l.law
}

// FromCascade is the law of a cascade.
func FromCascade(c *Cascade) (*Law, error) {
	if what := c.Check(); what != "" {
		return nil, say.Errorf("the arrivals of the profile: %s makes no law", what)
	}
	return &Law{"profile", cascadeLaw{c}, c.MeanRate()}, nil
}

// WithRate is a law with a rate of its own, which it has where none is asked for.
func (l *Law) WithRate(rate float64) *Law { return &Law{l.written, l.law, rate} }

type cascadeLaw struct{ *Cascade }

func (l cascadeLaw) shape() Expected {
	return Expected{Varies: true, Period: l.cycleSeconds(), Peak: math.NaN()}
}

// mostSeen bounds how many due times are made to tell what they look like.
const mostSeen = 1 << 20

func (l cascadeLaw) sampleTimes(rate float64) []int64 {
	p, err := l.process(rate, 1, 0, false)
	if err != nil {
		return nil
	}
	due := make([]int64, min(l.Requests, mostSeen))
	for i := range due {
		due[i] = p.Next()
	}
	return due
}

func (l cascadeLaw) cv(rate float64) float64      { return ObserveTimes(l.sampleTimes(rate)).CV }
func (l cascadeLaw) none(rate, x float64) float64 { return math.NaN() }
func (l cascadeLaw) variance(rate, x float64) float64 {
	return DispersionOf(l.sampleTimes(rate), x) * rate * x
}

func (l cascadeLaw) process(rate float64, start uint64, from int64, _ bool) (Process, error) {
	p := &cascading{c: l.Cascade, by: l.MeanRate() / rate * 1e9, seed: start, at: float64(from)}
	if from > 0 { // before it begins, what comes at its end
		length := l.cycleSeconds() * p.by
		p.at -= math.Ceil(float64(from)/length) * length
		for p.group+1 < len(l.Spans) && p.at+float64(l.Spans[p.group]*p.by) < 0 {
			p.at += l.Spans[p.group] * p.by
			p.group++
		}
		for p.Peek() < 0 {
			p.Next()
		}
	}
	return p, nil
}

// cascading goes from knot to knot.
type cascading struct {
	c     *Cascade
	by    float64 // nanoseconds for one second of the log
	seed  uint64
	at    float64 // ns, of the knot of the next group
	round uint64
	group int
	gaps  []float64
	due   []int64 // of the group, those that are left
}

// Peek returns what Next will give.
func (p *cascading) Peek() int64 {
	if len(p.due) == 0 {
		p.drawGroup()
	}
	return p.due[0]
}

func (p *cascading) Next() int64 {
	due := p.Peek()
	p.due = p.due[1:]
	return due
}

// drawGroup draws the due times of a group.
func (p *cascading) drawGroup() {
	c, g := p.c, p.group
	n := c.gapCount(g)
	mean := func(g int) float64 {
		g = min(max(g, 0), len(c.Spans)-1)
		return c.Spans[g] / float64(c.gapCount(g))
	}
	left, right := mean(g-1), mean(g+1)
	p.gaps = append(p.gaps[:0], make([]float64, n)...)
	draws := seed.Rand(seed.At(p.seed, p.round, uint64(g)))
	c.drawGaps(p.gaps, c.Spans[g], left, right, &draws)
	c.Gaps.apply(p.gaps, c.Spans[g])
	p.due = make([]int64, n)
	next := p.at + float64(c.Spans[g]*p.by)
	into := 0.0
	for i, gap := range p.gaps {
		// The sum of the gaps is rounded: without the bound it may pass the next knot.
		if t := math.Floor(min(p.at+float64(into*p.by), next)); t < math.MaxInt64 {
			p.due[i] = int64(t)
		} else {
			p.due[i] = math.MaxInt64
		}
		into += gap
	}
	p.at = next
	if p.group++; p.group == len(c.Spans) {
		p.group, p.round = 0, p.round+1
	}
}

// drawGaps draws gaps that come to a time, beside such mean gaps.
func (c *Cascade) drawGaps(gaps []float64, whole, left, right float64, draws *seed.Rand) {
	n := len(gaps)
	if whole <= 0 {
		return
	}
	if n == 1 {
		gaps[0] = whole
		return
	}
	u := seed.Float(draws.Uint64())
	k := firstHalf(n)
	level, logit := levelOf(n), 0.0
	if s := c.splitOf(level, octaveOf(whole/float64(n))); s != nil {
		logit = s.logitQuantile(u)
	}
	if level < len(c.Slopes) {
		logit += float64(c.Slopes[level] * logGapRatio(left, right))
	}
	first := whole / (1 + math.Exp(-logit))
	if math.Abs(logit) > furthestLogit-1 { // at the same time
		first = math.Round(first/whole) * whole
	}
	second := whole - first
	c.drawGaps(gaps[:k], first, left, second/float64(n-k), draws)
	c.drawGaps(gaps[k:], second, first/float64(k), right, draws)
}

// logitQuantile is the quantile of a share: straight between the middles of the steps.
func (s *Split) logitQuantile(u float64) float64 {
	x := u*float64(len(s.Logits)) - .5
	i := min(max(int(math.Floor(x)), 0), len(s.Logits)-1)
	k := min(i+1, len(s.Logits)-1)
	part := min(max(x-float64(i), 0), 1)
	return s.Logits[i] + float64(part*(s.Logits[k]-s.Logits[i]))
}
