package experiment

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"pitot/internal/cost"
	"pitot/internal/experiment/decide"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/sim/deploy"
	"pitot/internal/stats"
)

// Forecast holds the expected time and cost of a plan, part by part, and the expected power of its
// launches.
type Forecast struct {
	Plan           *Plan         `json:"-"`
	Configurations int           `json:"configurations"`
	Rows           []RowForecast `json:"rows"`
	Launches       int           `json:"launches"` // starts of the engine, of all configurations
	Seconds        float64       `json:"seconds"`
	USD            float64       `json:"usd"`
	Requests       float64       `json:"requests"`
	Tokens         [2]float64    `json:"tokens"` // in and out, of all launches
	Done           int           `json:"runs_measured"`
	Parts          int           `json:"runs"`
	Void           []string      `json:"void,omitempty"`                 // runs that the plan has no use for any more
	Over           []string      `json:"over_budget,omitempty"`          // what of the budget it is over
	Start          float64       `json:"start_seconds,omitempty"`        // that a start and a stop of a server take
	StartKnown     bool          `json:"start_is_measured,omitempty"`    // by those that were made; else it is a guess
	Unknown        []string      `json:"rows_of_unknown_time,omitempty"` //
	Left           float64       `json:"seconds_left"`                   // of what is still to be measured, where no more is given up
	TwinFailed     string        `json:"twin_failed,omitempty"`          // why the twin gives no forecast, also among the notes
	Notes          []string      `json:"notes,omitempty"`                //
	Power          *Power        `json:"power"`                          // what the launches would tell; null where that was not asked, or no twin is known
}

// Simulate carries the baseline's first launch out on the twin, where one is known, so that
// [Experiment.Forecast] knows what each row takes: its warm-up, the loads that a launch
// climbs, and the queue that is answered behind a load which is more than is served. It
// takes a second or two of a processor for a plan of the usual size. With power it carries
// out all configurations, and the forecast has the power of the plan; it takes ten times as
// long. A twin of a server that does not carry the plan out is no error: the forecast says
// so, and reckons by the settings. That of a simulated target is one, as it is when the plan
// is measured.
func (x *Experiment) Simulate(ctx context.Context, power bool, version result.Version, view View) error {
	p := x.Plan
	ofServer := !strings.HasPrefix(p.Target, "sim:")
	if p.simulated || p.deployment() == nil && ofServer {
		return nil
	}
	s, err := x.newSimulation(power && p.deployment() != nil)
	if err == nil {
		err = s.run(ctx, version, view)
	}
	switch {
	case err == nil:
		x.simulation, x.twin = s, s.done
	case ofServer && ctx.Err() == nil:
		x.untold, err = err, nil
	}
	return err
}

// partSeconds are those of a part that was measured, ok false of one that was not.
func (x *Experiment) partSeconds(part *Part) (sum float64, ok bool) {
	measured := x.finishedRun(part)
	if measured == nil {
		return 0, false
	}
	for i := range measured.Points {
		sum += loadSeconds(&measured.Points[i])
	}
	return sum, true
}

// rowTook returns the time of a row of a configuration in its first launch and in later ones. Each
// is the mean of the launches that were measured, 0 where that is not known. In launches of the
// contract's row the first climbs further than later ones.
func (x *Experiment) rowTook(c Configuration, row *Row) (first, later float64) {
	var all, behind []float64
	for block := 1; block <= x.Plan.Launches; block++ {
		s, ok := x.partSeconds(&Part{c, row, block})
		if !ok {
			continue
		}
		if all = append(all, s); block > 1 {
			behind = append(behind, s)
		} else {
			first = s
		}
	}
	switch measured := x.finishedRun(&Part{c, row, 1}); {
	case len(all) == 0:
		return 0, 0
	case row.Name != x.Plan.Contract.Row:
		each, _ := stats.Moments(all)
		return each, each
	case len(behind) > 0:
		later, _ = stats.Moments(behind)
	case measured != nil:
		later = cmp.Or(x.repeatClimbTime(measured), first)
	}
	return first, later
}

// climbedLoads returns the number of loads that a first launch of the baseline climbed, 0 where
// none is known.
func (x *Experiment) climbedLoads(row *Row) int {
	for _, from := range []*Experiment{x, x.twin} {
		if from == nil {
			continue
		}
		if measured := from.finishedRun(&Part{from.Plan.plannedConfigurations()[0], from.Plan.Row(row.Name), 1}); measured != nil {
			return len(measured.Points)
		}
	}
	return 0
}

