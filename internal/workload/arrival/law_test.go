package arrival

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"pitot/internal/say"
)

// testFiles stands for files.
func testFiles() Files {
	return Files{
		Times: func(string) (Stamps, error) { return StampList{5e9, 6e9, 6e9, 6e9, 9e9, 9e9, 9e9, 12e9}, nil },
		Rates: func(string) ([]float64, []float64, error) { return []float64{0, 10, 25, 30}, []float64{2, 0, 7}, nil },
		Profile: func(string) (*Law, error) {
			return FromCascade(&Cascade{Requests: 10, Every: 8, Spans: []float64{1.5, 2}, Slopes: []float64{0.1}, Splits: []Split{{Level: 0, Gap: -4, Logits: []float64{-1, 0, 2}}}})
		},
	}
}

func law1(t testing.TB, text string) *Law {
	t.Helper()
	l, err := ParseLaw(text, testFiles())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func duesOf(t testing.TB, text string, rate float64, seed uint64, n int) []int64 {
	t.Helper()
	p, err := law1(t, text).NewProcess(rate, seed, 0)
	if err != nil {
		t.Fatal(err)
	}
	due := make([]int64, n)
	for i := range due {
		if due[i] = p.Next(); i > 0 && due[i] < due[i-1] {
			t.Fatalf("%s: request %d is due at %d, before %d", text, i, due[i], due[i-1])
		}
	}
	return due
}

// stationaryLaws have a steady state.
func stationaryLaws() []string {
	return []string{
		"poisson", "gamma(0.3)", "gamma(4)", "on-off(0.2s,0.6s)", "mmpp(0.5:2s,4:500ms)",
		"mmpp(1:1s,0:500ms,5:200ms)", "0.7*poisson + 0.3*on-off(100ms,400ms)",
	}
}

// The law of every stationary process: its rate, how long nobody comes from times that
// have nothing to do with it (Kolmogorov-Smirnov), the CV of its gaps, and the dispersion
// of counts over three lengths of time.
func TestStationaryLawsAreTheirOwn(t *testing.T) {
	const rate, probes, apart = 20.0, 12_000, 6e9 // ns between probes, long beside every state
	for _, text := range stationaryLaws() {
		l := law1(t, text)
		e := l.ExpectedAt(rate)
		if e.Varies || e.Rate != rate {
			t.Errorf("%s: %+v", text, e)
		}
		due := duesOf(t, text, rate, 11, int(rate*probes*apart/1e9))
		got := ObserveTimes(due)
		span := float64(due[len(due)-1]) / 1e9
		// The rate, within four standard deviations of the count.
		if sd := math.Sqrt(l.law.variance(rate, span)); math.Abs(float64(len(due))-rate*span) > 4*sd+1 {
			t.Errorf("%s: %d requests in %.0f s, want %.0f ± %.0f", text, len(due), span, rate*span, sd)
		}
		if math.Abs(got.CV-e.CV) > .03*max(e.CV, .3) {
			t.Errorf("%s: CV %.4f, expected %.4f", text, got.CV, e.CV)
		}
		for i := range Scales[:2] { // windows of 60 s are too few here; the third is held by longer runs below
			if math.Abs(got.Dispersion[i]-e.Dispersion[i]) > .06*max(e.Dispersion[i], .05) {
				t.Errorf("%s: dispersion at %g s is %.4f, expected %.4f", text, Scales[i], got.Dispersion[i], e.Dispersion[i])
			}
		}
		var waits []float64
		i := 0
		for at := int64(apart); at < due[len(due)-1]; at += apart {
			for due[i] < at {
				i++
			}
			waits = append(waits, float64(due[i]-at)/1e9)
		}
		slices.Sort(waits)
		worst := distanceFrom(waits, func(x float64) float64 { return 1 - l.law.none(rate, x) })
		if limit := 1.95 / math.Sqrt(float64(len(waits))); worst > limit { // 0.1 %
			t.Errorf("%s: distance of waits %.5f, want below %.5f", text, worst, limit)
		}
	}
}

// A minute's counts of the laws with the longest memory.
func TestDispersionOfAMinute(t *testing.T) {
	for _, text := range []string{"on-off(5s,20s)", "mmpp(0.5:60s,4:10s)", "gamma(0.1)"} {
		const rate = 2.0
		e := law1(t, text).ExpectedAt(rate)
		got := ObserveTimes(duesOf(t, text, rate, 3, 1_500_000)) // 12,500 minutes
		if math.Abs(got.Dispersion[2]-e.Dispersion[2]) > .08*e.Dispersion[2] {
			t.Errorf("%s: dispersion at 60 s is %.3f, expected %.3f", text, got.Dispersion[2], e.Dispersion[2])
		}
	}
}

// The integral of the rate between two due times of a process whose rate varies is
// exponential (time rescaling; Brown et al., Neural Computation 14, 2002). The rates are
// written here as formulas of their own.
func TestVaryingLawsFollowTheirRates(t *testing.T) {
	const rate = 50.0
	day := func(at float64) float64 { // straight between hours
		i, f := math.Modf(math.Mod(at, 240) / 10)
		sum := 0.0
		for _, x := range dayShape {
			sum += x / 24
		}
		return (dayShape[int(i)%24]*(1-f) + dayShape[(int(i)+1)%24]*f) / sum
	}
	for text, factor := range map[string]func(at float64) float64{
		"step(3,30s)": func(at float64) float64 {
			if at < 30 {
				return 1
			}
			return 3
		},
		"step(4,20s,35s)": func(at float64) float64 {
			if at >= 20 && at < 35 {
				return 4
			}
			return 1
		},
		"ramp(0.5,2,60s)":   func(at float64) float64 { return 0.5 + 1.5*min(at/60, 1) },
		"ramp(0,2,60s)":     func(at float64) float64 { return 2 * min(at/60, 1) },
		"ramp(2,0.1,60s)":   func(at float64) float64 { return 2 - 1.9*min(at/60, 1) },
		"sinusoid(0.5,20s)": func(at float64) float64 { return 1 + 0.5*math.Sin(2*math.Pi*at/20) },
		"sinusoid(1,7s)":    func(at float64) float64 { return 1 + math.Sin(2*math.Pi*at/7) },
		"diurnal(4m)":       day,
		"piecewise(x)": func(at float64) float64 {
			switch at = math.Mod(at, 30); { // 2 for 10 s, 0 for 15 s, 7 for 5 s: mean 55/30
			case at < 10:
				return 2 * 30 / 55.
			case at < 25:
				return 0
			}
			return 7 * 30 / 55.
		},
	} {
		due := duesOf(t, text, rate, 5, 15_000)
		if !law1(t, text).HasVaryingRate() {
			t.Errorf("%s does not vary", text)
		}
		var gaps []float64
		last := 0.0
		for _, d := range due {
			to := float64(d) / 1e9
			steps := 20
			if jump := to - last; jump > 0.05 {
				steps = int(jump * 2000)
			}
			h, sum := (to-last)/float64(steps), 0.0
			for i := range steps {
				sum += factor(last + (float64(i)+.5)*h)
			}
			gaps, last = append(gaps, sum*h*rate), to
		}
		slices.Sort(gaps)
		worst, n := 0.0, float64(len(gaps))
		for i, g := range gaps {
			f := 1 - math.Exp(-g)
			worst = max(worst, math.Abs(f-float64(i)/n), math.Abs(f-float64(i+1)/n))
		}
		if limit := 1.63 / math.Sqrt(n); worst > limit {
			t.Errorf("%s: distance to the exponential distribution %.5f, want below %.5f", text, worst, limit)
		}
	}
}

// A law that changes with time counts from where it is told to, and has its first rate
// before.
func TestVaryingLawsCountFromTheWindow(t *testing.T) {
	const from = int64(100e9)
	p, err := law1(t, "step(9,10s)").NewProcess(20, 1, from)
	if err != nil {
		t.Fatal(err)
	}
	var before, first, second int
	for d := p.Next(); d < from+20e9; d = p.Next() {
		switch {
		case d < from:
			before++
		case d < from+10e9:
			first++
		default:
			second++
		}
	}
	if math.Abs(float64(before)-2000) > 4*math.Sqrt(2000) || math.Abs(float64(first)-200) > 4*math.Sqrt(200) || math.Abs(float64(second)-1800) > 4*math.Sqrt(1800) {
		t.Errorf("%d, %d, %d requests, want about 2000, 200, 1800", before, first, second)
	}
}

// A trace is replayed to the nanosecond at its own rate, at another it is stretched, and
// at its end it begins again.
func TestTrace(t *testing.T) {
	l := law1(t, "trace(x)")
	if own := l.OwnRate(); own != 1 {
		t.Fatalf("its own rate is %g", own)
	}
	if got, want := duesOf(t, "trace(x)", 1, 3, 10), []int64{0, 1e9, 1e9, 1e9, 4e9, 4e9, 4e9, 7e9, 8e9, 9e9}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := duesOf(t, "trace(x,speed=2)", 2, 3, 4), []int64{0, .5e9, .5e9, .5e9}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := duesOf(t, "trace(x)", 4, 3, 5), []int64{0, .25e9, .25e9, .25e9, 1e9}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	p, _ := l.NewProcess(1, 0, 2.5e9) // a warm-up has the trace's end
	var got []int64
	for range 5 {
		got = append(got, p.Next())
	}
	if want := []int64{1.5e9, 2.5e9, 3.5e9, 3.5e9, 3.5e9}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := StampRounding([]int64{0, 3e9, 3e9, 3e9, 9e9, 9e9}); got != 3e9 {
		t.Errorf("rounding is %d", got)
	}
	if got := StampRounding([]int64{0, 3e9, 6e9}); got != 0 {
		t.Errorf("distinct stamps are rounded to %d", got)
	}
	due := duesOf(t, "trace(x,spread=1s)", 1, 3, 8)
	for i, s := range []int64{0, 1e9, 1e9, 1e9, 4e9, 4e9, 4e9, 7e9} {
		if due[i] < s || due[i] >= s+1e9 {
			t.Errorf("request %d is due at %d, want within a second from %d", i, due[i], s)
		}
	}
	if due[1] == due[2] {
		t.Error("stamps were not spread")
	}
}

func TestLawErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "unknown arrival process",
		"onoff(1s,2s)":               "did you mean on-off?",
		"on-off":                     "wants its numbers",
		"on-off(1,2)":                "no time such as",
		"on-off(1s)":                 "1 value in parentheses, want 2",
		"on-off(1ns,2s)":             "want a millisecond",
		"mmpp(1:1s)":                 "1 value in parentheses, want 2 to 8",
		"mmpp(1:1s,2)":               "not RATE:TIME",
		"mmpp(0:1s,0:2s)":            "no state has a rate",
		"step(3,30s,20s)":            "not behind the step",
		"ramp(0,0,1s)":               "both rates are 0",
		"sinusoid(2,1s)":             "want 0.001 to 1",
		"poisson(1)":                 "takes nothing",
		"gamma(0.5":                  "parenthesis is missing",
		"gamma 0.5)":                 "parenthesis is missing",
		"poisson + poisson":          "no share",
		"0.5*poisson + 0.4*constant": "come to 0.9",
		"trace(x,fast)":              "unknown option",
		"trace(x,speed=0)":           "want 0.000001 to",
	} {
		l, err := ParseLaw(text, testFiles())
		if err == nil || !strings.Contains(err.Error()+"; "+say.HintOf(err), want) || l != nil {
			t.Errorf("%s: %v (%v), want %q", text, err, say.HintOf(err), want)
		}
	}
	if _, err := ParseLaw("trace(x)", Files{Times: func(string) (Stamps, error) { return StampList{1, 1}, nil }}); err == nil || !strings.Contains(err.Error(), "2 times") {
		t.Errorf("a trace of one time: %v", err)
	}
	if _, err := ParseLaw("trace(x)", Files{Times: func(string) (Stamps, error) { return nil, os.ErrNotExist }}); err == nil {
		t.Error("a file that is not there")
	}
}

