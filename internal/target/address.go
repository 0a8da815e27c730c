package target

import (
	"strings"

	"pitot/internal/client"
	"pitot/internal/say"
	"pitot/internal/sim/serve"
)

// Check reports what is wrong with a target without sending anything: its address,
// the names of an embedded target, the key's file.
func Check(p Wanted) error {
	if p.Kind() == "http" {
		e, _, err := parseTarget(p.Spec)
		if err != nil {
			return err
		}
		if err := new(Target).configureTLS(&e, p.Target); err != nil {
			return err
		}
	} else {
		e, err := openEngine(p)
		if err != nil {
			return err
		}
		if _, err := e.faults(); err != nil {
			return err
		}
	}
	if p.KeyFile != "" {
		if _, err := readKey(p.KeyFile, keyHint); err != nil {
			return err
		}
	}
	return nil
}

func parseTarget(spec string) (client.Endpoint, string, error) {
	e, route, err := client.ParseTarget(spec)
	if err != nil {
		return e, "", say.Errorf("target %q: %v", spec, err).WithHint("for example http://localhost:8000, https://api.example.com/v1, or mock:llama-3.1-8b@h100")
	}
	return e, route, nil
}

// faults returns what goes wrong with a simulated server.
func (e *engine) faults() (serve.Faults, error) {
	faults, err := serve.ParseFaults(strings.Join(e.is.Faults, ","))
	if err != nil {
		return nil, say.Errorf("faults: %v", err).WithHint(say.HintOf(err))
	}
	return faults, nil
}