// repeatClimbTime returns the seconds that the next launch like a first one climbs. The first
// launch shows where the limits are reached. The next would be measured at loads that are among the
// first's.
func (x *Experiment) repeatClimbTime(first *result.Run) (seconds float64) {
	contract := &x.Plan.Contract
	climbed, ok := readClimb(first, contract.Capacity, contract.Limits)
	if !ok {
		return 0
	}
	var rungs []decide.Rung
	for range first.Points {
		load, more := decide.Next(contract.Capacity, climbed.Load, rungs)
		if !more {
			break
		}
		at := slices.IndexFunc(climbed.rungs, func(r decide.Rung) bool { return math.Abs(r.Load/load-1) < 1e-6 })
		if at < 0 {
			break
		}
		rungs = append(rungs, climbed.rungs[at])
		seconds += loadSeconds(&first.Points[at])
	}
	return seconds
}

// rowDuration returns the seconds that a row of a configuration takes on the server in its first
// launch and in a later one. It is as measured, of this configuration or of the baseline, else as
// the twin has it. known is false where neither tells.
func (x *Experiment) rowDuration(c Configuration, row *Row) (first, later float64, known bool) {
	base := x.Plan.plannedConfigurations()[0]
	for _, from := range []*Experiment{x, x.twin} {
		if from == nil {
			continue
		}
		of := from.Plan.Row(row.Name)
		for _, like := range []Configuration{c, base} {
			f, l := from.rowTook(like, of)
			if first, later = cmp.Or(first, f), cmp.Or(later, l); first > 0 && later > 0 {
				return first, later, true
			}
		}
	}
	return cmp.Or(first, later), cmp.Or(later, first), first > 0 || later > 0
}

// usualStart is the assumed time of a start and a stop of a server before the first one, in
// seconds.
const usualStart = 90

