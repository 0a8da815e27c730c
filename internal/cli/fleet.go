package cli

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"pitot/internal/config"
	"pitot/internal/say"
	"pitot/internal/workers"
)

func fleetHelp() manual {
	return manual{
		about: "Print a Kubernetes manifest for a run with many workers.",
		usage: "pitot fleet manifest --workers N --image IMAGE [flags] -- run URL [run flags]",
		examples: `pitot fleet manifest --workers 32 --image registry.example/pitot:1 -- \
			  run http://vllm:8000 --rate 8000 > fleet.yaml`,
		notes: `The manifest has an Indexed Job of the workers, a NATS server, and a Job that runs the
command after --. Comments in it say how to make the secrets and how to get the results.`,
	}
}

func fleetVerb(_ context.Context, e *Env) (int, error) {
	own, command := e.Args, []string(nil)
	if i := slices.Index(own, "--"); i >= 0 {
		own, command = own[:i], own[i+1:]
	}
	var m config.Manifest
	args, err := config.DecodeParts(config.VerbFleet, own, e.Environ, &m)
	const example = "pitot fleet manifest --workers 32 --image IMAGE -- run URL --rate 8000"
	switch {
	case err != nil:
		return Usage, err
	case len(args) != 1 || args[0] != "manifest":
		return Usage, say.Errorf("what of the fleet?").WithHint(example)
	case m.Workers == 0:
		return Usage, say.Errorf("a manifest of how many workers?").WithHint("--workers N")
	case m.Image == "":
		return Usage, say.Errorf("which image do the pods have?").WithHint("--image IMAGE: docs/guides/install.md says how to load it")
	case len(command) == 0 || !slices.Contains([]string{string(config.VerbRun), string(config.VerbSweep), string(config.VerbFind)}, command[0]):
		return Usage, say.Errorf("fleet manifest needs a run").WithHint("behind --: " + example)
	}
	flags := []string{"--fleet", fmt.Sprintf("nats://nats:4222?workers=%d", m.Workers), "--out", "/runs/run"}
	p, named, err := config.Decode(config.Verb(command[0]), append(slices.Clone(command[1:]), flags...), nil)
	if err == nil && len(named) == 1 {
		err = p.Check(config.Verb(command[0]))
	} else if err == nil {
		err = say.Errorf("the run names %s", say.Plural(len(named), "target")).WithHint("one run measures one target: " + example)
	}
	if err == nil {
		err = fitsPods(&p, named[0], command)
	}
	if err != nil {
		return Usage, err
	}
	switch {
	case p.KeyEnv != "":
		m.KeyEnv = p.KeyEnv
	case m.KeyEnv != "OPENAI_API_KEY" && p.KeyFile == "": // the API's own else
		command = append(slices.Clone(command), "--key-env", m.KeyEnv)
	}
	for _, f := range [][2]string{{"--key-file", p.KeyFile}, {"--tokenizer", p.Tokenizer}, {"--workload", p.Workload}} {
		if f[1] != "" && (f[0] != "--workload" || p.Workload != config.RandomWorkload && p.PresetName() == "") {
			fmt.Fprintf(e.Stderr, "pitot: note: %s names a file, which no volume of this manifest mounts: put it into the image, or mount it in the pods of the workers and of the run\n", f[0])
		}
	}
	return Done, workers.WriteManifest(e.Stdout, &m, command)
}

// fitsPods refuses a command that tells a secret, or whose target no other pod reaches.
func fitsPods(p *config.Plan, target string, command []string) error {
	if i := slices.IndexFunc(config.RedactArgs(command), func(a string) bool { return !slices.Contains(command, a) }); i >= 0 {
		name := command[i]
		if !strings.HasPrefix(name, "-") {
			name = command[i-1]
		}
		name, _, _ = strings.Cut(name, "=")
		return say.Errorf("%s holds a secret, and a manifest shows what is in it", name).WithHint("give it to the pods in their environment, from a secret of Kubernetes (PITOT_HEADER for a header), or in a file that is mounted there")
	}
	u, err := url.Parse(target)
	switch {
	case p.Kind() == config.KindMock || p.Kind() == config.KindSim:
		return say.Errorf("%s is no server that pods reach", target).WithHint("name a service of the cluster: http://vllm:8000")
	case err != nil:
		return nil // it was opened as a target, and has said so
	case u.User != nil:
		return say.Errorf("the target's address holds a user or password, and a manifest shows what is in it").WithHint("give a key to the pods as a secret: --key-env VAR")
	}
	host := u.Hostname()
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return say.Errorf("%s is this machine, and in a pod the pod", host).WithHint("name a service of the cluster: http://vllm:8000")
	}
	return nil
}
