package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"pitot/internal/cli"
	"pitot/internal/config"
	"pitot/internal/report/reasons"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/session"
	"pitot/internal/sim/catalogue"
	"pitot/internal/sim/deploy"
	"pitot/internal/stats"
)

const catalogueAbout = "`pitot find sim:DEPLOYMENT --slo chat` with defaults, run as a user runs it: every model of the catalogue on the least of 1, 2, 4 and 8 accelerators that it fits on. " +
	"CPU: seconds of processor time, all threads together, from the first step to the saved page; on one core it takes as long. " +
	"Requests: measured in all. At least, estimate, at most: in requests a second. Half-width: of the estimate's 95 % interval. " +
	"Refuted: by repetitions of 10,000 requests each at the bound, with other seeds, at 1 % (t over the repetitions): too many violate at the lower one (the end of the interval where none was verified), or too few at the upper one."

func catalogueHeader() []string {
	return []string{"deployment", "CPU s", "requests", "at least", "estimate", "half-width", "at most", "says", "refuted"}
}

// catalogued goes over the whole catalogue.
func catalogued() table {
	return table{name: "catalogue", about: catalogueAbout, header: catalogueHeader(), reps: 5, slow: true, rows: func(reps int, seed uint64) [][]string {
		return catalogueRows(deployments(), reps, seed)
	}}
}

// spreadOver is how many deployments the quick table has.
const spreadOver = 44

// cataloguedQuickly has every model, and every accelerator.
func cataloguedQuickly() table {
	return table{name: "catalogue-quick", about: catalogueAbout + " Every model, and every accelerator.", header: catalogueHeader(), reps: 5, slow: true, rows: func(reps int, seed uint64) [][]string {
		return catalogueRows(spread(deployments(), spreadOver), reps, seed)
	}}
}

// deployed is a model on accelerators that it fits on.
type deployed struct{ model, accelerator, spec string }

func deployments() (list []deployed) {
	for _, m := range catalogue.Models() {
		for _, a := range catalogue.Accelerators() {
			for _, n := range []string{"", "2x", "4x", "8x"} {
				spec := m.Name + "@" + n + a.Name
				if _, err := deploy.Parse(spec); err == nil {
					list = append(list, deployed{m.Name, a.Name, spec})
					break
				}
			}
		}
	}
	return list
}

// spread takes models and accelerators in turn: of a walk through both, the deployments that
// have something new, and then as many of the others as make so many in all.
func spread(all []deployed, n int) (list []deployed) {
	models, accelerators := map[string]bool{}, map[string]bool{}
	var others []deployed
	for i := range all {
		d := all[(i*7)%len(all)]
		if len(all)%7 == 0 {
			d = all[i]
		}
		if models[d.model] && accelerators[d.accelerator] {
			others = append(others, d)
			continue
		}
		models[d.model], accelerators[d.accelerator] = true, true
		list = append(list, d)
	}
	for more := max(0, min(n-len(list), len(others))); more > 0; more-- {
		list = append(list, others[(more-1)*len(others)/n])
	}
	return list
}

// found is how a search on a deployment came out.
type found struct {
	CPU      float64 // seconds
	Code     int
	Capacity *result.Capacity
	Refuted  []string
}

func catalogueRows(list []deployed, reps int, seed uint64) (rows [][]string) {
	var slowest, widest float64
	answered, refuted, finite := tally{}, tally{}, tally{}
	for _, d := range list {
		f := piece(fmt.Sprintf("catalogue %s %d %d", d.spec, reps, seed), func() *found { return searchDeployment(d, reps, seed) })
		if f == nil { // there was no time for it
			continue
		}
		c := f.Capacity
		width, half := optional(c.Estimate), ""
		if c.Estimate != nil && c.CI95 != nil {
			w := (c.CI95[1] - c.CI95[0]) / 2 / *c.Estimate
			widest, half = max(widest, w), fmt.Sprintf("%.1f %%", 100*w)
		}
		most := ""
		if c.Bracket != nil {
			most = optional(c.Bracket[1])
		}
		says := "bounds"
		switch {
		case c.Floor != nil:
			says = "no load meets it"
		case c.Estimate != nil && c.Load != nil:
			says = "estimate, verified"
		case c.Estimate != nil:
			says = "estimate"
		case c.Load == nil && most == "":
			says = "nothing: " + reasons.Text(c.Why)
		}
		slowest = max(slowest, f.CPU)
		finite.addIf(c.Floor == nil, c.Estimate != nil)
		answered.count(c.Floor != nil || c.Load != nil || most != "")
		refuted.count(len(f.Refuted) > 0)
		rows = append(rows, []string{d.spec, fmt.Sprintf("%.1f", f.CPU), fmt.Sprint(c.Requests), optional(c.Load), width, half, most, says, strings.Join(f.Refuted, ", ")})
	}
	return append(rows, []string{fmt.Sprintf("all %d", answered.Of), fmt.Sprintf("≤ %.1f", slowest), "", "", finite.String() + " of those that some load meets", fmt.Sprintf("≤ %.1f %%", 100*widest), "", answered.String() + " answered", refuted.String()})
}