// startDuration returns the time of a start and a stop: the mean of those that were made.
func (x *Experiment) startDuration() (seconds float64, known bool) {
	n := 0
	for _, c := range x.Plan.plannedConfigurations() {
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
	Row      *Row    `json:"-"`
	Name     string  `json:"row"`
	Load     string  `json:"load"`
	Requests float64 `json:"requests"`
	Input    float64 `json:"input_tokens"`
	Output   float64 `json:"output_tokens"`
	Seconds  float64 `json:"seconds"`
}

// Share is the time of a row in all launches, and what it costs.
func (f *Forecast) Share(row string) (seconds, usd float64) {
	for _, r := range f.Rows {
		if r.Name == row {
			seconds = r.Seconds * float64(f.Launches)
		}
	}
	if f.Seconds > 0 {
		usd = f.USD * seconds / f.Seconds
	}
	return seconds, usd
}

const (
	// climbs is about how many loads the contract's row takes in a launch: those of the
	// first block are more, of later ones fewer.
	climbs = 3.5
	// leadIn is about how long a row warms up, in seconds.
	leadIn = 8
)

// Forecast works it out: by what was measured of each row, else by what the twin takes
// (see [Experiment.Simulate]), else by its settings.
func (x *Experiment) Forecast() *Forecast {
	p := x.Plan
	f := &Forecast{Plan: p, Configurations: len(p.Configurations())}
	f.Launches = f.Configurations * p.Launches
	known, _ := deploy.Parse(p.TwinSpec())
	each := make([]float64, f.Configurations) // seconds of a configuration
	left := make([]float64, f.Configurations) // of them still to be measured
	guessed := false                          // the contract's row is as long as its settings say
	for _, row := range p.Rows {
		one := &row.Plan
		in, out := one.Input.Mean()+one.PrefixMean(), one.Ask.Output.Mean()
		r := RowForecast{Row: row, Name: row.Name, Requests: float64(one.Requests)}
		seconds := one.Duration.Seconds()
		switch {
		case row.Name == p.Contract.Row:
			if one.Requests > 0 {
				seconds = float64(one.Requests) / one.Rate
			} else {
				r.Requests = one.Rate * seconds
			}
			r.Load = "around " + say.Exact(one.Rate) + "/s"
			seconds, r.Requests = climbs*(seconds+leadIn), cmp.Or(float64(x.climbedLoads(row)), climbs)*r.Requests
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
			case known == nil && one.Requests > 0: // how long answers take is not known
				f.Unknown, seconds = append(f.Unknown, row.Name), 0
			case known != nil:
				each := known.Residence(int(in), int(out), one.Concurrency).Seconds()
				if one.Requests > 0 {
					seconds = each * r.Requests / float64(one.Concurrency)
				} else if each > 0 {
					r.Requests = seconds / each * float64(one.Concurrency)
				}
				seconds += 5 * each // warm-up
			}
			seconds += leadIn
		}
		if first, _, took := x.rowDuration(p.plannedConfigurations()[0], row); took {
			f.Unknown = slices.DeleteFunc(f.Unknown, func(name string) bool { return name == row.Name })
			seconds = first
		} else if row.Name == p.Contract.Row {
			guessed = true
		}
		r.Seconds, r.Input, r.Output = seconds, r.Requests*in, r.Requests*out
		f.Rows = append(f.Rows, r)
		f.Tokens[0] += r.Input * float64(f.Launches)
		f.Tokens[1] += r.Output * float64(f.Launches)
		for i, c := range p.Configurations() {
			first, later, took := x.rowDuration(c, row)
			if !took {
				first, later = seconds, seconds
			}
			for block := 1; block <= int(p.measuredLaunches(c, row)); block++ {
				took := later
				if block == 1 {
					took = first
				}
				if is, measured := x.partSeconds(&Part{c, row, block}); measured {
					took = is
				} else {
					left[i] += took
				}
				each[i] += took
			}
		}
		f.Requests += r.Requests * p.launchesOfRow(row)
	}
	if p.Server != nil {
		f.Start, f.StartKnown = x.startDuration()
		for i := range each {
			each[i] += f.Start * float64(p.Launches)
		}
		f.Notes = append(f.Notes, p.Server.Notes...)
		if len(f.Unknown) > 0 {
			f.Notes = append(f.Notes, "how long answers take is not known, and the time of rows with users is not counted ("+strings.Join(f.Unknown, ", ")+"): target: twin: sim:MODEL@GPU estimates it")
		}
	}
	if x.untold != nil {
		f.TwinFailed = "the twin does not say how long rows take; their settings do: " + x.untold.Error()
		f.Notes = append(f.Notes, f.TwinFailed)
	}
	if guessed {
		longer := "row " + p.Contract.Row + " takes longer at loads that are more than is served, whose queue is answered before the next"
		if x.untold == nil {
			longer += ": target: twin: sim:MODEL@GPU estimates by how much"
		}
		f.Notes = append(f.Notes, longer)
	}
	for i, c := range p.Configurations() {
		f.Seconds, f.USD = f.Seconds+each[i], f.USD+x.hourlyCost(c)*each[i]/3600
		for block := 1; block <= p.Launches; block++ {
			for _, part := range p.launchParts(c, block) {
				f.Parts++
				if x.finishedRun(&part) != nil {
					f.Done++
				} else if x.hasVoided(&part) {
					f.Void = append(f.Void, part.Configuration.Name+", row "+part.Row.Name+", launch "+say.Count(part.Block))
				}
			}
		}
	}
	var d decide.Decision
	if f.Done > 0 {
		d = x.currentDecision()
	}
	for i, c := range p.Configurations() {
		if d.Enough || f.Done > 0 && d.Of[i].Left > 0 {
			continue
		}
		for block := 1; block <= p.Launches; block++ {
			if slices.ContainsFunc(p.launchParts(c, block), func(part Part) bool { return x.finishedRun(&part) == nil }) {
				left[i] += f.Start
			}
		}
		f.Left += left[i]
	}
	if b := p.Budget; b.Time > 0 && f.Seconds > b.Time.Seconds() {
		f.Over = append(f.Over, "time: "+say.Seconds(f.Seconds)+" of "+say.Duration(b.Time))
	}
	if b := p.Budget; b.USD > 0 && f.USD > b.USD {
		f.Over = append(f.Over, "money: "+"$"+say.Dollars(f.USD)+" of $"+say.Dollars(b.USD))
	}
	if s := x.simulation; s != nil && s.power {
		f.Power = s.powerOf(p, f)
	}
	return f
}

// hourlyCost returns the cost of a configuration for an hour, 0 where that is not known.
func (x *Experiment) hourlyCost(c Configuration) float64 {
	one, gpus := &x.Plan.ContractRow().Plan, x.Plan.gpuCount(c)
	if one.GPUPrice != (cost.GPU{}) {
		return one.Price().OfTime(gpus, 3600)
	}
	if d := x.Plan.deployment(); d != nil {
		return d.USDPerHour * float64(gpus)
	}
	return 0
}

// Status is the progress of an experiment.
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
	p, d := x.Plan, x.currentDecision()
	s := Status{Plan: p, Dir: x.Dir, Blocks: x.completeBlocks(), NotStarted: x.NotStarted(), Waits: x.AwaitedLaunch()}
	for i, c := range p.Configurations() {
		one := ConfigurationStatus{Name: c.Name, GivenUp: d.Of[i].Left}
		for block := 1; block <= p.Launches; block++ {
			all := true
			for _, part := range p.launchParts(c, block) {
				one.Of++
				if x.finishedRun(&part) != nil {
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
