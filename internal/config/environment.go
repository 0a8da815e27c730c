package config

import (
	"regexp"
	"slices"
	"strings"

	"pitot/internal/say"
)

// Environment variables that are not settings.
const (
	configVariable  = "PITOT_CONFIG"
	profileVariable = "PITOT_CPUPROFILE" // read where the program begins
	targetVariable  = "OPENAI_BASE_URL"  // as OpenAI's own clients read it

	// QuickPortsVariable names the ports of this machine at which pitot quick looks for a server.
	QuickPortsVariable = "PITOT_QUICK_PORTS"

	TokenVariable = "PITOT_FLEET_TOKEN" // of a worker: what it shows to the run's server
)

const (
	ours   = "PITOT_"
	served = ours + "SERVER_" // what commands of an experiment get, which may be pitot's own
)

func envName(name string) string {
	return ours + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// environmentByName gives an environment by name. An empty variable counts as not set.
func environmentByName(environ []string) map[string]string {
	m := map[string]string{}
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok && value != "" {
			m[name] = value
		}
	}
	return m
}

// decodeEnvironment takes the settings of the PITOT_ variables. Those of other verbs
// may stand there too.
func (d *decoder) decodeEnvironment(env map[string]string) error {
	for _, name := range d.sortedNames() {
		v := env[envName(name)]
		if v == "" || isServiceLink(envName(name), v) {
			continue
		}
		values := []string{v}
		if d.known[name].IsRepeatable() {
			values = strings.Split(v, "\n")
		}
		if err := d.assignSetting(fromEnvironment, envName(name), name, values); err != nil {
			return err
		}
	}
	return nil
}

// Kubernetes sets these in a pod for each service of its namespace whose name begins with pitot.
var (
	serviceLink  = regexp.MustCompile(`^PITOT[A-Z0-9_]*_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)
	serviceValue = regexp.MustCompile(`^(tcp|udp|sctp)://`)
)

// isServiceLink reports whether a variable is one that Kubernetes sets for a service.
func isServiceLink(name, value string) bool {
	return serviceLink.MatchString(name) || strings.HasSuffix(name, "_PORT") && serviceValue.MatchString(value)
}

// IgnoredVariables returns a sentence for each PITOT_ variable of an environment (NAME=VALUE
// each) that nothing reads, sorted. It may be mistyped, or another program's. Kubernetes' service
// links have none.
func IgnoredVariables(environ []string) (notes []string) {
	known := []string{configVariable, profileVariable, TokenVariable, QuickPortsVariable}
	for _, s := range Settings() {
		known = append(known, envName(s.Name))
	}
	for name, value := range environmentByName(environ) {
		if !strings.HasPrefix(name, ours) || strings.HasPrefix(name, served) || slices.Contains(known, name) || isServiceLink(name, value) {
			continue
		}
		note := name + " is no setting of pitot and is ignored"
		flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, ours), "_", "-"))
		switch near := nearestVariable(name, known); {
		case flag == "target":
			note += ": the target is an argument, the key target of a config, or " + targetVariable
		case otherToolFlag(flag) != "":
			note += ": " + otherToolFlag(flag)
		case near != "":
			note += ": did you mean " + near + "?"
		}
		notes = append(notes, note)
	}
	slices.Sort(notes)
	return notes
}

// nearestVariable compares what follows PITOT_, for that is alike in all.
func nearestVariable(name string, known []string) string {
	var tails []string
	for _, k := range known {
		tails = append(tails, strings.TrimPrefix(k, ours))
	}
	if near := say.NearestName(strings.TrimPrefix(name, ours), tails); near != "" {
		return ours + near
	}
	return ""
}