func optional(x *float64) string {
	if x == nil {
		return ""
	}
	return number(*x)
}

// searchDeployment does the search as a user does, and looks at its bounds for long.
func searchDeployment(d deployed, reps int, seed uint64) *found {
	dir, err := os.MkdirTemp("", "pitot-catalogue-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	f := &found{}
	before := processor()
	out := filepath.Join(dir, "found")
	f.Code = cli.Run(context.Background(), []string{"find", "sim:" + d.spec, "--slo", "chat", "--seed", fmt.Sprint(seed), "--out", out, "--quiet"}, strings.NewReader(""), io.Discard, os.Stderr)
	f.CPU = processor() - before
	measured, err := rundir.ReadResult(out)
	if err != nil || measured.Capacity == nil {
		log.Fatalf("%s: exit code %d: %v", d.spec, f.Code, err)
	}
	f.Capacity = measured.Capacity
	f.Capacity.Trail = nil
	f.refute(d, reps, seed)
	return f
}

// refute looks for long at the bounds.
func (f *found) refute(d deployed, reps int, seed uint64) {
	c := f.Capacity
	low := c.Load
	if low == nil && c.CI95 != nil {
		low = &c.CI95[0]
	}
	if low != nil {
		if over, _ := violating(d, *low, reps, seed); over {
			f.Refuted = append(f.Refuted, "at least")
		}
	}
	if c.Bracket != nil && c.Bracket[1] != nil {
		if _, under := violating(d, *c.Bracket[1], reps, seed); under {
			f.Refuted = append(f.Refuted, "at most")
		}
	}
	if c.Floor != nil { // a thousandth of the load up to which it was seen
		if _, under := violating(d, c.Floor.Load, reps, seed); under {
			f.Refuted = append(f.Refuted, "floor")
		}
	}
}

// violating says of a load whether clearly more requests violate some limit than may, or
// clearly fewer violate each.
func violating(d deployed, load float64, reps int, seed uint64) (over, under bool) {
	const requests = 10_000
	points := make([]result.Point, reps)
	together(reps, func(r int) {
		p, _, err := config.Decode(config.VerbRun, []string{"sim:" + d.spec, "--rate", fmt.Sprint(load), "--requests", fmt.Sprint(requests),
			"--warmup", "60s", "--slo", "chat", "--seed", fmt.Sprint(1000*seed + uint64(r) + 1)}, nil)
		if err != nil {
			log.Fatal(err)
		}
		all, err := (&session.Runner{}).Simulate(context.Background(), &p, []config.Load{p.Load})
		if err != nil || len(all) != 1 || all[0].SLO == nil {
			log.Fatalf("%s at %g: %v", d.spec, load, err)
		}
		points[r] = all[0]
	})
	under = true
	for i, l := range points[0].SLO.Limits {
		shares := make([]float64, reps)
		for r := range points {
			shares[r] = 1 - *points[r].SLO.Limits[i].Attained
		}
		mean, sd := stats.Moments(shares)
		half := stats.StudentQuantile(0.99, float64(reps-1)) * sd / math.Sqrt(float64(reps))
		allowed := 1 - l.Percentile/100
		over = over || mean-half > allowed
		under = under && mean+half < allowed
	}
	return over, under
}

// processor is the time that this process has had of the processors, in seconds.
func processor() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		log.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
