package marks

import (
	"encoding/json"
	"math"
	"time"

	"pitot/internal/data/metric"
	v1 "pitot/internal/data/result/v1"
	"pitot/internal/slo"
)

// Version 1 had no version. Its point was a Go struct as it stood, by the names
// of its fields; these types are what it was, and never change.

type oldPoint struct {
	T0, T1 int64

	Load     v1.Load
	SLO      oldSLO
	GPUs     int
	GPUPrice float64
	Stamps   string
	Planned  int
	Exact    bool
	Requests int64
	Cold     bool
	Seeded   bool
	Prompts  int
	Stage    string

	Residence  int64
	AutoWarmup bool
}

type oldSLO struct {
	Limits []struct {
		Metric     string
		Percentile float64
		Max        int64 // nanoseconds
		MaxPercent float64
	}
	SharePercent float64
}

// spec is the objective as it is written.
func (s oldSLO) spec() string {
	spec := slo.Spec{SharePercent: s.SharePercent}
	for _, l := range s.Limits {
		spec.Limits = append(spec.Limits, slo.Limit{
			Metric: metric.Name(l.Metric), Percentile: l.Percentile, Max: time.Duration(l.Max), MaxPercent: l.MaxPercent,
		})
	}
	return spec.String()
}

func pointV1(data []byte) (Point, error) {
	var o oldPoint
	err := json.Unmarshal(data, &o)
	p := Point{
		Version: Version, T0: o.T0, Load: loadV1(o.Load), SLO: o.SLO.spec(), GPUs: o.GPUs, GPUPrice: o.GPUPrice, Stamps: o.Stamps,
		Planned: o.Planned, Exact: o.Exact, Requests: o.Requests, Cold: o.Cold, Seeded: o.Seeded, Prompts: o.Prompts, Stage: o.Stage,
		Residence: o.Residence, AutoWarmup: o.AutoWarmup,
	}
	if o.T1 != math.MaxInt64 {
		p.T1 = &o.T1
	}
	return p, err
}

func windowV1(data []byte) (Window, error) {
	var o struct {
		T1     int64     `json:"t1"`
		Ended  int64     `json:"ended"`
		GaveUp bool      `json:"gave_up"`
		Gone   *int64    `json:"gone"`
		Until  *v1.Until `json:"until"`
	}
	err := json.Unmarshal(data, &o)
	w := Window{Version: Version, T1: o.T1, Ended: o.Ended, GaveUp: o.GaveUp, Gone: o.Gone}
	if o.Until != nil {
		u := Until(*o.Until)
		w.Until = &u
	}
	return w, err
}

func aloneV1(data []byte) (Alone, error) {
	a := Alone{Version: Version}
	return a, json.Unmarshal(data, &a.Took)
}

func endV1(data []byte) (End, error) {
	var o struct {
		Ended       string `json:"ended"`
		Interrupted bool   `json:"interrupted"`
	}
	err := json.Unmarshal(data, &o)
	return End{Version, o.Ended, o.Interrupted}, err
}

func loadV1(l v1.Load) Load {
	return Load{Loop: l.Loop, Rate: l.Rate, Arrival: l.Arrival, Concurrency: l.Concurrency, ThinkMS: l.ThinkMS, MaxInFlight: l.MaxInFlight}
}
