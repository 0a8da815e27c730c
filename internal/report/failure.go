package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"pitot/internal/results/result"
	"pitot/internal/say"
)

// How requests that were not served are shown.

// maxClasses is the number of error classes that a report shows with the server's message.
const maxClasses = 8

// maxMessage is the length of a message that a report shows at most, in characters.
const maxMessage = 98

// Failures are requests that were not served.
type Failures struct {
	Total   string
	Classes []string // how many of each class of errors, and a message of it
}

func (m *PointModel) addFailures(p *result.Point) {
	r := p.Requests
	switch p.Outcome {
	case "", result.OK:
	case result.Unstable:
		m.Outcome = "the load is more than the server can serve: its queue grew all the time"
	case result.Failing:
		m.Outcome = "the server failed: half of the requests or more were not answered"
	case result.Degraded:
		m.Outcome = "the server was degraded: 1 % of the requests or more were not answered"
	default:
		m.Outcome = "the server was " + string(p.Outcome)
	}
	if shapedByLimits(p) {
		m.Outcome = moreThanLimits(p)
	}
	if p.WentAway != nil {
		m.Outcome = "the server went away " + say.Seconds(*p.WentAway) + " after the load began: from then on every connection was refused"
	}
	if r.OK == r.Due {
		return
	}
	total := ""
	for _, part := range []struct {
		n    int
		what string
	}{{r.Failed, "failed"}, {r.Cut, "cut off before the end"}, {r.Unsent, "never sent"}} {
		switch {
		case part.n == 0:
		case total == "":
			total = say.Plural(part.n, "request") + " " + part.what
		default:
			total += ", " + say.Count(part.n) + " " + part.what
		}
	}
	m.Failures = &Failures{Total: total}
	classes := ByCount(r.Errors)
	others := 0
	for i, class := range classes {
		if i >= maxClasses && len(classes) > maxClasses+1 {
			others += r.Errors[class]
			continue
		}
		line := say.Count(r.Errors[class]) + " " + say.PlainLine(class)
		if example := say.PlainLine(r.ErrorExamples[class]); example != "" {
			line = say.Truncate(line+": "+example, maxMessage)
		}
		m.Failures.Classes = append(m.Failures.Classes, line)
	}
	if others > 0 {
		m.Failures.Classes = append(m.Failures.Classes, fmt.Sprintf("%s more, of %s", say.Count(others), say.Plural(len(classes)-maxClasses, "other class")))
	}
}

// ByCount are the keys, the most frequent first.
func ByCount(of map[string]int) []string {
	return slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
	})
}
