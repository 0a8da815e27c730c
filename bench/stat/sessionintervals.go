package main

import (
	"fmt"
	"math"

	"pitot/internal/metrics"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// sessionIntervals are those of runs whose requests come in sessions.
func sessionIntervals() table {
	return table{
		name: "intervals-sessions",
		about: "Intervals of one run of conversations, by the code that measures, in queues from empty. " +
			"Window: in lengths of a conversation. TTFT is of all requests; turn 1, TTFT of the first ones, and final, the time to the last answer, are by whole conversations. " +
			"The constants were chosen on the first four systems, and nothing on the others. " +
			"Shown: the share of runs that show it. Holds: of these, how many hold the truth, below and above how many lie wholly on one side. Width: median of upper end ÷ lower one.",
		header: []string{"system", "utilisation", "window", "of", "shown", "holds", "below", "above", "width"},
		reps:   40,
		slow:   true,
		rows: func(reps int, seed uint64) (rows [][]string) {
			list := []struct {
				name string
				of   conversed
			}{
				{"chats", chats}, {"chats alike", chatsE2E}, {"agents", agents}, {"agents alike", agentsAlike},
				{"one server", conversed{servers: 1, least: 2, most: 6, pause: 5}},
				{"long agents", conversed{servers: 32, least: 60, pause: 1, alike: .3}},
				{"long pauses", conversed{servers: 4, least: 1, most: 10, pause: 30, alike: 1}},
			}
			utilisations, windows := []float64{.2, .5, .8}, []float64{20, 40}
			found := make([][][]string, len(list)*len(utilisations)*len(windows))
			together(len(found), func(i int) {
				one := list[i/len(utilisations)/len(windows)]
				found[i] = one.of.intervals(one.name, utilisations[i/len(windows)%len(utilisations)], windows[i%len(windows)], reps, seed+uint64(i)<<32)
			})
			for _, f := range found {
				rows = append(rows, f...)
			}
			return rows
		},
	}
}

// turnOf is a request as it was served; times in seconds.
type turnOf struct {
	due
	turn       int
	ttft, took float64
}

// next serves the next request; turns counts those of each session under way.
func (q *conversing) nextTurn(turns map[int]int) turnOf {
	r, wait, took := q.step()
	t := turnOf{r, turns[r.session], wait + .1*(took-wait), took}
	if turns[r.session]++; r.left == 0 {
		delete(turns, r.session)
	}
	return t
}

// row is its record.
func (t *turnOf) row(id int64, last map[int]int64) record.Row {
	const each = 100 // tokens that a turn adds
	r := record.BlankRow()
	r.ID, r.Stream, r.Outcome, r.Status = id, true, record.OK, 200
	r.Due = int64(t.at * 1e9)
	r.Eligible, r.Ready, r.Sent = r.Due, r.Due, r.Due
	r.FirstToken = r.Due + int64(t.ttft*1e9)
	r.LastToken = max(r.Due+int64(t.took*1e9), r.FirstToken+1)
	r.FirstAnswer, r.Headers, r.Done = r.FirstToken, r.FirstToken, r.LastToken
	r.CompletionTokens, r.Chunks = each, 1
	r.Session, r.Turn, r.Turns, r.History, r.PromptTokens = int64(t.session), int32(t.turn), int32(t.turn+t.left+1), int32(each*t.turn), int32(each*(t.turn+1))
	if t.turn > 0 {
		r.After = last[t.session]
	}
	last[t.session] = id
	return r
}

// What intervals are of.
const (
	ofMean, ofMedian, ofFirst, ofFinal = "TTFT mean", "TTFT p50", "turn 1 p50", "final p50"
)

// truth is that of a long run, in the units of reports.
func (s conversed) truth(rate float64, seed uint64) map[string]float64 {
	const requests, warm = 400_000, 20_000
	q := s.begin(seed)
	q.rate = rate
	turns, begun := map[int]int{}, map[int]float64{}
	var ttft, first, final []float64
	for i := range requests {
		t := q.nextTurn(turns)
		if t.turn == 0 {
			begun[t.session] = t.at
		}
		if i >= warm {
			if ttft = append(ttft, 1e3*t.ttft); t.turn == 0 {
				first = append(first, 1e3*t.ttft)
			}
			if t.left == 0 {
				final = append(final, t.at+t.took-begun[t.session])
			}
		}
		if t.left == 0 {
			delete(begun, t.session)
		}
	}
	mean, _ := stats.Moments(ttft)
	return map[string]float64{ofMean: mean, ofMedian: median(ttft), ofFirst: median(first), ofFinal: median(final)}
}

// intervals counts those of runs whose windows are so many conversations long.
func (s conversed) intervals(name string, utilisation, windows float64, reps int, seed uint64) (rows [][]string) {
	mean, _ := s.turns()
	rate, think := utilisation*float64(s.servers)/mean, s.pause*1e3
	length := mean + (mean-1)*s.pause
	window, warm := math.Ceil(windows*length)+1, 5*length
	truth := s.truth(rate, seed)
	order := []string{ofMean, ofMedian, ofFirst, ofFinal}
	cases := map[string]*intervalCase{}
	for _, of := range order {
		cases[of] = &intervalCase{}
	}
	for r := range reps {
		q := s.begin(seed + uint64(1+r))
		q.rate = rate
		turns, last := map[int]int{}, map[int]int64{}
		var frame record.Frame
		for t := q.nextTurn(turns); t.at < warm+window+10*length; t = q.nextTurn(turns) {
			row := t.row(int64(len(frame.Rows)), last)
			frame.Chunks = append(frame.Chunks, record.Chunk{Request: row.ID, T: row.LastToken, Earliest: row.LastToken, Tokens: row.CompletionTokens})
			frame.Rows = append(frame.Rows, row)
		}
		f := metrics.NewFold(metrics.Setup{T0: int64(warm * 1e9), T1: int64((warm + window) * 1e9), Residence: 1e9,
			Load: result.Load{Loop: "open", Rate: &rate, Turns: &mean, ThinkMS: &think}})
		f.Add(frame)
		p := f.Point()
		ttft := p.Metrics.SummaryOf(metric.TTFT)
		found := map[string][2]float64{}
		for of, key := range map[string]string{ofMean: metric.Mean, ofMedian: "p50"} {
			if v, ok := ttft.CI95[key]; ok {
				found[of] = v
			}
		}
		for of, v := range map[string]*[2]float64{ofFirst: p.Sessions.ByTurn[0].TTFT.P50CI95, ofFinal: p.Sessions.FinalS.P50CI95} {
			if v != nil {
				found[of] = *v
			}
		}
		for of, c := range cases {
			v, ok := found[of]
			c.Shown.count(ok)
			c.Holds.addIf(ok, v[0] <= truth[of] && truth[of] <= v[1])
			c.Below.addIf(ok, v[1] < truth[of])
			c.Above.addIf(ok, v[0] > truth[of])
			if ok {
				c.Widths = append(c.Widths, v[1]/v[0])
			}
		}
	}
	for _, of := range order {
		c, width := cases[of], "none"
		if len(c.Widths) > 0 {
			width = fmt.Sprintf("%.2f", median(c.Widths))
		}
		rows = append(rows, []string{name, number(utilisation), number(windows), of, c.Shown.String(), c.Holds.String(), c.Below.String(), c.Above.String(), width})
	}
	return rows
}
