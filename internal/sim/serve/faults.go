package serve

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"pitot/internal/say"
)

// Fault is something that goes wrong with a share of the requests.
type Fault struct {
	Name string        // a name of the table in faulttable.go
	Rate float64       // share of the requests, 0..1
	For  time.Duration // how long, where it takes time
	K    int           // how many, where it counts
	// From and Until bound when it happens, after the server's start; Until 0
	// is no end. Every, if set, has it happen again that often.
	From, Until, Every time.Duration
}

// isActive says whether a fault happens so long after the server's start.
func (f *Fault) isActive(age time.Duration) bool {
	if f.Every > 0 && age >= f.From {
		age = f.From + (age-f.From)%f.Every
	}
	return age >= f.From && (f.Until == 0 || age < f.Until)
}

// Faults lists the faults of a server. Each fault is drawn independently, so a request can have
// several. A request has at most one of the faults that end or replace an answer. So each of these
// has its configured share.
type Faults []Fault

// drawFaults gives the faults of request n, which came so long after the server's
// start, and their names joined by "+". It depends on nothing but its
// arguments.
func (fs Faults) drawFaults(seed uint64, n int64, age time.Duration) (got []Fault, names string) {
	if len(fs) == 0 {
		return nil, ""
	}
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	end, ends := rng.Float64(), 0.0 // which of those that end it
	for _, f := range fs {
		row := faultRow(f.Name)
		hit := rng.Float64() < f.Rate // drawn in any case: what is drawn next stays the same
		if row != nil && row.ends && f.isActive(age) {
			hit = ends <= end && end < ends+f.Rate
			ends += f.Rate
		}
		if !hit || row == nil || row.when > inside || !f.isActive(age) {
			continue
		}
		got = append(got, f)
		if names != "" {
			names += "+"
		}
		names += f.Name
	}
	return got, names
}

// RefusalStatus is the status of the error that request n is answered with, so long after the
// server's start, and what its Retry-After says; 0 for an answer.
func (fs Faults) RefusalStatus(seed uint64, n int64, age time.Duration) (status int, retryAfter time.Duration) {
	got, _ := fs.drawFaults(seed, n, age)
	for _, f := range got {
		if row := faultRow(f.Name); row.status > 0 {
			return row.status, f.For
		}
	}
	return 0, 0
}

// ThawTime is when what falls so many nanoseconds after the server's start can
// happen: then, or at the end of a freeze of the whole server.
func (fs Faults) ThawTime(age int64) int64 {
	for _, f := range fs {
		if f.Name != "freeze" || f.Every <= 0 || age < int64(f.Every) {
			continue
		}
		if past := age % int64(f.Every); past < int64(f.For) {
			return age + int64(f.For) - past
		}
	}
	return age
}

// acceptDelay returns the time for which the server ignores connection n after the client made it.
func (fs Faults) acceptDelay(seed uint64, n int64, age time.Duration) (d time.Duration) {
	var rng *rand.Rand
	for _, f := range fs {
		if row := faultRow(f.Name); row == nil || row.when != connecting {
			continue
		}
		if rng == nil {
			rng = rand.New(rand.NewPCG(^seed, uint64(n)))
		}
		if rng.Float64() < f.Rate && f.isActive(age) {
			d += f.For
		}
	}
	return d
}

// ParseFaults reads faults as they are written in flags: a list, separated by
// commas, of NAME:RATE or NAME:RATE:ARGUMENT, as in
// "429:1%,reset:0.5%,stall:2%:3s,coalesce:10%:4". A rate is a percentage or a
// fraction. The argument of an error is its Retry-After, as in "429:1%:5s".
// "@10s-20s" behind one limits it to that time after the server's
// start, "@10s-" has no end, and "@10s-20s/1m" comes again every minute. The
// whole server's freeze is "freeze:every 20s:2s", an engine that hangs for
// good is "wedge:after 30s". The hint of an unknown name tells the nearest one.
func ParseFaults(text string) (Faults, error) {
	var fs Faults
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		f, err := parseFault(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("fault %q: %w", strings.TrimSpace(part), err)
		}
		fs = append(fs, f)
	}
	return fs, nil
}

// written is the hint where a fault has not the form of its kind.
const written = "pitot mock --help=faults lists the faults and how to write them"

