package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
)

// baselineName begins the schema of every version of baselines.
const baselineName = "pitot.baseline/"

// BaselineSchema is the schema of a baseline, baseline.schema.json.
const BaselineSchema = baselineName + "v1"

// Baseline holds the runs that later runs are compared with. They lack what a comparison does not
// look at, so that they are small enough to be committed.
type Baseline struct {
	Schema string       `json:"schema"`
	Runs   []result.Run `json:"runs"`
}

// NewBaseline makes a baseline of the sides' runs. Every error is a [say.Error].
func NewBaseline(sides []Side) (Baseline, error) {
	b := Baseline{Schema: BaselineSchema}
	for _, s := range sides {
		if len(s.Others) > 0 {
			return b, say.Errorf("%s was measured by %s: a baseline holds runs of Pitot", s.Name, instrumentName(s.Others[0])).WithHint("name " + s.Others[0].File + " itself as a side")
		}
		for _, r := range s.Runs {
			b.Runs = append(b.Runs, strippedRun(r.Run))
		}
	}
	return b, nil
}

// JSON is the file, with a line for each run, so that a diff shows which one
// changed.
func (b Baseline) JSON() ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\"schema\": %q, \"runs\": [", b.Schema)
	for i := range b.Runs {
		line, err := json.Marshal(&b.Runs[i])
		if err != nil {
			return nil, fmt.Errorf("write baseline: %w", err)
		}
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "\n%s", line)
	}
	out.WriteString("\n]}\n")
	return out.Bytes(), nil
}

// strippedRun is a run without what a comparison does not look at.
func strippedRun(run *result.Run) result.Run {
	out := *run
	out.Command, out.Curve, out.Points = []string{}, nil, []result.Point{}
	if run.Capacity != nil {
		c := *run.Capacity
		c.Trail, c.USDPerMGoodOutput = []result.CapacityProbe{}, run.CapacityCost()
		out.Capacity = &c
	}
	for _, p := range comparablePoints(run) {
		p.Until, p.Checks, p.StabilityWhy = nil, []result.Check{}, result.Reason{}
		p.Requests.ErrorExamples = nil
		p.Metrics = serverMetrics(p.Metrics)
		classes := map[string]result.Class{}
		for name, c := range p.Classes {
			c.Requests.ErrorExamples = nil
			c.Metrics = serverMetrics(c.Metrics)
			classes[name] = c
		}
		if p.Classes = nil; len(classes) > 0 {
			p.Classes = classes
		}
		out.Points = append(out.Points, p)
	}
	return out
}

// serverMetrics are the metrics that are the server's.
func serverMetrics(m result.Metrics) result.Metrics {
	kept := result.Metrics{Undefined: m.Undefined}
	for _, d := range m.List {
		if !d.Client {
			kept.List = append(kept.List, result.Distribution{Metric: d.Metric, Summary: bareSummary(d.Summary)})
		}
	}
	return kept
}

// bareSummary is a summary without what a comparison does not look at.
func bareSummary(s *result.Summary) *result.Summary {
	if s == nil {
		return nil
	}
	out := *s
	out.Phi, out.Bounds, out.NoInterval, out.P99Numpy = nil, nil, nil, nil
	return &out
}

func decodeBaseline(path string, data []byte) ([]Source, error) {
	refuse := func(problem string) ([]Source, error) {
		return nil, say.Errorf("%s %s", path, problem).WithHint("write it again: pitot compare --save-baseline " + path + " RUN…")
	}
	var b struct {
		Schema string            `json:"schema"`
		Runs   []json.RawMessage `json:"runs"`
	}
	switch err := json.Unmarshal(data, &b); {
	case b.Schema != "" && b.Schema != BaselineSchema: // whatever its runs are
		return refuse(fmt.Sprintf("has schema %s; this pitot reads %s", b.Schema, BaselineSchema))
	case err != nil:
		return refuse(fmt.Sprintf("is damaged: %v", err))
	case len(b.Runs) == 0:
		return refuse("holds no run")
	}
	var runs []Source
	for _, text := range b.Runs {
		run, err := result.Decode(text)
		var schema *result.SchemaError
		switch {
		case errors.As(err, &schema):
			return nil, rundir.UnknownSchema("a run in "+path, schema)
		case err != nil:
			return refuse(fmt.Sprintf("is damaged: %v", err))
		}
		runs = append(runs, Source{path, run})
	}
	return runs, nil
}
