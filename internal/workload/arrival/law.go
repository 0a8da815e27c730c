package arrival

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"pitot/internal/say"
)

// Law is an arrival process without its rate and its seed: what --arrival names.
type Law struct {
	written string
	law     law
	own     float64 // rate that it has where none is asked for, 0 if it has none
}

// law is one kind of arrival process. Rates are requests per second, times seconds.
type law interface {
	// process begins the stream; the time that the law counts from is at from nanoseconds.
	// stationary says that it is looked at from any time on: one part of a sum, and parts
	// do not all begin when the load does.
	process(rate float64, seed uint64, from int64, stationary bool) (Process, error)
	// shape returns what the law makes one expect at any rate: those fields of Expected that do not
	// depend on the rate.
	shape() Expected
	// cv is the coefficient of variation of the gaps.
	cv(rate float64) float64
	// none is the probability that nobody comes within x of any time, and variance that
	// of how many come within it; both NaN of a law whose rate varies with time.
	none(rate, x float64) float64
	variance(rate, x float64) float64
}

// Expected holds what a law makes one expect of its due times. NaN marks what the law does not
// give.
type Expected struct {
	Rate float64 // requests per second, in the long run
	CV   float64 // coefficient of variation of the gaps
	// Dispersion is the variance over the mean of how many requests come in [Scales]
	// seconds: 1 of a Poisson process.
	Dispersion [3]float64
	// Varies says that the rate changes with time: there is no steady state. CV and
	// Dispersion are then those about the rate.
	Varies bool
	Peak   float64 // highest rate over the mean one, of a rate that varies
	Cycle  float64 // seconds from burst to burst, or of a period; 0 where there is none
	Swing  float64 // squared coefficient of variation of the rate over such cycles
	Period float64 // seconds after which a rate that varies begins again, 0 if it does not
	// Changes are the times, in seconds, at which the rate jumps.
	Changes []float64
}

// Scales are the lengths of the windows that counts are looked at in, in seconds.
var Scales = [3]float64{1, 10, 60}

// Files gives what a law reads from files: the contents by name.
type Files struct {
	// Times are time stamps.
	Times func(name string) (Stamps, error)
	// Rates are rates and the seconds from which on they hold; the last time is the end.
	Rates func(name string) (times, rates []float64, err error)
	// Profile is the law of a profile's arrivals.
	Profile func(name string) (*Law, error)
}

// noFiles says that a law of a file is read where there are none.
const noFiles = "no file can be read here"

// String is the law as it was written.
func (l *Law) String() string { return l.written }

// OwnRate is the rate that the law itself has, as a trace does; 0 for one that any rate
// can be asked of alone.
func (l *Law) OwnRate() float64 { return l.own }

// StampStep is the step, in seconds, of a trace's stamps that are rounded and not spread; 0
// of any other law.
func (l *Law) StampStep() float64 {
	if t, ok := l.law.(*trace); ok && t.spread == 0 {
		return float64(StampRounding(t.look)) / 1e9
	}
	return 0
}

// ExpectedAt returns the expected statistics of due times at that rate.
func (l *Law) ExpectedAt(rate float64) Expected { return expectedOf(l.law, rate) }

// ExpectedDispersion is the one of [Expected] alone, which takes less to work out.
func (l *Law) ExpectedDispersion(rate float64) [3]float64 { return lawDispersion(l.law, rate) }

// HasVaryingRate says that the rate changes with time, so that there is no steady state.
func (l *Law) HasVaryingRate() bool { return l.law.shape().Varies }

// NewProcess begins a stream of due times. A law that changes with time counts from from
// nanoseconds; before, its rate is that at which it begins.
func (l *Law) NewProcess(rate float64, seed uint64, from int64) (Process, error) {
	if err := checkRate(rate); err != nil {
		return nil, err
	}
	return l.law.process(rate, seed, from, false)
}

// family is a kind of law: its name, an example, how many arguments stand in its parentheses,
// and how these are read.
type family struct {
	name, form, about string
	least, most       int
	parse             func(a *arguments) law
}

// families is the one list of the kinds there are, in the order of the help.
func families() []family {
	return []family{
		{"poisson", "poisson", "independent users", 0, 0, parsePoisson},
		{"constant", "constant", "equal gaps", 0, 0, parseConstant},
		{"gamma", "gamma(0.5)", "gaps with CV 1/√0.5: bursts below 1, more even above", 1, 1, parseGamma},
		{"on-off", "on-off(5s,20s)", "bursts of 5 s on average, and 20 s without a request", 2, 2, parseOnOff},
		{"mmpp", "mmpp(0.5:60s,4:10s)", "Poisson with changing rates: half for a minute, fourfold for 10 s, on average", 2, mostStates, parseMMPP},
		{"step", "step(3,30s)", "threefold from 30 s on; step(3,30s,60s): until 60 s", 2, 3, parseStep},
		{"ramp", "ramp(0.5,2,60s)", "from half to twice the rate within a minute", 3, 3, parseRamp},
		{"sinusoid", "sinusoid(0.5,60s)", "up and down by half, once a minute", 2, 2, parseSinusoid},
		{"diurnal", "diurnal(10m)", "a day's rates within 10 minutes", 1, 1, parseDiurnal},
		{"piecewise", "piecewise(FILE)", "rates from a file: SECONDS RATE a line, again from the beginning at its end", 1, 1, parsePiecewise},
		{"trace", "trace(FILE)", "times from a file, at their own rate or stretched to --rate; also trace(FILE,speed=2), and trace(FILE,spread) if stamps are rounded", 1, 3, parseTrace},
		{"profile", "profile(FILE)", "arrivals of a profile of logs, at their own rate or stretched to --rate", 1, 1, parseProfile},
	}
}

