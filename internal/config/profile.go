package config

import (
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload/profile"
)

// takeProfile takes the arrivals that a profile has, where the workload is one and nobody has
// asked for others: as they were for run; the nearest law with a steady state where loads are
// compared.
func (d *decoder) takeProfile(v Verb, p *Plan) error {
	if v != VerbRun && v != VerbSweep && v != VerbFind || d.given["arrival"] > 0 || p.Concurrency > 0 || p.IsClosedLoop() || p.IsGenerated() || !profile.IsFile(p.Workload) {
		return nil
	}
	known, err := profile.Open(p.Workload)
	if err != nil {
		return err
	}
	if _, err := known.ArrivalLaw(); err != nil {
		if p.Rate > 0 || v != VerbRun {
			return nil // requests come as they usually do
		}
		return err
	}
	switch steady := known.SteadyLaw(); {
	case v != VerbRun && steady != "":
		p.Arrival = steady
	case v != VerbRun:
	case strings.ContainsAny(p.Workload, ",()"):
		return say.Errorf("the name of %s has a comma or a parenthesis in it, which --arrival cannot hold", p.Workload).WithHint("give the file another name")
	default:
		p.Arrival = "profile(" + p.Workload + ")"
	}
	return nil
}
