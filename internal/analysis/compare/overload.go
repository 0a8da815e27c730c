package compare

import (
	"fmt"
	"math"
	"slices"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// Overload says that one side does not keep up with a load, and that the other side shows no such
// overload.
type Overload struct {
	Side    string `json:"side"`    // that does not keep up
	Other   string `json:"other"`   // that shows no overload
	Failing bool   `json:"failing"` // half of its requests or more fail; else its queue grows
}

// overloadOf holds what the launches of one side show of an overload.
type overloadOf struct {
	growing, failing int     // launches whose queue grew, and others of which half the requests or more failed
	deficit          float64 // mean over launches: the share of arrivals that are never served
	sd               float64 // of deficit; +Inf where a launch does not tell it
	arrivals         float64 // of all launches
	failed, due      int     // requests
}

func (x *loadOfSide) overloadState() (o overloadOf) {
	variance, n := 0., float64(len(x.launches))
	for _, l := range x.launches {
		switch {
		case l.isUnstable():
			o.growing++
		case slices.ContainsFunc(l.points, func(p *result.Point) bool { return p.Outcome == result.Failing }):
			o.failing++
		}
		for _, p := range l.points {
			share := 1 / n / float64(len(l.points))
			o.arrivals += float64(p.Requests.Due)
			o.failed += p.Requests.Failed
			o.due += p.Requests.Due
			if p.Growth == nil || p.Requests.Due == 0 {
				variance = math.Inf(1)
				continue
			}
			o.deficit += share * p.Growth.Deficit
			sd := share * stats.DeficitSD(float64(p.Requests.Due))
			if p.Stability != stats.Unstable {
				sd = share * stats.SteadyDeficitSD(p.InFlight, float64(p.Requests.Due))
			}
			variance += sd * sd
		}
	}
	o.sd = math.Sqrt(variance)
	return o
}

// overloadedSide returns which side alone does not keep up with a load, in every launch; nil where
// both do, neither does, or some launches do. Launches of one server near its limit come out
// either way, so the difference has to be more than chance. Where a queue grew and the
// difference may be chance, why says so.
func overloadedSide(x, y *loadOfSide, a, b string) (o *Overload, why string) {
	ofX, ofY := x.overloadState(), y.overloadState()
	allX, allY := len(x.launches), len(y.launches)
	switch {
	case allX == 0 || allY == 0:
	case ofX.growing+ofX.failing == 0 && ofY.growing+ofY.failing == allY:
		o = &Overload{Side: b, Other: a, Failing: ofY.failing == allY}
		why = ofY.mayBeChance(&ofX, allY, allX, a)
	case ofY.growing+ofY.failing == 0 && ofX.growing+ofX.failing == allX:
		o = &Overload{Side: a, Other: b, Failing: ofX.failing == allX}
		why = ofX.mayBeChance(&ofY, allX, allY, b)
	}
	if why != "" {
		if o.Failing {
			why = "" // the shares of errors are compared as they are
		}
		return nil, why
	}
	return o, ""
}

// mayBeChance says why a side whose launches are all overloaded may be no other than one none
// of whose launches is, "" where that is excluded at 5 %.
func (o *overloadOf) mayBeChance(other *overloadOf, launches, others int, name string) string {
	// Whatever share of its launches come out overloaded, all of one side and none of the other
	// are no more likely than this.
	n, m := float64(launches), float64(others)
	share := n / (n + m)
	if 2*math.Pow(share, n)*math.Pow(1-share, m) < alpha {
		return ""
	}
	if o.failing == launches {
		if 2*stats.MoreOften(o.failed, o.due, other.failed, other.due) < alpha {
			return ""
		}
		return "as many requests may fail on " + name
	}
	missed, ok := stats.MissedOverload(other.arrivals)
	// The other side may be overloaded by what its test may have missed, but for what its queue
	// shows.
	most := max(other.deficit, 0) + stats.NormalQuantile(1-alpha)*other.sd
	if ok {
		most = min(most, missed/(1+missed))
	}
	apart := (o.deficit - other.deficit) / math.Hypot(o.sd, other.sd)
	if o.growing == launches && o.deficit > most && apart > stats.NormalQuantile(1-alpha/2) {
		return ""
	}
	if ok && missed < 1 {
		return fmt.Sprintf("that of %s may grow as fast: an overload of %.0f %% may not show; a longer --duration or %d launches a side would show it", name, math.Ceil(100*missed), Enough)
	}
	return fmt.Sprintf("that of %s may grow as fast: %s arrivals show no overload; a longer --duration or %d launches a side would", name, say.Count(int(other.arrivals)), Enough)
}

// needsSteadyState reports whether a figure of an overloaded side depends on how long the load
// lasted. What fails and what is served does not.
func needsSteadyState(f figure) bool {
	if f.of == nil {
		return true
	}
	switch f.of.Name {
	case metric.Errors, metric.Wrong, metric.OutputRate, metric.RequestRate:
		return false
	}
	return true
}

// overloadOutcome returns how a clause comes out where one side does not keep up: no figure
// of an overloaded server is as good as one of a server that keeps up. "" where both do, or
// where the clause is about the share of errors and the requests queue.
func (p *Pair) overloadOutcome(clause Clause) (state, why string) {
	x := p.Overload
	if x == nil || clause.metric.name == capacity || clause.metric.of != nil && clause.metric.of.Name == metric.Errors && !x.Failing {
		return "", ""
	}
	why = x.Text(p.What)
	if p.Scope != "" {
		why += ", " + string(p.Scope)
	}
	if (x.Side == p.B) == clause.better {
		return RuledOut, why
	}
	return Fired, why
}

// mayGrow says why a clause about errors cannot be ruled out, "" where it can: those of a side
// whose queue grows may become more.
func (p *Pair) mayGrow(clause Clause) string {
	if x := p.Overload; x != nil && (x.Side == p.B) != clause.better {
		return x.Side + " " + x.At(p.What) + ": more of its requests may fail as its queue grows"
	}
	return ""
}

// Text says which side does not keep up with a load, and what the other shows.
func (x *Overload) Text(load string) string {
	if x.Failing {
		return x.Side + " " + x.At(load) + ", and " + x.Other + " does not"
	}
	return x.Side + " " + x.At(load) + ", and the queue of " + x.Other + " did not grow"
}

// At returns what the side does at a load.
func (x *Overload) At(load string) string {
	if x.Failing {
		return "fails half of its requests or more at " + load
	}
	return "does not keep up with " + load
}
