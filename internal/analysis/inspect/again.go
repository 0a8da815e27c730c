package inspect

import (
	"encoding/json"
	"strconv"

	"pitot/internal/config"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// rerunCommand is the command that measures a run's target with its lengths at another load.
// Prompts that are not drawn by length alone, conversations and arrivals that are not
// Poisson's have settings of their own, which are not repeated: it is "" for them.
func rerunCommand(measured *result.Run, point int, flag, load string) string {
	var w struct{ Kind, Input, Output string }
	l := &measured.Points[point].Load
	if json.Unmarshal(measured.Workload, &w) != nil || w.Kind != "random" || w.Input == "" || w.Output == "" || l.Turns != nil || l.Arrival != "" && l.Arrival != "poisson" {
		return ""
	}
	args := []string{"pitot", "run", measured.Target.Spec}
	args = append(args, config.ReachingArgs(measured.Command)...)
	args = append(args, flag, load, "--input", w.Input, "--output", w.Output, "--duration", strconv.Itoa(longEnough)+"s")
	return say.ShellLine(args)
}

// loadOf is a point's load by its flag of pitot run.
func loadOf(p *result.Point) (flag string, load float64) {
	if p.Load.Loop == "closed" {
		return "--concurrency", p.Load.Value()
	}
	return "--rate", p.Load.Value()
}

// loadNumber is a load as a flag has it, to four figures.
func loadNumber(x float64) string {
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64)
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// longerCommand is the command that measures a point's load for a minute, "" where none is known
// or the point lasted for as long.
func longerCommand(measured *result.Run, point int) string {
	p := &measured.Points[point]
	if p.Seconds.Window >= longEnough {
		return ""
	}
	flag, load := loadOf(p)
	return rerunCommand(measured, point, flag, loadNumber(load))
}

// longEnough are the seconds of a load over which a server's metrics are read often enough.
const longEnough = 60

// lighterLoads returns what the run has not measured of half a point's load and of one request at a
// time. Each comes with its command.
func lighterLoads(measured *result.Run, point int) (list []string) {
	at := &measured.Points[point]
	flag, load := loadOf(at)
	half, one := false, false
	for i := range measured.Points {
		p := &measured.Points[i]
		if p.Verdict == result.Invalid {
			continue
		}
		f, x := loadOf(p)
		half = half || f == flag && x >= 0.3*load && x <= 0.7*load
		one = one || f == "--concurrency" && x <= 1
	}
	add := func(what, command string) {
		if command != "" {
			what += ": " + command
		}
		list = append(list, what)
	}
	if to := load / 2; !half && (flag == "--rate" || to >= 1) {
		if flag == "--concurrency" {
			to = float64(int(to))
		}
		add("half the load", rerunCommand(measured, point, flag, loadNumber(to)))
	}
	if !one {
		add("one request at a time", rerunCommand(measured, point, "--concurrency", "1"))
	}
	return list
}
