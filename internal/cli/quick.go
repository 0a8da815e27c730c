package cli

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"pitot/internal/capacity"
	"pitot/internal/client/api"
	"pitot/internal/config"
	"pitot/internal/say"
	"pitot/internal/session"
	"pitot/internal/target"
)

// simulatedServer stands in where there is no server.
const simulatedServer = "sim:llama-3.1-8b@h100"

// quickStep is the factor between the first numbers of users: few loads reach the saturation, and
// the rest go where the curve bends.
const quickStep = 4

// quickVerb is `pitot quick`: a sweep over users, of about 30 seconds, on a server that it finds.
func quickVerb(ctx context.Context, e *Env) (int, error) {
	p, consent, args, err := config.DecodeQuick(e.Args, e.Environ)
	if err != nil {
		return Usage, err
	}
	named := len(args) > 0
	var notes []string
	if p.Spec == "" {
		p.Spec, notes = findServer(ctx, e, consent)
	}
	if ctx.Err() != nil {
		return Interrupted, ctx.Err()
	}
	if p.Kind() == config.KindSim {
		p.Budget = config.AutoBudget
	}
	v := measuring{verb: config.VerbSweep, loads: measureQuickly}
	plan, exports, err := v.checkPlan(e, p, args)
	if err != nil {
		return Usage, err
	}
	if err := mayCharge(e, plan, consent, named); err != nil {
		return Usage, err
	}
	if !plan.Quiet {
		for _, note := range notes {
			fmt.Fprintln(e.Stderr, note)
		}
	}
	return v.measure(ctx, e, plan, exports)
}

// findServer returns the first server that listens on this machine, else a simulated one, and what
// it found. A server that wants a key may be a gateway to a paid API: without consent it is only
// named.
func findServer(
	ctx context.Context, e *Env, consent config.QuickConsent,
) (spec string, notes []string) {
	ports := target.UsualPorts(e.Getenv(config.QuickPortsVariable))
	for _, n := range target.FindNearby(ctx, ports) {
		switch {
		case n.Locked && !consent.Yes:
			notes = append(notes, n.URL+" wants a key and may charge for requests; "+
				"to measure it: pitot quick "+n.URL+" --yes")
		case spec != "":
			notes = append(notes, "also found, not measured: "+n.URL)
		default:
			spec = n.URL
		}
	}
	if spec != "" {
		return spec, notes
	}
	var list []string
	for _, port := range ports {
		list = append(list, fmt.Sprint(port))
	}
	return simulatedServer, append(notes,
		"no server on ports "+strings.Join(list, ", ")+" of this machine: "+
			"simulating "+strings.TrimPrefix(simulatedServer, "sim:"),
		"to measure yours: pitot quick http://HOST:PORT")
}

// mayCharge refuses to measure a server that may charge for requests, unless the user consents. That
// is one on another machine that gets a key, or that a variable names.
func mayCharge(e *Env, p *config.Plan, consent config.QuickConsent, named bool) error {
	if consent.Yes || p.DryRun || p.Kind() != config.KindServer || target.IsLocal(p.Spec) {
		return nil
	}
	if named && !sendsKey(e, p) {
		return nil
	}
	return say.Errorf("%s is another machine and may charge for requests: this sends %s", p.Spec, sentText(p)).
		WithHint("pitot quick " + say.ShellLine([]string{p.Spec}) + " --yes")
}

// sendsKey reports whether a server gets a key: from a file, a header, or the variable of any API.
// Which API the server speaks is not known yet.
func sendsKey(e *Env, p *config.Plan) bool {
	secret := func(header string) bool {
		name, _, _ := strings.Cut(header, "=")
		return config.IsSecret(name)
	}
	isSet := func(a api.API) bool { return e.Getenv(a.KeyVariable()) != "" }
	return p.KeyFile != "" || p.KeyEnv != "" || p.Cert != "" ||
		slices.ContainsFunc(p.Headers, secret) || slices.ContainsFunc(api.All(), isSet)
}

// sentText returns the requests and tokens that a plan is expected to send, and their price.
func sentText(p *config.Plan) string {
	x := estimatePlan(config.VerbSweep, p, 0)
	about := func(n float64) string { return say.Count(int64(math.Round(n))) }
	text := fmt.Sprintf("about %s requests, %s tokens in and %s out", about(x.Requests), about(x.Input), about(x.Output))
	if x.USD > 0 {
		text += ", " + formatUSD(x.USD)
	}
	return text
}

// measureQuickly measures one user, then more until the throughput stops growing.
func measureQuickly(ctx context.Context, s *session.Session, p *config.Plan, view *progress) error {
	if p.Kind() == config.KindServer {
		view.ShowLine(serverText(s.Target))
	}
	alone, err := s.MeasureAlone(ctx)
	if err != nil {
		return err
	}
	loads := capacity.NewLoads(capacity.LoadsConfig{
		Points: p.Points, Closed: true, Residence: alone.Seconds(), Seed: p.Seed, Step: quickStep,
	})
	searcher := session.NewSearcher(s, nil, true, view)
	searcher.Quick = true
	return searcher.Sweep(ctx, loads)
}

// serverText returns the engine, the model and the context of a server, as far as it reports them.
func serverText(t *target.Target) string {
	about := []string{strings.TrimSpace(cmp.Or(t.Server["engine"], "server")+" "+t.Server["version"]) + " at " + t.Spec, "model " + t.Options.Model}
	if n := t.Server["max_model_len"]; n != "" {
		about = append(about, "context "+n+" tokens")
	}
	return "found " + strings.Join(about, ", ")
}

func quickHelp() manual {
	return manual{target: true,
		about: "Find a server, measure it for 30 seconds, and answer in words.",
		usage: "pitot quick [URL] [flags]",
		examples: `pitot quick                          # the server on this machine, else a simulated one
			pitot quick http://gpu7:8000
			pitot quick https://api.example.com/v1 --model NAME --yes`,
	}
}