func parseFault(text string) (Fault, error) {
	fields := strings.Split(text, ":")
	row := faultRow(fields[0])
	if row == nil {
		return Fault{}, say.Errorf("there is no such fault").WithHint(say.KnownHint(fields[0], FaultNames()))
	}
	f := Fault{Name: row.name, Rate: 1, For: row.lasts, K: row.k}
	if last := len(fields) - 1; last > 0 {
		if arg, span, timed := strings.Cut(fields[last], "@"); timed {
			if row.when >= clocked {
				return f, say.Errorf("want %s", row.exampleForm()).WithHint(written)
			}
			if err := f.parseSpan(span); err != nil {
				return f, err
			}
			fields[last] = arg
		}
	}
	if len(fields) < 2 {
		return f, say.Errorf("want %s", row.exampleForm()).WithHint(written)
	}
	var err error
	if row.when == once {
		after, ok := strings.CutPrefix(fields[1], "after ")
		if !ok || len(fields) != 2 {
			return f, say.Errorf("want %s", row.exampleForm()).WithHint(written)
		}
		f.From, err = parsePositive(after)
		return f, err
	}
	if row.when == clocked {
		every, ok := strings.CutPrefix(fields[1], "every ")
		if !ok || len(fields) != 3 {
			return f, say.Errorf("want %s", row.exampleForm()).WithHint(written)
		}
		if f.Every, err = parsePositive(every); err != nil {
			return f, err
		}
		if f.For, err = parsePositive(fields[2]); err == nil && f.For >= f.Every {
			err = fmt.Errorf("lasts %v, which is no less than every %v", f.For, f.Every)
		}
		return f, err
	}
	if f.Rate, err = parseRate(fields[1]); err != nil {
		return f, err
	}
	switch {
	case len(fields) == 2:
	case len(fields) > 3 || row.lasts == 0 && row.k == 0 && !row.retry:
		return f, say.Errorf("want %s", row.exampleForm()).WithHint(written)
	case row.retry:
		if f.For, err = parsePositive(fields[2]); err == nil && f.For%time.Second != 0 {
			err = fmt.Errorf("retry-after counts whole seconds, and %s is none", fields[2])
		}
	case row.lasts > 0:
		f.For, err = parsePositive(fields[2])
	default:
		if f.K, err = strconv.Atoi(fields[2]); err == nil && (f.K < 2 || f.K > 1000) {
			err = fmt.Errorf("%d is not in 2..1000", f.K)
		}
	}
	return f, err
}

// parseSpan reads when a fault happens: FROM-UNTIL, FROM-, and either with
// /EVERY.
func (f *Fault) parseSpan(text string) (err error) {
	span, every, again := strings.Cut(text, "/")
	from, until, ok := strings.Cut(span, "-")
	if !ok {
		return say.Errorf("%q is no time span", text).WithHint("as in 429:1%@10s-20s, or @10s-20s/1m for every minute")
	}
	if f.From, err = time.ParseDuration(from); err != nil {
		return err
	}
	if until != "" {
		if f.Until, err = time.ParseDuration(until); err != nil {
			return err
		}
	}
	if again {
		if f.Every, err = parsePositive(every); err != nil {
			return err
		}
	}
	if f.From < 0 || f.Until != 0 && f.Until <= f.From || again && f.Until > f.From+f.Every {
		return say.Errorf("%q is no time span", text).WithHint("as in 429:1%@10s-20s, or @10s-20s/1m for every minute")
	}
	return nil
}

func parsePositive(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = fmt.Errorf("duration %s is not positive", text)
	}
	return d, err
}

func parseRate(text string) (float64, error) {
	const form = "a share of the requests is written 2% or 0.02"
	number, percent := strings.CutSuffix(text, "%")
	r, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, say.Errorf("%q is not a rate", text).WithHint(form)
	}
	if percent {
		r /= 100
	}
	if math.IsNaN(r) || r < 0 || r > 1 {
		hint := form
		if r > 1 && r <= 100 && !percent { // mostly meant in percent
			hint = fmt.Sprintf("write %s%% for %s requests in a hundred, or %s", number, number, strconv.FormatFloat(r/100, 'f', -1, 64))
		}
		return 0, say.Errorf("rate %s is not in 0..1 or 0..100%%", text).WithHint(hint)
	}
	return r, nil
}
