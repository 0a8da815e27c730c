package choose

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"pitot/internal/config"
	"pitot/internal/loadgen"
	"pitot/internal/session"
	"pitot/internal/sim/deploy"
	"pitot/internal/slo"
	"pitot/internal/workload"
	"pitot/internal/workload/arrival"
)

// conversations holds the workload where requests come in conversations. A rate is then one of
// conversations that begin. A later turn follows all that was said, and when it comes depends on
// the answer before it. So the workload itself is simulated, and no sample of requests.
type conversations struct {
	src    workload.Sessions
	turns  float64 // requests of one, on average
	pauses float64 // seconds of one in which nothing is asked: a user reads, a tool runs

	most, mostPauses float64 // the same of the longest that were seen
	endless          bool    // there are as many as are asked for
}

// Bounds of what is drawn of conversations.
const (
	leastTalks  = 15  // conversations of a window, at least
	mostWalked  = 400 // that are looked at before any is simulated
	settled     = 1.2 // times as long as a conversation lasts, before a window: about as many end then as begin
	resettled   = 0.3 // the same where as many are under way from the beginning
	recovered   = 2.0 // the same where all of these ask at once
	usualTokens = 200 // of an answer: of longer ones fewer are asked for, for it is tokens that take time
	oneSpan     = 400 // requests of a look whose window is as long as a conversation, at least: how many are under way changes no sooner
)

// drawConversations draws conversations, and finds what they are like. Those who call it close what
// it gives when all is simulated.
func drawConversations(ask *config.Ask, law *arrival.Law) (s *schedule, done func(), err error) {
	src, done, err := session.OpenWorkload(ask, 0)
	if err != nil {
		return nil, nil, err
	}
	of, ok := src.(workload.Sessions)
	if !ok {
		done()
		return newlyDrawn(ask, law)
	}
	s = &schedule{law: law, seed: ask.Seed, talks: &conversations{src: of, endless: ask.IsGenerated() && ask.Mix == nil}}
	shared := float64(ask.System + ask.Prefix + ask.SubAgents.System) // what others may have asked before
	n := 0.0
	talks := 0.0
	for ; talks < mostWalked && n < drawn; talks++ {
		named := map[int64]int{}
		asks, pauses := 0.0, 0.0
		for items := []int64{int64(talks)}; len(items) > 0; items = items[1:] {
			q, err := of.At(items[0])
			if err != nil {
				if talks > 0 && len(items) == 1 && items[0] == int64(talks) { // a file has no more
					return s.withMeans(n, talks), done, nil
				}
				done()
				return nil, nil, err
			}
			a := drawnRequest{Output: int32(max(1, q.Output))}
			n++
			asks++
			s.input += float64(max(1, q.Input))
			s.output += float64(a.Output)
			s.most = max(s.most, max(1, q.Input)+int(a.Output))
			if ask.IsGenerated() && ask.Tree == nil && ask.Mix == nil {
				own := float64(max(q.Input, 0) - max(q.History, 0))
				if q.History <= 0 {
					own -= shared
				}
				a.Input = int32(max(own, 0))
				s.own += float64(a.Input)
			}
			s.asked = append(s.asked, a)
			for _, next := range of.Follow(items[0], true) {
				join := max(next.Join, 1)
				pauses += next.After.Seconds() / float64(join)
				if named[next.Item]++; named[next.Item] == join {
					items = append(items, next.Item)
				}
			}
		}
		s.talks.pauses += pauses
		s.talks.most, s.talks.mostPauses = max(s.talks.most, asks), max(s.talks.mostPauses, pauses)
	}
	return s.withMeans(n, talks), done, nil
}

// newlyDrawn is a schedule of requests that stand alone.
func newlyDrawn(ask *config.Ask, law *arrival.Law) (*schedule, func(), error) {
	s, err := newSchedule(ask, law, drawn)
	return s, func() {}, err
}

// withMeans makes means of what was added up of so many requests of so many conversations.
func (s *schedule) withMeans(requests, talks float64) *schedule {
	s.input, s.output, s.own = s.input/requests, s.output/requests, s.own/requests
	s.talks.turns, s.talks.pauses = requests/talks, s.talks.pauses/talks
	return s
}

// perArrival returns the number of requests that follow from each that comes by itself, itself
// included, on average.
func (s *schedule) perArrival() float64 {
	if s.talks == nil {
		return 1
	}
	return s.talks.turns
}

// totalDuration returns how long what comes by itself is under way with all that follows it, in
// seconds. request is the time that one request takes.
func (s *schedule) totalDuration(request float64) float64 {
	if s.talks == nil {
		return request
	}
	return s.talks.turns*request + s.talks.pauses
}

// serveConversations puts a load of conversations to a deployment, whose requests take so many
// times as long as is reckoned: those that begin at the rate, and of their requests those are
// judged that are due in a window, which begins when as many conversations end as begin; closely
// looked at, when a burst should be over that all who are under way make at the beginning. The load
// goes on until all of these are answered. What seems more than is served begins with as many as
// are under way at the most that is, for it comes to that, and a load that grows slowly would not
// within a window.
func (s *schedule) serveConversations(ctx context.Context, d *deploy.Deployment, claims []slo.Claim, rate, slower float64, e *effort) (*served, error) {
	var arrivals arrival.Process
	arrivals, err := s.law.NewProcess(rate, s.seed, 0)
	if err != nil {
		return nil, err
	}
	request, _ := s.requestTime(d, rate)
	request *= slower
	src, engine, settle := s.talks.src, newBriefModel(d, s.seed), settled
	if s.talks.endless {
		u, err := s.underWay(arrivals, rate, request, e.close)
		if err != nil {
			return nil, err
		}
		if err := u.fillCache(engine); err != nil {
			return nil, err
		}
		src, arrivals, settle = u, u, resettled
		if e.close {
			u.atOnce()
			settle = recovered
		}
	}
	from := int64(min(settle*s.totalDuration(request), (24*time.Hour).Seconds()) * 1e9)
	window := int64(max(float64(e.count)/(rate*s.talks.turns), e.spans*s.totalDuration(request)) * 1e9)
	ctx2, enough := context.WithCancel(ctx)
	defer enough()
	t := &tally{claims: claims, window: [2]int64{from, from + window}, begin: math.MaxInt64, left: make([]int, len(claims)), enough: enough}
	for c := range claims {
		t.left[c] = int(e.endEarlyFactor()*claims[c].Share*rate*s.talks.turns*float64(window)/1e9) + 10
	}
	core := loadgen.NewCore(loadgen.Config{Arrivals: arrivals, Follow: loadgen.FollowOf(src), Warmup: from, Window: window})
	loadgen.Run(ctx2, core, loadgen.NewVirtual(loadgen.VirtualConfig{Engine: engine, Source: src, Sink: t}))
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	slices.SortFunc(t.rows, func(a, b judged) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.id, b.id)) })
	t.times = make([][]float64, len(claims))
	for c := range claims {
		for _, r := range t.rows {
			t.times[c] = append(t.times[c], r.times[c])
		}
	}
	x := s.loadOutcome(t, rate)
	if !x.Grows {
		x.Tokens = rate * s.talks.turns * s.output
	}
	return x, nil
}

// judged holds what claims say of a request.
type judged struct {
	due, id int64
	times   []float64
}
