package experiment

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/config"
	"pitot/internal/say"
	"pitot/internal/session"
	"pitot/internal/workload/seed"
)

// Each block has one launch of every configuration, in an order of its own: whatever
// drifts over the hours hits all of them alike, and what drifts within a block hits each
// by chance.

// streamOrder is the random stream of the plan's seed that orders blocks.
const streamOrder = 0x6f72646572

// blockOrder is that of the configurations in a block, counted from 1. Of a server that is
// started by hand the first block begins with the baseline, as which it is there.
func (p *Plan) blockOrder(block int) (list []Configuration) {
	all := p.plannedConfigurations()
	r := rand.New(rand.NewPCG(seed.At(p.Seed, streamOrder, uint64(block)), 0))
	for _, i := range r.Perm(len(all)) {
		if p.ByHand() && block == 1 && i == 0 {
			list = slices.Insert(list, 0, all[i])
			continue
		}
		list = append(list, all[i])
	}
	return list
}

// Part is one row in one launch of one configuration: what is measured at once, in a run
// directory of its own.
type Part struct {
	Configuration Configuration
	Row           *Row
	Block         int // from 1; the launch is named after it
}

// runDir is the part's run directory below that of the experiment. The directories of all
// launches of a configuration lie next to each other, so that they are a side of a
// comparison.
func (part *Part) runDir(below string) string {
	return filepath.Join(below, "runs", part.Configuration.Name, part.Row.Name, strconv.Itoa(part.Block))
}

// plan is that of its run. The launches of a block ask the same at the same times,
// whatever the configuration.
func (p *Plan) partPlan(part *Part, below string) *config.Plan {
	one := part.Row.Plan
	one.Spec = p.Spec(part.Configuration)
	if c := part.Configuration; c.Knob == limitInFront {
		one.MaxInFlight, _ = strconv.Atoi(c.Value) // checked when the plan was read
	}
	if one.GPUs > 0 {
		one.GPUs = p.gpuCount(part.Configuration)
	}
	one.Launch = strconv.Itoa(part.Block)
	one.Seed, one.SeedSet = session.LaunchSeed(p.Seed, part.Block), true
	one.Out = part.runDir(below)
	one.Notes = append(append([]string(nil), one.Notes...), "configuration="+part.Configuration.Name, "row="+part.Row.Name)
	if mark := p.Server.planMark(); mark != "" {
		one.Notes = append(one.Notes, mark)
	}
	return &one
}

// partCommand returns the command that measures the part's first load by itself, without the
// secrets of its settings.
func partCommand(one *config.Plan, row *Row, p *Plan) []string {
	out := []string{"pitot", "run", one.Spec}
	for _, s := range mergeSettings(presetSettings(row.Name, p.Contract.Kind), p.Common, row.Settings) {
		for _, v := range s.Values {
			if s.Name == "gpus" {
				v = strconv.Itoa(one.GPUs)
			}
			if v == "true" {
				out = append(out, "--"+s.Name)
				continue
			}
			out = append(out, argsOf(s.Name, v)...)
		}
	}
	if one.Rate > 0 && row.Name == p.Contract.Row {
		out = append(out, "--rate", say.Exact(one.Rate), "--slo", one.SLO.String())
	}
	if one.MaxInFlight != row.Plan.MaxInFlight {
		out = append(out, "--max-in-flight", strconv.Itoa(one.MaxInFlight))
	}
	return config.RedactArgs(append(out, "--launch", one.Launch, "--seed", strconv.FormatUint(one.Seed, 10)))
}

// flagOf returns what a setting is called on the command line of pitot run.
func flagOf(name string) string {
	for _, s := range config.Settings() {
		if s.Name == name && s.AppliesTo(config.VerbRun) {
			return s.Flag()
		}
	}
	return "--" + name
}

// argsOf returns the arguments of pitot run that give a setting a value.
func argsOf(name, value string) []string {
	flag, key, keyOnly := strings.Cut(flagOf(name), " ")
	if keyOnly {
		return []string{flag, key + "=" + value}
	}
	return []string{flag, value}
}

// oneArgument is the same in one argument, which a switch takes too.
func oneArgument(name, value string) string {
	flag, key, keyOnly := strings.Cut(flagOf(name), " ")
	if keyOnly {
		return flag + "=" + key + "=" + value
	}
	return flag + "=" + value
}

// launchParts are those of one launch, in the order in which they are measured: that of the
// rows, the same for all configurations. The contract's row is first: a configuration that
// is given up has been judged.
func (p *Plan) launchParts(c Configuration, block int) (list []Part) {
	list = append(list, Part{c, p.ContractRow(), block})
	for _, r := range p.Rows {
		if r.Name != p.Contract.Row && (block == 1 || !p.isControl(c, r)) {
			list = append(list, Part{c, r, block})
		}
	}
	return list
}
