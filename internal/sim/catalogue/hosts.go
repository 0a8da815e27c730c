package catalogue

import (
	_ "embed"
	"slices"
	"sync"
	"time"

	"pitot/internal/say"
)

// Host is a class of machines around accelerators: what it adds to a step besides
// the kernels.
type Host struct {
	Name     string `yaml:"name"`
	Overhead `yaml:",inline"`
	Serial   Overhead `yaml:"serial"` // more, where a step is planned when the one before has ended
	Source   string   `yaml:"source"`
}

// Overhead holds the time added to a step and to each row of it, in microseconds.
type Overhead struct {
	Step float64 `yaml:"step_us"`
	Row  float64 `yaml:"row_us"`
}

// Durations are those of a step and of a row.
func (o Overhead) Durations() (step, row time.Duration) {
	return time.Duration(o.Step * 1e3), time.Duration(o.Row * 1e3)
}

//go:embed hosts.yaml
var hostFile []byte

// Hosts gives all classes; the first is what is taken where none was named.
var Hosts = sync.OnceValue(func() []Host { return parseTable[Host](hostFile) })

// FindHost gives a class by its name, the first for none. Its errors are the user's.
func FindHost(name string) (Host, error) {
	all := Hosts()
	if name == "" {
		return all[0], nil
	}
	i := slices.IndexFunc(all, func(h Host) bool { return h.Name == name })
	if i < 0 {
		names := make([]string, len(all))
		for i, h := range all {
			names[i] = h.Name
		}
		return Host{}, say.Errorf("unknown host %q", name).WithHint(say.KnownHint(name, names))
	}
	return all[i], nil
}
