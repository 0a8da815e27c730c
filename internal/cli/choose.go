package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/analysis/choose"
	"pitot/internal/config"
	"pitot/internal/report"
	"pitot/internal/report/page"
	"pitot/internal/say"
	"pitot/internal/sim/catalogue"
)

// chooseVerb finds the deployment that carries a load within limits for the least money.
func chooseVerb(ctx context.Context, e *Env) (int, error) {
	var own config.Choosing
	var ask config.Ask
	var hard config.Load
	var good config.Good
	args, err := config.DecodeParts(config.VerbChoose, e.Args, e.Environ, &e.Display, &own, &ask, &hard, &good)
	switch {
	case err != nil:
		return Usage, err
	case own.Model == "" && len(args) == 1:
		own.Model = args[0]
	case len(args) > 0:
		return Usage, say.Errorf("choose takes no arguments: %q", args[0]).WithHint("name the model with --model")
	}
	w, err := wantedFromFlags(&own, &ask, &hard, &good)
	if err != nil {
		return Usage, err
	}
	view := newProgress(e.Stderr, own.Format != "text", e.Getenv)
	ctx, stop := interruptibleContext(ctx, view)
	defer stop()
	w.Told = func(p choose.Progress) {
		view.Line(fmt.Sprintf("simulating %s: %d of %d deployments", p.Stage, p.Done, p.Of))
	}
	x, err := choose.Choose(ctx, w)
	view.close()
	if err != nil {
		return Done, err
	}
	code := Done
	if len(x.Options) == 0 {
		code = SLOMissed
	}
	m := report.BuildChoice(x)
	if own.Page != "" {
		var b bytes.Buffer
		if err := page.WriteChoice(&b, m, e.Command); err != nil {
			return Bug, err
		}
		if err := os.WriteFile(own.Page, b.Bytes(), 0o644); err != nil {
			return Usage, say.Errorf("--html: %v", err).WithHint("choose another place")
		}
	}
	out := e.Stdout
	switch {
	case own.Format == "kubernetes" && code != Done:
		out = e.Stderr // there is no manifest
	case own.Format == "json":
		return code, report.WriteJSON(e.Stdout, x)
	case own.Format == "kubernetes" && code == Done:
		_, err := io.WriteString(e.Stdout, x.Options[0].Manifest())
		return code, err
	}
	return code, m.WriteTerminal(out, e.styleOf(out))
}

// wantedFromFlags returns the requirements that the flags give, completed from the catalogue.
func wantedFromFlags(own *config.Choosing, ask *config.Ask, hard *config.Load, good *config.Good) (w choose.Wanted, err error) {
	switch {
	case own.Model == "":
		return w, say.Errorf("no model given").WithHint("for example --model llama-3.1-8b: pitot predict --list has those with a name")
	case len(own.GPUs) == 0:
		return w, say.Errorf("no GPUs given").WithHint("say which can be had: --gpus h100,a100,l40s:4")
	}
	ask.Seed = own.Seed
	if !ask.Think.IsNone() && !ask.HasConversations() {
		return w, say.Errorf("--think is a pause within conversations, and these are single requests").WithHint("say how many requests a conversation has: --turns 4")
	}
	w = choose.Wanted{Model: own.Model, Engines: own.Engines, DTypes: own.DTypes, Ask: ask, Arrival: hard.Arrival, SLO: good.SLO, Rate: own.Rate, Sure: own.Sure}
	w.Asked = config.FlagsOf(config.VerbChoose, config.VerbFind, ask, hard)
	for _, text := range own.GPUs {
		o, err := parseOffer(text)
		if err != nil {
			return w, err
		}
		if slices.ContainsFunc(w.Offers, func(other choose.Offer) bool { return other.Accelerator.Name == o.Accelerator.Name }) {
			return w, say.Errorf("--gpus names %s twice", o.Accelerator.Name).WithHint("leave one out; what two offers of it come to takes two choices")
		}
		w.Offers = append(w.Offers, o)
	}
	for name, list := range map[string][]string{"engines": own.Engines, "dtypes": own.DTypes} {
		if sorted := slices.Sorted(slices.Values(list)); len(slices.Compact(sorted)) < len(list) {
			return w, say.Errorf("--%s names one twice: %s", name, strings.Join(list, ",")).WithHint("name each once")
		}
	}
	for _, o := range w.Offers {
		if o.USDPerHour == 0 && len(w.Offers) > 1 {
			return w, say.Errorf("no price of %s is known", o.Accelerator.Name).WithHint("give its price for an hour: --gpus " + o.Accelerator.Name + "@2.50")
		}
	}
	values, err := url.ParseQuery(own.Settings)
	if err != nil {
		return w, say.Errorf("--settings %s: %v", own.Settings, err)
	}
	for _, pair := range strings.FieldsFunc(own.Settings, func(r rune) bool { return r == '&' }) {
		name, _, _ := strings.Cut(pair, "=")
		w.Settings = append(w.Settings, choose.Set{Name: name, Value: values.Get(name)})
	}
	return w, nil
}

// parseOffer reads a GPU that can be had: h100, h100:4 or h100:4@2.49.
func parseOffer(text string) (o choose.Offer, err error) {
	name, price, priced := strings.Cut(text, "@")
	name, most, counted := strings.Cut(name, ":")
	if o.Accelerator, err = catalogue.FindAccelerator(name); err != nil {
		device, unknown := catalogue.FindDevice(name) // as its driver calls it
		if unknown != nil {
			return o, err
		}
		o.Accelerator = device
	}
	o.Most, o.USDPerHour = 8, o.Accelerator.USDPerHour
	if counted {
		if o.Most, err = strconv.Atoi(most); err != nil || o.Most < 1 {
			return o, say.Errorf("--gpus %s: %q is not a number of GPUs", text, most).WithHint("write h100:4 for machines with four of them")
		}
	}
	if priced {
		if o.USDPerHour, err = strconv.ParseFloat(strings.TrimPrefix(price, "$"), 64); err != nil || !(o.USDPerHour > 0 && o.USDPerHour < 1e6) {
			return o, say.Errorf("--gpus %s: %q is not a price", text, price).WithHint("write h100@2.49 for 2.49 USD an hour")
		}
	}
	return o, nil
}

func chooseHelp() manual {
	return manual{engine: true,
		about: "Choose the cheapest deployment that serves a load within an SLO.",
		usage: "pitot choose --model MODEL --gpus LIST --slo LIMITS [--rate R] [flags]",
		examples: `pitot choose --model llama-3.1-8b --gpus h100,a100,l40s --slo chat --rate 20
			pitot choose --model ./my-model --gpus h100@2.50 --slo "p99 ttft<1s" --format kubernetes`,
		notes: `Pitot simulates every deployment on these GPUs: number of engines, tensor parallelism, data
type, batch settings. It shows how likely each is the cheapest, and the commands to start and
verify it.`,
	}
}
