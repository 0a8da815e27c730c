package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"pitot/internal/fleet"
	"pitot/internal/plan"
	"pitot/internal/say"
)

func fleetHelp(w io.Writer) {
	fmt.Fprint(w, `pitot fleet manifest --workers N --image IMAGE [flags] -- run URL [flags of the run]

Prints what Kubernetes needs to carry a run out with N workers: an Indexed Job of them,
a NATS server beside it (or --nats URL), and a Job of the coordinator, which runs the
command behind --. It says how the secrets are made and how the results come home.

  pitot fleet manifest --workers 32 --image registry.example/pitot:1 -- run http://vllm:8000 --rate 8000 > fleet.yaml
`)
	printSettings(w, plan.VerbFleet)
}

func fleetVerb(_ context.Context, e *Env) (int, error) {
	own, command := e.Args, []string(nil)
	if i := slices.Index(own, "--"); i >= 0 {
		own, command = own[:i], own[i+1:]
	}
	var m plan.Manifest
	args, err := plan.DecodeParts(plan.VerbFleet, own, e.Environ, &m)
	const example = "pitot fleet manifest --workers 32 --image IMAGE -- run URL --rate 8000"
	switch {
	case err != nil:
		return Usage, err
	case len(args) != 1 || args[0] != "manifest":
		return Usage, say.Errorf("what of the fleet?").WithHint(example)
	case m.Workers == 0:
		return Usage, say.Errorf("a manifest of how many workers?").WithHint("--workers N")
	case m.Image == "":
		return Usage, say.Errorf("which image do the pods have?").WithHint("--image IMAGE, made by the Dockerfile of the repository")
	case len(command) == 0 || !slices.Contains([]string{string(plan.VerbRun), string(plan.VerbSweep), string(plan.VerbFind)}, command[0]):
		return Usage, say.Errorf("a manifest of which run?").WithHint("behind --: " + example)
	}
	flags := []string{"--fleet", fmt.Sprint(m.Workers), "--nats", "nats://nats:4222", "--out", "/runs/run"}
	p, named, err := plan.Decode(plan.Verb(command[0]), append(slices.Clone(command[1:]), flags...), nil)
	if err == nil && len(named) == 1 {
		err = p.Check(plan.Verb(command[0]))
	} else if err == nil {
		err = say.Errorf("the run names %s", say.Plural(len(named), "target")).WithHint("one run measures one target: " + example)
	}
	if err != nil {
		return Usage, err
	}
	return Done, fleet.WriteManifest(e.Stdout, &m, command)
}
