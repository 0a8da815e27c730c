package choose

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"pitot/internal/loadgen"
	"pitot/internal/sim"
	"pitot/internal/sim/deploy"
	"pitot/internal/workload"
	"pitot/internal/workload/arrival"
)

// A load of conversations that begins with none has as many under way as it will have only when
// the first of them end, and until then tells nothing. So it begins with those that would be
// under way: what they said before is in the cache, and each goes on where it would be.

// underWay is the conversations of a load, the first of which began before it.
type underWay struct {
	workload.Sessions
	arrivals arrival.Process // of those that begin
	next     int64           // when the next of these does
	begun    []begun         // the others, by when they go on
	items    []int64         // which item of the workload each comes with, in the order in which they come
}

// begun is a conversation that began before the load.
type begun struct {
	at    int64 // ns: when it asks next
	item  int64 // what
	since int64 // ns: when it was answered last
}

// firstBegun is the number in the workload of the first of those; what begins in a load has
// lower ones.
const firstBegun = 1 << 30

// underWay draws who is under way at a rate where a request takes so many seconds: who
// came before by the same law and has not ended. In a close look they are crowded: as many as
// there are in all but a few of such loads, for a load that is carried gets over that too. A
// conversation that asks several things at once goes on when it asks one.
func (s *schedule) underWay(arrivals arrival.Process, rate, request float64, crowded bool) (*underWay, error) {
	u := &underWay{Sessions: s.talks.src, arrivals: arrivals, next: arrivals.Next()}
	rng := rand.New(rand.NewPCG(s.seed, 0x6265676f7265))
	before, err := s.law.NewProcess(rate, rng.Uint64(), 0)
	if err != nil {
		return nil, err
	}
	count := 0
	if crowded {
		count = s.crowdSize(rate, request)
	}
	longest := int64((s.talks.most*request + s.talks.mostPauses) * 1e9)
	n := int64(firstBegun)
	for end, at := longest, before.Next(); ; at = before.Next() {
		for at > end && len(u.begun) < count { // those of a time as long before that are added
			end += longest
		}
		if at > end {
			break
		}
		if b, ok := s.goesOn(n, at-(end-longest), int64(request*1e9)); ok {
			u.begun = append(u.begun, b)
		}
		n++
	}
	if crowded { // of all ages
		rng.Shuffle(len(u.begun), func(i, j int) { u.begun[i], u.begun[j] = u.begun[j], u.begun[i] })
		u.begun = u.begun[:count]
	}
	slices.SortFunc(u.begun, func(a, b begun) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.item, b.item)) })
	return u, nil
}

// crowdSize returns the number of conversations that are about to go on where more are than usual.
// It adds two standard deviations of their number, which is that of what begins in the time that
// one lasts. With Poisson arrivals the number under way is Poisson's (M/G/∞). That many come
// together once in some twenty times as long as one lasts.
func (s *schedule) crowdSize(rate, request float64) int {
	const deviations = 2
	lasts := s.totalDuration(request)
	of := s.law.ExpectedDispersion(rate)
	spread := of[0]
	for i, scale := range arrival.Scales {
		if scale <= lasts {
			spread = of[i]
		}
	}
	usual := rate * (lasts - request)
	if s.talks.most <= 1 || usual < 1e-3 { // none ever goes on
		return 0
	}
	return int(math.Ceil(usual + deviations*math.Sqrt(usual*spread)))
}

// atOnce has all that are under way ask at once, as after a pause of the server. A load that is
// carried gets over it. Where pauses are all alike one that is not goes on in waves, each of which
// is the echo of the one before it; by itself it would come to that too, but only once a few more
// than usual ask at a time, for which windows are too short.
func (u *underWay) atOnce() {
	for i := range u.begun {
		u.begun[i].at = 0
	}
}

