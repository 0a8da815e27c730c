package config

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitot/internal/say"
)

const twoClasses = `# what the service has
version: 1
about: a chat and its reports
classes:
  - name: chat
    share: 0.8
    workload: chat
    slo: p99 ttft<500ms, p99 tpot<50ms
  - name: reports
    share: 0.2   # of the requests
    input: lognormal(6000,3000)
    output: 200
    prefix: 1024
    arrival: on-off(5s,20s)
    slo: p95 e2e<20s
`

func mixFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mix.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMix(t *testing.T) {
	path := mixFile(t, twoClasses)
	p, _, err := Decode(VerbRun, []string{"sim:fixed", "--workload", path, "--rate", "5"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(VerbRun); err != nil {
		t.Error(err)
	}
	if p.Arrival != "0.8*poisson + 0.2*on-off(5s,20s)" || p.SLO.String() != "chat: p99 ttft<500ms, p99 tpot<50ms; reports: p95 e2e<20s" {
		t.Errorf("%s; %s", p.Arrival, p.SLO)
	}
	reports := p.OfClass(1)
	if !p.IsGenerated() || reports.Prefix != 1024 || reports.Input.String() != "lognormal(6000,3000)" || p.ShareOf("reports") != .2 || reports.Seed == p.Seed {
		t.Errorf("%+v", reports)
	}
	if chat := p.OfClass(0); chat.WholePreset() != "chat" {
		t.Errorf("%+v", chat)
	}
	if want := .8*1164 + .2*7024; math.Abs(p.Input.Mean()/want-1) > .1 {
		t.Errorf("prompts of %g tokens on average, not %g", p.Input.Mean(), want)
	}
	again, _, err := Decode(VerbRun, []string{"--config", mixFile(t, string(p.YAML(VerbRun)))}, nil)
	if err != nil || again.Arrival != p.Arrival || again.SLO.String() != p.SLO.String() || again.Workload != path {
		t.Errorf("%+v, %v", again, err)
	}
	if p, _, err = Decode(VerbRun, []string{"sim:fixed", "--workload", path, "--rate", "5", "--slo", "p99 e2e<9s"}, nil); err != nil || p.SLO.String() != "p99 e2e<9s" {
		t.Errorf("--slo: %v, %v", p.SLO, err)
	}
	_ = os.Remove(path)
	if _, err := ReadRecorded(mixFile(t, string(again.YAML(VerbRun)))); err != nil {
		t.Errorf("the plan of a run whose mix is gone: %v", err)
	}
}

// A mix of rates has a rate of its own.
func TestMixOfRates(t *testing.T) {
	path := mixFile(t, "version: 1\nclasses:\n  - {name: a, rate: 3}\n  - {name: b, rate: 1, output: 5}\n")
	p, _, err := Decode(VerbRun, []string{"sim:fixed", "--workload", path}, nil)
	if err != nil || p.Rate != 4 || p.ShareOf("a") != .75 || p.Arrival != "poisson" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, _, err = Decode(VerbRun, []string{"sim:fixed", "--workload", path, "--rate", "8"}, nil); err != nil || p.Rate != 8 {
		t.Errorf("%+v, %v", p, err)
	}
	if p, _, err = Decode(VerbRun, []string{"sim:fixed", "--workload", path, "--concurrency", "8"}, nil); err != nil || p.Rate != 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// Of a class with conversations each begin brings several requests: limits of the class are
// about all of them, and how long conversations are is that of the longest.
func TestMixOfConversations(t *testing.T) {
	path := mixFile(t, "version: 1\nclasses:\n  - {name: a, share: 0.5}\n  - {name: b, share: 0.5, turns: 3, think: 2s}\n")
	p, _, err := Decode(VerbRun, []string{"sim:fixed", "--workload", path, "--rate", "4"}, nil)
	if err == nil {
		err = p.Check(VerbRun)
	}
	if err != nil || !p.HasConversations() || !p.GeneratedTurns() || p.MeanTurns() != 2 || p.LongestTurns() != 3 || p.ShareOf("b") != .75 || p.MeanThink() != 2*time.Second || p.MeanCluster() != .25+.75*3 {
		t.Errorf("%g turns on average, %g at most, share %g, %s, %g, %v", p.MeanTurns(), p.LongestTurns(), p.ShareOf("b"), p.MeanThink(), p.MeanCluster(), err)
	}
}

func TestMixMistakes(t *testing.T) {
	class := func(lines string) string { return "version: 1\nclasses:\n  - name: a\n    share: 1\n" + lines }
	for text, want := range map[string]string{
		"version: 1\nclasses:\n - name: a\n":                                                  "neither share nor rate",
		"version: 1\nclasses: []\n":                                                           "want a list",
		"version: 2\nclasses:\n  - {name: a, share: 1}\n":                                     `version "2" is not known`,
		"classes:\n  - {name: a, share: 1}\n":                                                 "no version",
		"version: 1\nclases:\nclasses:\n  - {share: 1}\n":                                     `unknown key "clases"`,
		"version: 1\nclasses:\n  - {share: 1}\n":                                              "no name",
		"version: 1\nclasses:\n  - {name: 'A b', share: 1}\n":                                 "cannot be that of a class",
		"version: 1\nclasses:\n  - {name: other, share: 1}\n":                                 "cannot be that of a class",
		"version: 1\nclasses:\n  - {name: a, share: 0.5}\n":                                   "come to 0.5",
		"version: 1\nclasses:\n  - {name: a, share: 2}\n":                                     "is no share",
		"version: 1\nclasses:\n  - {name: a, share: 1, r: 1}":                                 "unknown key",
		"version: 1\nclasses:\n  - {name: a, rate: 1e9}\n":                                    "mix.yaml:3: rate",
		"version: 1\nclasses:\n  - 5\n":                                                       "a class is name",
		"version: 1\nclasses:\n  - {name: a, share: [1, 2]}\n":                                "one plain value",
		"version: 1\nclasses:\n  - {name: a, share: 0.5}\n  - {name: a, share: 0.5}\n":        "a second class a",
		"version: 1\nclasses:\n  - {name: a, share: 0.5}\n  - {name: b, rate: 1}\n":           "some classes have a rate",
		class("    input: 5\n    input: 6\n"):                                                 "given twice",
		class("    inputs: 5\n"):                                                              "unknown key \"inputs\"",
		class("    input: five\n"):                                                            "mix.yaml:5: input",
		class("    rate: 5\n"):                                                                "share and rate both",
		class("    arrival: posson\n"):                                                        "did you mean poisson",
		class("    arrival: 0.5*poisson + 0.5*constant\n"):                                    "is a sum of laws",
		class("    slo: 'x: p99 ttft<1s'\n"):                                                  "names a class itself",
		class("    prefix-share: 0.5\n"):                                                      "prefix-share",
		class("    workload: nowhere.jsonl\n    input: 5\n"):                                  "input has no meaning",
		"version: 1\nclasses:\n" + strings.Repeat("  - {name: a, share: 0.01}\n", 13):         "13 classes",
		"version: 1\n---\nclasses:\n  - {name: a, share: 1}\n":                                "second document",
		"version: 1\nclasses:\n  - {name: a, share: 0.9999999}\n  - {name: b, share: 1e-7}\n": "less than a millionth",
	} {
		_, _, err := Decode(VerbRun, []string{"sim:fixed", "--workload", mixFile(t, text)}, nil)
		if u, ok := errors.AsType[*say.Error](err); !ok || !strings.Contains(u.Msg+" "+u.Hint, want) {
			t.Errorf("%q:\n%v", text, err)
		}
	}
	path := mixFile(t, twoClasses)
	for flags, want := range map[string]string{
		"--input 5":              "--input has no meaning with the classes",
		"--output 5":             "--output has no meaning with the classes",
		"--turns 3":              "--turns has no meaning with the classes",
		"--cache warm":           "--cache has no meaning with the classes",
		"--prefix 5":             "--prefix has no meaning with the classes",
		"--arrival constant":     "both say when requests are due",
		"--concurrency 5":        "arrive by laws of their own",
		"--slo nobody:errors<1%": "has none",
	} {
		argv := append([]string{"sim:fixed", "--workload", path}, strings.Fields(flags)...)
		if !strings.Contains(flags, "concurrency") {
			argv = append(argv, "--rate", "5")
		}
		p, _, err := Decode(VerbRun, argv, nil)
		if err == nil {
			err = p.Check(VerbRun)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flags, err)
		}
	}
}

func FuzzMix(f *testing.F) {
	f.Add(twoClasses)
	f.Add("version: 1\nclasses:\n  - {name: a, rate: 3}\n  - {name: b, rate: 1, output: 5}\n")
	f.Add("classes: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseMix("mix.yaml", []byte(text))
		if err != nil {
			if _, ok := errors.AsType[*say.Error](err); !ok {
				t.Errorf("%T: %v", err, err)
			}
			return
		}
		total := 0.
		for k := range m.Classes {
			total += m.Classes[k].Share
		}
		if math.Abs(total-1) > 1e-9 || len(m.Classes) > mostClasses {
			t.Errorf("%+v", m)
		}
		if in, out := m.combinedLengths(); in.IsZero() || out.IsZero() {
			t.Error("no lengths")
		}
		if _, err := (&Load{Arrival: m.ArrivalLaw()}).ArrivalLaw(); m.ArrivalLaw() != "" && err != nil && !strings.Contains(m.ArrivalLaw(), "(") {
			t.Errorf("%s: %v", m.ArrivalLaw(), err)
		}
	})
}
