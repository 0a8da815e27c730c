package estimate

import (
	"math"
	"strings"
	"testing"
	"time"

	"pitot/internal/config"
	"pitot/internal/cost"
	"pitot/internal/slo"
	"pitot/internal/workload"
)

// parts are those of a plan for 1,000 tokens in and 100 out, after a warm-up of 10 s.
func parts(edit func(p *config.Plan)) (Parts, *config.Plan) {
	p := config.Default()
	p.Input, p.Ask.Output = workload.FixedLength(1000), workload.FixedLength(100)
	p.Warmup, p.Duration = 10*time.Second, 50*time.Second
	edit(&p)
	return Parts{Ask: &p.Ask, Load: &p.Load, Good: &p.Good, GPUs: 2}, &p
}

func TestRun(t *testing.T) {
	precise, err := slo.ParsePrecision("p99 ttft +-5%")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		edit     func(p *config.Plan)
		requests float64
		time     time.Duration
		usd      float64
		noPrice  string
	}{
		"rate":           {func(p *config.Plan) { p.Rate = 2 }, 120, time.Minute, 0, "no price"},
		"requests":       {func(p *config.Plan) { p.Rate, p.Requests = 2, 100 }, 120, time.Minute, 0, "no price"},
		"exactly":        {func(p *config.Plan) { p.Concurrency, p.Requests, p.Exactly = 2, 100, true }, 100, 0, 0, "no price"},
		"users":          {func(p *config.Plan) { p.Concurrency = 2; p.TokenPrice.Input = 1 }, 0, time.Minute, 0, "how many requests"},
		"repeats":        {func(p *config.Plan) { p.Rate, p.Repeat = 2, 3 }, 360, 3 * time.Minute, 0, "no price"},
		"auto":           {func(p *config.Plan) { p.Rate, p.Warmup = 2, config.AutoWarmup }, 110, 55 * time.Second, 0, "no price"},
		"until":          {func(p *config.Plan) { p.Rate, p.Until = 2, precise }, 1220, 610 * time.Second, 0, "no price"},
		"price of GPUs":  {func(p *config.Plan) { p.Rate, p.GPUPrice.Hour = 2, 3 }, 120, time.Minute, .1, ""},
		"price of token": {func(p *config.Plan) { p.Rate = 2; p.TokenPrice = cost.Tokens{Input: 1, Output: 10} }, 120, time.Minute, .24, ""},
		"of a file":      {func(p *config.Plan) { p.Rate, p.Workload = 2, "f"; p.TokenPrice.Input = 1 }, 120, time.Minute, 0, "how many tokens"},
	} {
		from, _ := parts(c.edit)
		e := from.ForLoad(10 * time.Minute)
		if math.Abs(e.Requests-c.requests) > 1e-9 || e.Time != c.time || math.Abs(e.USD-c.usd) > 1e-9 || !strings.HasPrefix(e.NoPrice, c.noPrice) || (e.NoPrice == "") != (c.noPrice == "") {
			t.Errorf("%s: %+v", name, e)
		}
		if twice := e.Times(2); twice.Requests != 2*e.Requests || twice.Time != 2*e.Time || twice.USD != 2*e.USD || twice.Input != 2*e.Input || twice.Output != 2*e.Output {
			t.Errorf("%s, two launches: %+v", name, twice)
		}
	}
}

func TestSweepAndFind(t *testing.T) {
	from, p := parts(func(p *config.Plan) { p.Loads, p.Over, p.Budget = []float64{1, 3}, "rate", config.AutoBudget })
	if e := from.ForSweep(&p.Search); e.Requests != 240 || e.Time != 2*time.Minute || e.AtLeast {
		t.Errorf("%+v", e)
	}
	p.Requests = 30
	if e := from.ForSweep(&p.Search); e.Requests != 60 || e.Time != 60*time.Second {
		t.Errorf("%+v", e)
	}
	p.Requests, p.Loads, p.Duration, p.Points, p.GPUPrice = 0, nil, config.AutoDuration, 12, cost.GPU{Hour: 2}
	if e := from.ForSweep(&p.Search); !e.AtLeast || e.Requests != 0 || e.Time != 14*time.Minute || e.Longest != 122*time.Minute || e.NoPrice == "" {
		t.Errorf("%+v", e)
	}
	if e := from.ForSearch(20 * time.Minute); !e.AtMost || e.Time != 20*time.Minute || math.Abs(e.USD-4./3) > 1e-9 {
		t.Errorf("%+v", e)
	}
}

func TestSweepWithinABudget(t *testing.T) {
	from, p := parts(func(p *config.Plan) { p.Loads, p.Over, p.Budget = []float64{1, 3}, "rate", time.Minute })
	if e := from.ForSweep(&p.Search); e.Requests != 120 || e.Time != time.Minute || !e.AtMost {
		t.Errorf("%+v", e)
	}
	p.Loads, p.Duration, p.Points = nil, config.AutoDuration, 12
	if e := from.ForSweep(&p.Search); e.AtLeast || !e.AtMost || e.Time != time.Minute || e.Longest != 0 {
		t.Errorf("%+v", e)
	}
}

// The warm-up of a request that takes long alone is part of what a run sends.
func TestWarmupOfKnownResidence(t *testing.T) {
	p := config.Default()
	p.Rate, p.Duration = 4, 3*time.Second
	from := Parts{Ask: &p.Ask, Load: &p.Load, Good: &p.Good}
	if e := from.ForLoad(0); e.Requests != 32 || e.Time != 8*time.Second {
		t.Errorf("not known: %+v", e)
	}
	from.Residence = 3400 * time.Millisecond
	if e := from.ForLoad(0); e.Requests != 80 || e.Time != 20*time.Second {
		t.Errorf("3.4 s: %+v", e)
	}
}