// goesOn returns what a conversation of an age requests next, if anything.
func (s *schedule) goesOn(item, age, request int64) (begun, bool) {
	list := []begun{{item: item}}
	named, latest := map[int64]int{}, map[int64]int64{}
	for len(list) > 0 {
		first := 0
		for i := range list {
			if list[i].at < list[first].at {
				first = i
			}
		}
		x := list[first]
		if list = slices.Delete(list, first, first+1); x.at > age && len(list) == 0 {
			return begun{at: x.at - age, item: x.item, since: x.since - age}, true
		}
		end := x.at + request
		for _, next := range s.talks.src.Follow(x.item, true) {
			at := end + int64(next.After)
			if next.Join > 1 {
				latest[next.Item] = max(latest[next.Item], at)
				if named[next.Item]++; named[next.Item] < next.Join {
					continue
				}
				at = latest[next.Item]
			}
			list = append(list, begun{at, next.Item, end})
		}
	}
	return begun{}, false
}

// Next implements [arrival.Process].
func (u *underWay) Next() int64 {
	if len(u.begun) > 0 && u.begun[0].at <= u.next {
		b := u.begun[0]
		u.begun, u.items = u.begun[1:], append(u.items, b.item)
		return b.at
	}
	at := u.next
	u.items = append(u.items, int64(len(u.items)))
	u.next = u.arrivals.Next()
	return at
}

// itemNumber is an item of the workload: what comes by itself is numbered as it comes.
func (u *underWay) itemNumber(item int64) int64 {
	if item < int64(len(u.items)) {
		return u.items[item]
	}
	return item
}

// At implements [workload.Source].
func (u *underWay) At(item int64) (workload.Request, error) { return u.Sessions.At(u.itemNumber(item)) }

// Follow implements [workload.Sessions].
func (u *underWay) Follow(item int64, answered bool) []workload.Next {
	return u.Sessions.Follow(u.itemNumber(item), answered)
}

// fillCache puts what was said before into an engine's cache, what was answered last the last.
func (u *underWay) fillCache(e sim.Model) error {
	list := slices.Clone(u.begun)
	slices.SortFunc(list, func(a, b begun) int { return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.item, b.item)) })
	for i, b := range list {
		r, err := u.Sessions.At(b.item)
		if err != nil {
			return err
		}
		if r.History <= 0 {
			continue
		}
		for _, m := range r.Messages {
			for k := range m.Segments { // nothing of it was answered in this load
				m.Segments[k].Served = false
			}
		}
		j := sim.Job{ID: math.MinInt64 + int64(i), Prompt: r.History, Output: 1, Content: loadgen.PromptContent(&r, max(r.Input, 1)), Session: uint64(r.Session - workload.Unknown)}
		switch e := e.(type) {
		case sim.Resumable:
			e.Resume(j)
		case sim.Warmable:
			e.Warm(j)
		}
	}
	return nil
}

// requestTime is about how long a request of a conversation takes where so many begin in a second,
// in seconds; serves is false where that is more than is served: it is then as long as at the most
// that is.
func (s *schedule) requestTime(d *deploy.Deployment, rate float64) (took float64, serves bool) {
	steady := func(rate float64) (time.Duration, bool) {
		each := rate * s.talks.turns / float64(max(d.DataParallel, 1))
		return d.SteadyResidence(each, int(s.input)-s.computedTokens(), s.computedTokens(), int(s.output))
	}
	t, serves := steady(rate)
	if serves {
		return t.Seconds(), true
	}
	for lo, hi := 0.0, rate; hi-lo > 0.01*hi && hi > 1e-9; {
		middle := (lo + hi) / 2
		if x, ok := steady(middle); ok {
			lo, t = middle, x
		} else {
			hi = middle
		}
	}
	return t.Seconds(), false
}

// fitsCache says whether the cache of an engine holds what is said by all that are under way where
// so many conversations begin in a second.
func (s *schedule) fitsCache(d *deploy.Deployment, rate float64) bool {
	request, serves := s.requestTime(d, rate)
	return serves && rate*s.totalDuration(request)*(s.input+s.output) <= float64(d.KVTokens())
}
