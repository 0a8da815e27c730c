package mock

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"pitot/internal/user"
)

// Fault is something that goes wrong with a share of the requests.
type Fault struct {
	Name  string        // a name of the table in faulttable.go
	Rate  float64       // share of the requests, 0..1
	For   time.Duration // how long, where it takes time
	Every time.Duration // freeze only: the time from one to the next
	K     int           // how many, where it counts
}

// Faults is what goes wrong. Each fault is drawn on its own, so a request can
// have several.
type Faults []Fault

// draw gives the faults of request n and their names joined by "+". It depends
// on nothing but its arguments.
func (fs Faults) draw(seed uint64, n int64) (got []Fault, names string) {
	if len(fs) == 0 {
		return nil, ""
	}
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	for _, f := range fs {
		row := faultRow(f.Name)
		if rng.Float64() >= f.Rate || row == nil || row.when == clocked {
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

// ParseFaults reads faults as they are written in flags: a list, separated by
// commas, of NAME:RATE or NAME:RATE:ARGUMENT, as in
// "429:1%,reset:0.5%,stall:2%:3s,coalesce:10%:4". A rate is a percentage or a
// fraction. The whole server's freeze is "freeze:every 20s:2s". The hint of an unknown name tells the nearest one.
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

func parseFault(text string) (Fault, error) {
	fields := strings.Split(text, ":")
	row := faultRow(fields[0])
	if row == nil {
		return Fault{}, user.Errorf(user.Known(fields[0], FaultNames()), "there is no such fault")
	}
	f := Fault{Name: row.name, Rate: 1, For: row.lasts, K: row.k}
	if len(fields) < 2 {
		return f, fmt.Errorf("want %s", row.form())
	}
	var err error
	if row.when == clocked {
		every, ok := strings.CutPrefix(fields[1], "every ")
		if !ok || len(fields) != 3 {
			return f, fmt.Errorf("want %s", row.form())
		}
		if f.Every, err = positive(every); err != nil {
			return f, err
		}
		if f.For, err = positive(fields[2]); err == nil && f.For >= f.Every {
			err = fmt.Errorf("lasts %v, which is no less than every %v", f.For, f.Every)
		}
		return f, err
	}
	if f.Rate, err = parseRate(fields[1]); err != nil {
		return f, err
	}
	switch {
	case len(fields) == 2:
	case len(fields) > 3 || (row.lasts == 0 && row.k == 0):
		return f, fmt.Errorf("want %s", row.form())
	case row.lasts > 0:
		f.For, err = positive(fields[2])
	default:
		if f.K, err = strconv.Atoi(fields[2]); err == nil && (f.K < 2 || f.K > 1000) {
			err = fmt.Errorf("%d is not in 2..1000", f.K)
		}
	}
	return f, err
}

func positive(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = fmt.Errorf("duration %s is not positive", text)
	}
	return d, err
}

func parseRate(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	r, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("parse rate %q: %w", text, err)
	}
	if percent {
		r /= 100
	}
	if math.IsNaN(r) || r < 0 || r > 1 {
		return 0, fmt.Errorf("rate %s is not in 0..100%%", text)
	}
	return r, nil
}

// String is the text that [ParseFaults] reads.
func (fs Faults) String() string {
	parts := make([]string, len(fs))
	for i, f := range fs {
		parts[i] = f.String()
	}
	return strings.Join(parts, ",")
}

// String is one part of the text that [ParseFaults] reads.
func (f Fault) String() string {
	if f.Every > 0 {
		return fmt.Sprintf("%s:every %v:%v", f.Name, f.Every, f.For)
	}
	rate := strconv.FormatFloat(f.Rate*100, 'g', -1, 64) + "%"
	if r, err := parseRate(rate); err != nil || r != f.Rate {
		rate = strconv.FormatFloat(f.Rate, 'g', -1, 64)
	}
	text := f.Name + ":" + rate
	switch {
	case f.For > 0:
		text += ":" + f.For.String()
	case f.K > 0:
		text += ":" + strconv.Itoa(f.K)
	}
	return text
}
