package plan

import (
	"slices"
	"strings"

	"pitot/internal/say"
)

// Environment variables that are not settings.
const (
	configVariable  = "PITOT_CONFIG"
	profileVariable = "PITOT_CPUPROFILE" // read where the program begins
	targetVariable  = "OPENAI_BASE_URL"  // as OpenAI's own clients read it

	TokenVariable = "PITOT_FLEET_TOKEN" // of a worker: what it shows to the run's server
)

const (
	ours   = "PITOT_"
	served = ours + "SERVER_" // what commands of an experiment get, which may be pitot's own
)

func envName(name string) string {
	return ours + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// variables gives an environment by name. An empty variable counts as not set.
func variables(environ []string) map[string]string {
	m := map[string]string{}
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok && value != "" {
			m[name] = value
		}
	}
	return m
}

// environment takes the settings of the PITOT_ variables. Those of other verbs
// may stand there too; any other name is a mistake.
func (d *decoder) environment(env map[string]string) error {
	if err := strangers(env); err != nil {
		return err
	}
	for _, name := range d.sortedNames() {
		v := env[envName(name)]
		if v == "" {
			continue
		}
		values := []string{v}
		if d.known[name].Many() {
			values = strings.Split(v, "\n")
		}
		if err := d.assign(fromEnvironment, envName(name), name, values); err != nil {
			return err
		}
	}
	return nil
}

// strangers refuses a PITOT_ variable that nothing reads: it is mistyped.
func strangers(env map[string]string) error {
	known := []string{configVariable, profileVariable, TokenVariable}
	for _, s := range Settings() {
		known = append(known, envName(s.Name))
	}
	var unknown []string
	for name := range env {
		if strings.HasPrefix(name, ours) && !strings.HasPrefix(name, served) && !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	name := slices.Min(unknown) // of several mistakes always the same one is reported
	flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, ours), "_", "-"))
	hint := "unset " + name + "; a variable is " + ours + " and the name of a flag, see pitot run --help"
	switch near := nearestVariable(name, known); {
	case flag == "target":
		hint = "the target is an argument, the key target of a config, or " + targetVariable
	case elsewhere(flag) != "":
		hint = elsewhere(flag)
	case near != "":
		hint = "did you mean " + near + "?"
	}
	return say.Errorf("unknown variable %s", name).WithHint(hint)
}

// nearestVariable compares what follows PITOT_, for that is alike in all.
func nearestVariable(name string, known []string) string {
	var tails []string
	for _, k := range known {
		tails = append(tails, strings.TrimPrefix(k, ours))
	}
	if near := say.Nearest(strings.TrimPrefix(name, ours), tails); near != "" {
		return ours + near
	}
	return ""
}
