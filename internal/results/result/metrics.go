package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pitot/internal/results/metric"
)

// Metrics are the distributions over the cohort, in the order of the catalogue.
// One without a summary is undefined for this run; Undefined says why.
//
// In JSON they are an object by their keys, in which those with a point in
// their key lie in an object of their own: "service.ttft_ms".
type Metrics struct {
	List      []Distribution
	Undefined map[string]Reason // key of a metric: why there is none
}

// Distribution is one metric over the cohort.
type Distribution struct {
	*metric.Metric
	*Summary // nil: undefined
}

// Views are a metric that counts from when a request was due, and the same from when
// it was sent.
type Views struct{ Response, Service Distribution }

// AllViews are all such pairs.
func (m *Metrics) AllViews() (list []Views) {
	for _, s := range m.List {
		for _, r := range m.List {
			if r.Name == s.Unlike && r.FromDue && !s.FromDue {
				list = append(list, Views{r, s})
			}
		}
	}
	return list
}

// NoSteadyState returns why a summary has no values of a steady state, none if it has.
func (s *Summary) NoSteadyState() Reason {
	if s.Mean == nil && s.P50 == nil {
		return s.Withheld["mean"]
	}
	return Reason{}
}

// MetricsOf puts summaries under the metrics of the catalogue that they are of.
// The others are undefined.
func MetricsOf(of map[metric.Name]*Summary) (m Metrics) {
	for _, x := range metric.All().WithPercentiles() {
		m.List = append(m.List, Distribution{x, of[x.Name]})
	}
	return m
}

// Metrics are those of the catalogue and whatever else the run's points have.
func (r *Run) Metrics() metric.Catalogue {
	all := metric.All()
	for i := range r.Points {
		for _, d := range r.Points[i].Metrics.List {
			if all.Find(d.Name) == nil {
				all = append(all, d.Metric)
			}
		}
		for group, values := range map[string]map[string]float64{"window": r.Points[i].Window, "server": r.Points[i].Server} {
			for field := range values {
				if all.ByKey(group+"."+field) == nil {
					all = append(all, metric.NewUnknown(group+"."+field))
				}
			}
		}
	}
	known := len(metric.All())
	slices.SortStableFunc(all[known:], func(a, b *metric.Metric) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// FurtherMetrics are the metrics of the window and of the server that have no field of their
// own: those of the catalogue and whatever else the run's points have.
func (r *Run) FurtherMetrics() metric.Catalogue {
	return r.Metrics().Filter((*metric.Metric).IsFurther)
}

// SummaryOf is the summary of a metric, nil if it is undefined.
func (m Metrics) SummaryOf(name metric.Name) *Summary {
	for i := range m.List {
		if m.List[i].Name == name {
			return m.List[i].Summary
		}
	}
	return nil
}

// SetSummary puts a summary under a metric of the catalogue, in its place. Copies of m
// stay as they are.
func (m *Metrics) SetSummary(name metric.Name, s *Summary) {
	if len(m.List) == 0 {
		m.List = MetricsOf(nil).List
	}
	m.List = slices.Clone(m.List)
	for i := range m.List {
		if m.List[i].Name == name {
			m.List[i].Summary = s
		}
	}
}

// MarshalJSON writes every metric of the catalogue, null where there is none.
func (m Metrics) MarshalJSON() ([]byte, error) {
	list := slices.Clone(m.List)
	for _, x := range metric.All().WithPercentiles() {
		if !slices.ContainsFunc(list, func(d Distribution) bool { return d.Key == x.Key }) {
			list = append(list, Distribution{Metric: x})
		}
	}
	out := object{first: true}
	out.WriteByte('{')
	var groups []string
	for _, d := range list {
		if group, _, ok := strings.Cut(d.Key, "."); ok {
			if !slices.Contains(groups, group) {
				groups = append(groups, group)
			}
			continue
		}
		out.addField(d.Key, d.Summary)
	}
	for _, group := range groups {
		inner := object{first: true}
		inner.WriteByte('{')
		for _, d := range list {
			if of, key, ok := strings.Cut(d.Key, "."); ok && of == group {
				inner.addField(key, d.Summary)
			}
		}
		inner.WriteByte('}')
		if out.err == nil {
			out.err = inner.err
		}
		out.addField(group, json.RawMessage(inner.Bytes()))
	}
	if len(m.Undefined) > 0 {
		out.addField("undefined", m.Undefined)
	}
	out.WriteByte('}')
	return out.Bytes(), out.err
}

// object writes fields in an order of its own.
type object struct {
	bytes.Buffer
	first bool
	err   error
}

func (o *object) addField(key string, v any) {
	name, _ := json.Marshal(key) // a text
	data, err := json.Marshal(v)
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("%s: %w", key, err)
	}
	if !o.first {
		o.WriteByte(',')
	}
	o.first = false
	o.Write(name)
	o.WriteByte(':')
	o.Write(data)
}

// UnmarshalJSON reads them. A metric that this program does not know, of a run
// of a later one, is kept under its key.
func (m *Metrics) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	*m = Metrics{}
	if raw, ok := fields["undefined"]; ok {
		if err := json.Unmarshal(raw, &m.Undefined); err != nil {
			return err
		}
		delete(fields, "undefined")
	}
	all := metric.All().WithPercentiles()
	for _, x := range all {
		group, _, ok := strings.Cut(x.Key, ".")
		if !ok || fields[group] == nil {
			continue
		}
		var inner map[string]json.RawMessage
		if err := json.Unmarshal(fields[group], &inner); err != nil {
			return err
		}
		for key, raw := range inner {
			fields[group+"."+key] = raw
		}
		delete(fields, group)
	}
	var unknown metric.Catalogue
	for key := range fields {
		if all.ByKey(key) == nil {
			unknown = append(unknown, metric.NewUnknown(key))
		}
	}
	slices.SortFunc(unknown, func(a, b *metric.Metric) int { return strings.Compare(a.Key, b.Key) })
	for _, x := range append(all, unknown...) {
		d := Distribution{Metric: x}
		if raw, ok := fields[x.Key]; ok {
			if err := json.Unmarshal(raw, &d.Summary); err != nil {
				return fmt.Errorf("%s: %w", x.Key, err)
			}
		}
		m.List = append(m.List, d)
	}
	return nil
}
