package engines

import (
	"regexp"
	"slices"
	"testing"

	"pitot/internal/telemetry"
)

// Every engine has a name of its own, and what goes by the names of others is there.
func TestEngines(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range All() {
		if seen[k.Name] || k.Name == "" || k.Title == "" {
			t.Errorf("%q, %q", k.Name, k.Title)
		}
		seen[k.Name] = true
		if (k.New == nil) == (k.Latencies == nil) {
			t.Errorf("%s makes no engine, or two", k.Name)
		}
		if k.New != nil && (k.Complete == nil || k.Command == nil || k.Image == "") {
			t.Errorf("%s cannot be deployed", k.Name)
		}
		if len(k.Router) > 0 && k.RouterPackage == "" {
			t.Errorf("%s has a router of no package", k.Name)
		}
		if len(k.Wording)%2 != 0 {
			t.Errorf("%s has names without its own", k.Name)
		}
		if _, err := regexp.Compile(k.Logged); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		for _, n := range k.Metrics.Names {
			if _, known := telemetry.LookUpDefinition(n.Signal); !known || n.Series == "" {
				t.Errorf("%s: %s is no signal", k.Name, n.Signal)
			}
		}
		for _, s := range k.Settings {
			if s.Field == nil || s.Like != "" && k.SettingName(s.Like) != s.Name {
				t.Errorf("%s: %s", k.Name, s.Name)
			}
			if all := k.FlagNames(); k != Default() && all != nil && !slices.Contains(all, s.Name) {
				t.Errorf("%s has no flag for %s", k.Name, s.Name)
			}
		}
		for _, n := range k.Knobs {
			if _, ok := k.OwnSetting(n.Name); !ok || len(n.Relieves) == 0 {
				t.Errorf("%s: knob %s", k.Name, n.Name)
			}
		}
	}
	if d := Default(); d.New == nil || d.Face.Open == nil || len(d.Router) == 0 || len(d.Wording) > 0 {
		t.Errorf("%s is not the usual engine", d.Name)
	}
	if names := FaceNames(); len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) || names[0] != Default().Name {
		t.Errorf("faces %q", names)
	}
	for target, want := range map[string]string{"": "fixed", "fixed": "fixed", "fixed?launch_cv=0.1": "fixed", "vllm": "", "m@h100": ""} {
		if k, _, ok := OfLatencies(target); ok != (want != "") || ok && k.Name != want {
			t.Errorf("%q is %v", target, k)
		}
	}
	for _, name := range []string{"", "vLLM", "nobody"} {
		if k, ok := ByName(name); ok {
			t.Errorf("%q is %s", name, k.Name)
		}
	}
}
