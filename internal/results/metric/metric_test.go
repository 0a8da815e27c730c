package metric

import (
	"pitot/internal/telemetry"
	"strings"
	"testing"
)

// What is said of each metric is whole, and what it names exists.
func TestCatalogue(t *testing.T) {
	names, keys, columns, ids := map[Name]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, m := range All() {
		if names[m.Name] || keys[m.Key] || columns[m.ColumnName()] || ids[m.ID()] {
			t.Errorf("%s is there twice", m.Name)
		}
		names[m.Name], keys[m.Key], columns[m.ColumnName()], ids[m.ID()] = true, true, true, true
		if m.Label == "" || m.Help == "" || m.Unit == "" || strings.HasSuffix(m.Help, ".") {
			t.Errorf("%s: label %q, help %q, unit %q", m.Name, m.Label, m.Help, m.Unit)
		}
		if strings.ToLower(string(m.Name)) != string(m.Name) || strings.TrimSpace(string(m.Name)) != string(m.Name) {
			t.Errorf("%q is not as users write it", m.Name)
		}
		for _, other := range []Name{m.Unlike, m.Instead} {
			if other != "" && All().Find(other) == nil {
				t.Errorf("%s names %s, which is in no entry", m.Name, other)
			}
		}
		for _, s := range m.Compared {
			if _, ok := PercentileOf(s); ok != m.HasPercentiles() || !ok && s != Value {
				t.Errorf("%s: comparisons have no %q of it", m.Name, s)
			}
		}
		if ms := m.Unit == Milliseconds; m.HasPercentiles() && ms != strings.HasSuffix(m.Key, "_ms") {
			t.Errorf("%s is in %s", m.Key, m.Unit)
		}
		if m.Limit && m.HasPercentiles() && (m.Unit != Milliseconds || m.Better != Lower) {
			t.Errorf("%s is limited from above, in %s, and %q is better", m.Name, m.Unit, m.Better)
		}
		if m.Limit && strings.ContainsAny(string(m.Name), " <,@%") {
			t.Errorf("--slo cannot name %q", m.Name)
		}
		if group, _, _ := strings.Cut(m.Key, "."); (m.Of == Server) != (group == "server") || group == "window" && m.Of != Window {
			t.Errorf("%s, of a %s, lies in %s", m.Name, m.Of, group)
		}
		for _, also := range m.Also {
			if names[also] {
				t.Errorf("%s is also another", also)
			}
			names[also] = true
		}
	}
}

// Each metric of the server follows from signals of the vocabulary, as they are.
func TestSignals(t *testing.T) {
	kinds := map[Combine]telemetry.Kind{Growth: telemetry.Counter, Ratio: telemetry.Counter, Total: telemetry.Counter,
		Average: telemetry.Gauge, Most: telemetry.Gauge, Least: telemetry.Gauge}
	for _, s := range FromSignals() {
		if s.Of != Server || s.Label == "" || s.Help == "" || s.Unit == "" || s.Scale < 0 || (s.Combine == Ratio) != (s.Per != "") || (s.Combine == Derived) != (s.From == "") {
			t.Errorf("%+v %+v", s, s.Metric)
		}
		for _, from := range []telemetry.Signal{s.From, s.Per} {
			if d, ok := telemetry.LookUpDefinition(from); from != "" && (!ok || d.Kind != kinds[s.Combine]) {
				t.Errorf("%s follows from %q, a %s", s.Key, from, d.Kind)
			}
		}
	}
}

// The ladder rises, and each of its percentiles is found by both of its names.
func TestPercentiles(t *testing.T) {
	last := 0.
	for _, p := range Percentiles() {
		few, firm := p.SamplesNeeded()
		if p.P <= last || few >= firm || firm < 2 {
			t.Errorf("%s: %g, %d, %d", p.Name, p.P, few, firm)
		}
		last = p.P
		for _, word := range []string{p.Key, p.Name} {
			if q, ok := PercentileOf(word); !ok || q != p {
				t.Errorf("%s: %v", word, q)
			}
		}
	}
	if _, ok := PercentileOf("p98"); ok {
		t.Error("p98 is reported")
	}
}
