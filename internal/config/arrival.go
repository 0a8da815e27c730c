package config

import (
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload"
	"pitot/internal/workload/arrival"
	"pitot/internal/workload/profile"
)

// ArrivalLaw is the arrival process, with the files that it is read from.
func (l *Load) ArrivalLaw() (*arrival.Law, error) { return ReadArrivals(l.Arrival) }

// ReadArrivals reads a law of arrivals, with the files that it is of.
func ReadArrivals(text string) (*arrival.Law, error) {
	files := workload.ArrivalFiles()
	files.Profile = profile.LawOf
	return arrival.ParseLaw(text, files)
}

// takeOwnTimes takes the due times that the requests of a trace have, or those of a file of prompts
// with times where no load is asked for, if nobody has asked for others.
func (d *decoder) takeOwnTimes(v Verb, p *Plan) error {
	defer func() { p.InTime = ofFile(p.Arrival, p.Workload) }()
	if v != VerbRun || d.given["arrival"] > 0 || p.Concurrency > 0 || p.IsGenerated() || !p.timedFile() {
		return nil
	}
	if strings.ContainsAny(p.Workload, ",()") {
		return say.Errorf("the name of %s has a comma or a parenthesis in it, which --arrival cannot hold", p.Workload).WithHint("give the file another name")
	}
	p.Arrival = "trace(" + p.Workload + ")"
	return nil
}

// timedFile reports whether the workload is a file whose own times a load takes. What is wrong with
// the file is said when it is opened.
func (p *Plan) timedFile() bool {
	kind, err := workload.Identify(p.Workload)
	switch {
	case err != nil:
		return false
	case kind == workload.Recorded:
		rows, err := workload.OpenRows(p.Workload)
		return err == nil && rows.HasTimes()
	case kind == workload.Prompts && p.Rate == 0:
		_, err := workload.PromptTimes(p.Workload)
		return err == nil
	}
	return false
}

// ofFile reports whether a law of arrivals is of the times of a file.
func ofFile(law, path string) bool {
	rest, ok := strings.CutPrefix(strings.TrimSpace(law), "trace("+path)
	return ok && (strings.HasPrefix(rest, ")") || strings.HasPrefix(rest, ","))
}

// takeOwnRate takes the rate that the arrival process has itself, as a trace does, where
// no load was asked for.
func (p *Plan) takeOwnRate(v Verb) error {
	if v != VerbRun || p.Rate > 0 || p.Concurrency > 0 {
		return nil
	}
	if p.Mix != nil && p.Mix.Rate() > 0 {
		p.Rate = p.Mix.Rate()
		return nil
	}
	if p.Arrival == Default().Arrival {
		return nil
	}
	law, err := p.ArrivalLaw()
	if err != nil {
		return arrivalError(err)
	}
	p.Rate = law.OwnRate()
	return nil
}

func arrivalError(err error) error {
	return say.Errorf("--arrival: %v", err).WithHint(say.HintOf(err))
}

// checkArrival asks whether the arrival process can be had at its rate. Where its rate
// changes there is no steady state to wait for.
func (p *Plan) checkArrival() error {
	if !p.Open() {
		return nil
	}
	law, err := p.ArrivalLaw()
	if err == nil {
		_, err = law.NewProcess(p.Rate, 0, 0)
	}
	switch {
	case err != nil:
		return arrivalError(err)
	case law.HasVaryingRate() && !p.Until.IsNone():
		return say.Errorf("--until needs a steady state, and the rate of %s changes with time", p.Arrival).WithHint("leave --until out, and give the window by --duration")
	}
	return nil
}

// checkSteady refuses arrival processes whose rate changes where loads are compared by it.
func (p *Plan) checkSteady() error {
	if p.IsClosedLoop() {
		return nil
	}
	law, err := p.ArrivalLaw()
	switch {
	case err != nil:
		return arrivalError(err)
	case law.HasVaryingRate():
		return say.Errorf("the rate of %s changes with time, so that no load of it has a steady state to find a capacity or a curve in", p.Arrival).WithHint("measure it with pitot run, or search with poisson, gamma(…), on-off(…) or mmpp(…)")
	}
	return nil
}
