package experiment

import (
	"strings"

	"pitot/internal/cost"
	"pitot/internal/say"
	"pitot/internal/twin/deploy"
)

// Forecast is what a plan takes, part by part.
type Forecast struct {
	Plan           *Plan
	Configurations int
	Rows           []RowForecast
	Launches       int // starts of the engine, of all configurations
	Seconds, USD   float64
	Requests       float64
	Done, Parts    int      // runs that are there already, of all
	Void           []string // runs that the plan has no use for any more
	Over           []string // what of the budget it is over
	Start          float64  // seconds that a start and a stop of a server take
	StartKnown     bool     // by those that were made; else it is a guess
	Unknown        []string // rows whose time is not known
	Notes          []string
}

// usualStart is what a start and a stop of a server are taken for before there was one, in
// seconds.
const usualStart = 90

// start is how long a start and a stop take: the mean of those that were made.
func (x *Experiment) start() (seconds float64, known bool) {
	n := 0
	for _, c := range x.Plan.planned() {
		for block := 1; block <= x.Plan.Launches; block++ {
			if rec, err := x.readLaunch(c, block); err == nil {
				for _, s := range rec.Starts {
					if len(s.Rows) > 0 && s.Starting > 0 {
						seconds, n = seconds+s.Starting+s.Stopping, n+1
					}
				}
			}
		}
	}
	if n == 0 {
		return usualStart, false
	}
	return seconds / float64(n), true
}

// RowForecast is one launch of one configuration in one row.
type RowForecast struct {
	Row           *Row
	Load          string
	Requests      float64
	Input, Output float64 // tokens
	Seconds       float64
}

const (
	// climbs is about how many loads the contract's row takes in a launch: those of the
	// first block are more, of later ones fewer.
	climbs = 3.5
	// leadIn is about how long a row warms up, in seconds.
	leadIn = 8
)

// Forecast works it out. What a closed loop takes is the twin's expectation.
func (x *Experiment) Forecast() *Forecast {
	p := x.Plan
	f := &Forecast{Plan: p, Configurations: len(p.Configurations())}
	f.Launches = f.Configurations * p.Launches
	d, _ := deploy.Parse(p.TwinSpec())
	each := make([]float64, f.Configurations) // seconds of a configuration
	for _, row := range p.Rows {
		one := &row.Plan
		in, out := one.Input.Mean()+one.PrefixMean(), one.Ask.Output.Mean()
		r := RowForecast{Row: row, Requests: float64(one.Requests)}
		seconds := one.Duration.Seconds()
		switch {
		case row.Name == p.Contract.Row:
			if one.Requests > 0 {
				seconds = float64(one.Requests) / one.Rate
			} else {
				r.Requests = one.Rate * seconds
			}
			r.Load = "around " + say.Exact(one.Rate) + "/s"
			seconds, r.Requests = climbs*(seconds+leadIn), climbs*r.Requests
		case one.Rate > 0:
			if one.Requests > 0 {
				seconds = float64(one.Requests) / one.Rate
			} else {
				r.Requests = one.Rate * seconds
			}
			r.Load = say.Exact(one.Rate) + "/s"
			seconds += leadIn
		default:
			r.Load = say.Plural(one.Concurrency, "user")
			switch {
			case d == nil && one.Requests > 0: // how long answers take is not known
				f.Unknown, seconds = append(f.Unknown, row.Name), 0
			case d != nil:
				each := d.Residence(int(in), int(out), one.Concurrency).Seconds()
				if one.Requests > 0 {
					seconds = each * r.Requests / float64(one.Concurrency)
				} else if each > 0 {
					r.Requests = seconds / each * float64(one.Concurrency)
				}
				seconds += 5 * each // warm-up
			}
			seconds += leadIn
		}
		r.Seconds, r.Input, r.Output = seconds, r.Requests*in, r.Requests*out
		f.Rows = append(f.Rows, r)
		for i, c := range p.Configurations() {
			each[i] += seconds * p.measured(c, row)
		}
		f.Requests += r.Requests * p.measures(row)
	}
	if p.Server != nil {
		f.Start, f.StartKnown = x.start()
		for i := range each {
			each[i] += f.Start * float64(p.Launches)
		}
		f.Notes = append(f.Notes, p.Server.Notes...)
		if len(f.Unknown) > 0 {
			f.Notes = append(f.Notes, "how long answers take is not known, and the time of rows with users is not counted ("+strings.Join(f.Unknown, ", ")+"): target: twin: sim:MODEL@GPU tells it")
		}
	}
	for i, c := range p.Configurations() {
		f.Seconds, f.USD = f.Seconds+each[i], f.USD+x.hourly(c)*each[i]/3600
		for block := 1; block <= p.Launches; block++ {
			for _, part := range p.parts(c, block) {
				f.Parts++
				if x.finished(&part) != nil {
					f.Done++
				} else if x.voided(&part) {
					f.Void = append(f.Void, part.Configuration.Name+", row "+part.Row.Name+", launch "+say.Count(part.Block))
				}
			}
		}
	}
	if b := p.Budget; b.Time > 0 && f.Seconds > b.Time.Seconds() {
		f.Over = append(f.Over, "time: "+say.Seconds(f.Seconds)+" of "+say.Span(b.Time))
	}
	if b := p.Budget; b.USD > 0 && f.USD > b.USD {
		f.Over = append(f.Over, "money: "+"$"+say.Dollars(f.USD)+" of $"+say.Dollars(b.USD))
	}
	return f
}

// hourly is what a configuration costs an hour, 0 where that is not known.
func (x *Experiment) hourly(c Configuration) float64 {
	one, gpus := &x.Plan.Judged().Plan, x.Plan.gpus(c)
	if one.GPUPrice != (cost.GPU{}) {
		return one.Price().OfTime(gpus, 3600)
	}
	if d := x.Plan.deployment(); d != nil {
		return d.USDPerHour * float64(gpus)
	}
	return 0
}

// Status is how far an experiment came.
type Status struct {
	Plan           *Plan
	Dir            string
	Blocks         int
	Launches, Left int // starts that are complete, and those that are still planned
	Configurations []ConfigurationStatus
	NotStarted     []Failure
	Waits          *Waiting // for a launch by hand, nil if it does not
}

// ConfigurationStatus is that of one of them.
type ConfigurationStatus struct {
	Name    string
	Parts   int // runs that are there
	Of      int
	GivenUp int // after so many launches, 0 if it is not
}

// Status says how far it came.
func (x *Experiment) Status() Status {
	p, d := x.Plan, x.decision()
	s := Status{Plan: p, Dir: x.Dir, Blocks: x.blocks(), NotStarted: x.NotStarted(), Waits: x.Waits()}
	for i, c := range p.Configurations() {
		one := ConfigurationStatus{Name: c.Name, GivenUp: d.Of[i].Left}
		for block := 1; block <= p.Launches; block++ {
			all := true
			for _, part := range p.parts(c, block) {
				one.Of++
				if x.finished(&part) != nil {
					one.Parts++
				} else {
					all = false
				}
			}
			if all {
				s.Launches++
			} else if !d.Enough && one.GivenUp == 0 {
				s.Left++
			}
		}
		s.Configurations = append(s.Configurations, one)
	}
	return s
}
