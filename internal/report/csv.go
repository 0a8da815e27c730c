package report

import (
	"encoding/csv"
	"io"
	"strconv"

	"pitot/internal/result"
)

// CSV writes a line for each point: its load and what run.json has of it, at
// full precision. What is not known is empty.
func (m Model) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	var head []string
	var rows [][]string
	for i := range m.run.Points {
		p := &m.run.Points[i]
		var row []string
		head = head[:0]
		add := func(name, value string) { head, row = append(head, name), append(row, value) }
		number := func(name string, x *float64) {
			if x == nil {
				add(name, "")
				return
			}
			add(name, strconv.FormatFloat(*x, 'g', -1, 64))
		}
		add("point", strconv.Itoa(i+1))
		add("loop", p.Load.Loop)
		load := p.Load.Value()
		number("load", &load)
		number("window_s", &p.Seconds.Window)
		for _, c := range []struct {
			name string
			n    int
		}{{"due", p.Requests.Due}, {"ok", p.Requests.OK}, {"failed", p.Requests.Failed}, {"cut", p.Requests.Cut}, {"unsent", p.Requests.Unsent}} {
			add(c.name, strconv.Itoa(c.n))
		}
		number("requests_per_s", p.Throughput.RequestsPerS)
		number("input_tokens_per_s", p.Throughput.InputTokensPerS)
		number("output_tokens_per_s", p.Throughput.OutputTokensPerS)
		goodput, attained, met := new(result.Goodput), (*float64)(nil), ""
		if p.Goodput != nil {
			goodput = p.Goodput
			number("goodput_requests_per_s", &goodput.RequestsPerS)
		} else {
			number("goodput_requests_per_s", nil)
		}
		number("goodput_output_tokens_per_s", goodput.OutputTokensPerS)
		if p.SLO != nil {
			attained, met = p.SLO.Attained, p.SLO.Met
		}
		number("attained", attained)
		add("met", met)
		for _, x := range []struct {
			name string
			s    *result.Summary
		}{{"ttft_ms", p.Metrics.TTFT}, {"tpot_ms", p.Metrics.TPOT}, {"itl_ms", p.Metrics.ITL}, {"icl_ms", p.Metrics.ICL}, {"e2e_ms", p.Metrics.E2E}} {
			s := x.s
			if s == nil {
				s = new(result.Summary)
			}
			add(x.name+"_n", strconv.FormatInt(s.N, 10))
			number(x.name+"_mean", s.Mean)
			for _, c := range columns() {
				number(x.name+"_"+c.key, c.of(s))
			}
		}
		add("stability", p.Stability)
		add("outcome", p.Outcome)
		add("verdict", string(p.Verdict))
		rows = append(rows, row)
	}
	if len(rows) > 0 {
		rows = append([][]string{head}, rows...)
	}
	return out.WriteAll(rows)
}
