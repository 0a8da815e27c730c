package metrics

import (
	"math"

	"pitot/internal/metrics/validity"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/telemetry"
)

// server gathers what servers and GPUs tell of themselves, and what of the requests it
// is held against.
type server struct {
	t0, t1  int64 // the window
	samples telemetry.Samples
	ours    ours
}

// ours holds what was sent and answered, as far as it is compared with what the server counts.
type ours struct {
	ended, ttft int64 // requests with a first token that ended within the window, and their TTFT from sent: the sum, nanoseconds
	tokens      int64 // of prompts and answers, at any time
	uncounted   bool  // there were more, and it is not known how many
	several     bool  // some request had several answers, of which servers tell each by itself
	last        int64 // when the last request of any time was done
}

// countSample takes in a sample of any time.
func (s *server) countSample(x *record.Sample) {
	if x.Source != record.SourceClient && x.Source != record.SourceHost {
		s.samples.Add(x.Source, telemetry.Signal(x.Name), x.T, x.Value)
	}
}

// countRow takes in a request of any time. Of one that was not answered no more is known
// than what it may have taken.
func (s *server) countRow(r *record.Row) {
	o := &s.ours
	if r.Outcome == record.Unsent {
		return
	}
	o.last = max(o.last, r.Done)
	o.several = o.several || r.Choices > 1
	prompt, output := int64(r.PromptTokens), int64(r.CompletionTokens)
	if r.Outcome != record.OK {
		prompt, output = max(prompt, int64(r.InputPlanned)), max(output, int64(r.OutputPlanned))
	}
	o.uncounted = o.uncounted || prompt < 0 || output < 0 || r.Choices > 1 // engines count the prompt of each choice
	o.tokens += max(prompt, 0) + max(output, 0)
	if r.Outcome == record.OK && r.FirstToken >= 0 && r.Sent >= 0 && r.LastToken >= s.t0 && r.LastToken < s.t1 {
		o.ended++
		o.ttft += r.FirstToken - r.Sent
	}
}

// told holds what a [metric.Derived] one follows from.
type told struct {
	*telemetry.Window
	*server
}

// derived are the metrics that have a function of their own; false where what they need
// is not known.
var derived = map[metric.Name]func(told) (float64, bool){
	metric.ServerClientTTFT: func(t told) (float64, bool) {
		_, queue := t.Ratio(telemetry.QueueSum, telemetry.QueueCount)
		_, prefill := t.Ratio(telemetry.PrefillSum, telemetry.PrefillCount)
		return t.ours.meanTTFT(), queue && prefill && t.ours.ended > 0 && !t.ours.several
	},
	metric.ServerFront: func(t told) (float64, bool) {
		queue, known := t.Ratio(telemetry.QueueSum, telemetry.QueueCount)
		prefill, also := t.Ratio(telemetry.PrefillSum, telemetry.PrefillCount)
		x := t.ours.meanTTFT() - 1e3*(queue+prefill)
		return x, known && also && t.ours.ended > 0 && x >= 0 && !t.ours.several
	},
	metric.ServerPrefillRate: func(t told) (float64, bool) {
		x, ok := t.Ratio(telemetry.ComputedTokens, telemetry.PrefillSum)
		return x, ok && !t.ours.several // the time is that of each answer, the tokens are computed once
	},
	metric.ServerForeign: func(t told) (float64, bool) { return t.foreignShare() },
	metric.ServerCPU: func(t told) (float64, bool) {
		if x, ok := t.Rate(telemetry.ProcessCPU); ok {
			return x, true
		}
		return t.Rate(telemetry.ListenerCPU)
	},
	metric.ServerAllCPU: func(t told) (float64, bool) { return t.Rate(telemetry.ServerCPU) },
	metric.ServerSamples: func(t told) (float64, bool) {
		g, ok := t.Gauge(telemetry.Running)
		return float64(g.N), ok
	},
}

// meanTTFT is that of the requests that ended within the window, in milliseconds.
func (o *ours) meanTTFT() float64 { return float64(o.ttft) / float64(o.ended) / 1e6 }

// signalValues are the metrics that follow from the samples, by their fields; nil without
// any. Counters of a server that was restarted say nothing.
func (s *server) signalValues(signals []metric.Signal) map[string]float64 {
	var values map[string]float64
	window := s.samples.WindowOf(s.t0, s.t1)
	for i := range signals {
		d := &signals[i]
		x, ok := s.signalValue(d, &window)
		if d.Scale != 0 {
			x *= d.Scale
		}
		if !ok || math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		if values == nil {
			values = map[string]float64{}
		}
		values[d.FieldName()] = x
	}
	return values
}

// signalValue is that of one signal, in its own unit.
func (s *server) signalValue(d *metric.Signal, w *telemetry.Window) (float64, bool) {
	switch d.Combine {
	case metric.Growth:
		return w.Growth(d.From)
	case metric.Ratio:
		return w.Ratio(d.From, d.Per)
	case metric.Total:
		return s.counterGrowth(d.From)
	case metric.Derived:
		if of := derived[d.Name]; of != nil {
			return of(told{w, s})
		}
		return 0, false
	}
	g, ok := w.Gauge(d.From)
	switch d.Combine {
	case metric.Average:
		return g.Mean, ok
	case metric.Most:
		return g.Max, ok
	}
	return g.Min, ok
}

// counterGrowth returns the growth of a counter from before the load to after it.
func (s *server) counterGrowth(signal telemetry.Signal) (float64, bool) {
	return s.samples.TotalGrowth(signal, s.ours.last)
}

// foreignShare is the share of the tokens that the server counted over the load that were
// not this run's.
func (s *server) foreignShare() (float64, bool) {
	prompt, known := s.counterGrowth(telemetry.PromptTokens)
	output, also := s.counterGrowth(telemetry.OutputTokens)
	all := prompt + output
	return max(0, all-float64(s.ours.tokens)) / all, known && also && all > 0 && !s.ours.uncounted
}

// servedRequests returns the number of requests that the server counted, with those that it was
// sent and answered. It returns nil where that is not known.
func (f *Fold) servedRequests() *validity.Served {
	if f.flow.generating == 0 { // of embeddings engines count each text, and some the query
		return nil
	}
	n, known := f.server.counterGrowth(telemetry.Requests)
	if !known {
		return nil
	}
	return &validity.Served{Counted: n, Answered: float64(f.answered), Sent: float64(f.asked+f.earlier) * float64(max(f.choices, 1))}
}