// ExampleForms are examples of all laws, each with what it means.
func ExampleForms() (forms [][2]string) {
	for _, f := range families() {
		forms = append(forms, [2]string{f.form, f.about})
	}
	return append(forms, [2]string{"0.8*poisson + 0.2*on-off(5s,20s)", "a sum: each has its share of the rate"})
}

// ParseLaw reads the name of a law with what stands in its parentheses, or a sum of such
// with their shares. A law of a file asks files for it. Every error is a [say.Error].
func ParseLaw(s string, files Files) (*Law, error) {
	l, own, err := parseLaw(strings.TrimSpace(s), files)
	if err != nil {
		return nil, err
	}
	return &Law{strings.TrimSpace(s), l, own}, nil
}

func parseLaw(s string, files Files) (law, float64, error) {
	terms, ok := SplitOutside(s, '+')
	if !ok {
		return nil, 0, say.Errorf("%.60q: a parenthesis is missing", s).WithHint("for example gamma(0.5)")
	}
	if len(terms) > 1 {
		return parseSum(terms, files)
	}
	name, inner, call := strings.Cut(s, "(")
	name = strings.TrimSpace(name)
	var names []string
	for _, f := range families() {
		if names = append(names, f.name); f.name != name {
			continue
		}
		var args []string
		if call {
			inner, closed := strings.CutSuffix(strings.TrimSpace(inner), ")")
			if args, ok = SplitOutside(inner, ','); !closed || !ok {
				return nil, 0, say.Errorf("%.60q: a parenthesis is missing", s).WithHint("for example " + f.form)
			}
		}
		a := &arguments{list: args, files: files}
		var l law
		if a.checkCount(f.least, f.most); a.err == nil {
			l = f.parse(a)
		}
		if a.err != nil {
			hint := cmp.Or(say.HintOf(a.err), "for example "+f.form+": "+f.about)
			return nil, 0, say.Errorf("%.60q: %v", s, a.err).WithHint(hint)
		}
		return l, a.own, nil
	}
	return nil, 0, say.Errorf("unknown arrival process %.60q", s).WithHint(say.KnownHint(name, names))
}

// SplitOutside splits at a separator that stands in no parentheses; ok is false where
// these do not match.
func SplitOutside(s string, separator byte) (parts []string, ok bool) {
	depth, from := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth < 0 {
				return nil, false
			}
		case c == separator && depth == 0:
			parts, from = append(parts, strings.TrimSpace(s[from:i])), i+1
		}
	}
	return append(parts, strings.TrimSpace(s[from:])), depth == 0
}

// arguments reads what stands in the parentheses of a law.
type arguments struct {
	list  []string
	files Files
	own   float64 // rate that the law has, as it is read
	err   error   // the first
}

func (a *arguments) fail(format string, args ...any) { a.failWith(say.Errorf(format, args...)) }

func (a *arguments) failWith(err error) {
	if a.err == nil {
		a.err = err
	}
}

// checkCount says how many there may be.
func (a *arguments) checkCount(least, most int) {
	switch n := len(a.list); {
	case n >= least && n <= most:
	case most == 0:
		a.fail("it takes nothing in parentheses")
	case n == 0 || n == 1 && a.list[0] == "":
		a.fail("it wants its numbers in parentheses")
	default:
		a.fail("%s in parentheses, want %s", say.Plural(n, "value"), wantedCount(least, most))
	}
}

func wantedCount(least, most int) string {
	if least == most {
		return strconv.Itoa(least)
	}
	return strconv.Itoa(least) + " to " + strconv.Itoa(most)
}

// numberAt is the i-th as a number from least to most.
func (a *arguments) numberAt(i int, what string, least, most float64) float64 {
	return a.value(a.list[i], what, least, most)
}

func (a *arguments) value(text, what string, least, most float64) float64 {
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && !math.IsInf(x, 0) || math.IsNaN(x):
		a.fail("the %s is %.20q, which is no number", what, text)
	case x < least || x > most:
		a.fail("the %s is %s, want %s to %s", what, text, say.Exact(least), say.Exact(most))
	default:
		return x + 0
	}
	return least
}

// Times that a law can have: states last a millisecond at least.
const (
	shortestTime = time.Millisecond
	longestTime  = 365 * 24 * time.Hour
)

// secondsAt is the i-th as a length of time.
func (a *arguments) secondsAt(i int, what string) float64 {
	return a.parseSpan(a.list[i], what)
}

func (a *arguments) parseSpan(text, what string) float64 {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		a.fail("the %s is %.20q, which is no time such as 500ms, 30s or 10m", what, text)
	case d < shortestTime || d > longestTime:
		a.fail("the %s is %s, want a millisecond to a year", what, text)
	default:
		return d.Seconds()
	}
	return 1
}