// Every example in the help is a law.
func TestForms(t *testing.T) {
	for _, f := range ExampleForms() {
		if due := duesOf(t, f[0], 10, 1, 50); due[49] <= 0 {
			t.Errorf("%s gives no times", f[0])
		}
	}
}

// A seed means the same times for ever.
func TestLawsGolden(t *testing.T) {
	for text, want := range golden {
		if got := duesOf(t, text, 10, 7, len(want)); !slices.Equal(got, want) {
			t.Errorf("%q: %#v", text, got)
		}
	}
}

func FuzzParseLaw(f *testing.F) {
	for _, form := range ExampleForms() {
		f.Add(form[0])
	}
	f.Add("0.5*gamma(0.1) + 0.5*step(2,1s,2s)")
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseLaw(s, testFiles())
		if err != nil {
			if say.HintOf(err) == "" && err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		again, err := ParseLaw(l.String(), testFiles())
		if err != nil || again.String() != l.String() {
			t.Fatalf("%q is not read back: %v", l.String(), err)
		}
		p, err := l.NewProcess(5, 1, 1e9)
		if err != nil {
			return
		}
		last := int64(0)
		for range 20 {
			if due := p.Next(); due < last {
				t.Fatalf("%q goes back from %d to %d", s, last, due)
			} else {
				last = due
			}
		}
	})
}
