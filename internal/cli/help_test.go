package cli

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pitot/internal/config"
	"pitot/internal/say"
)

// helpOf returns what a verb shows for the topics of --help=TOPIC.
func helpOf(t *testing.T, v *verb) (sections []section, show func(topic string) string) {
	t.Helper()
	m := v.help()
	sections = v.helpSections(&m)
	return sections, func(topic string) string {
		var b strings.Builder
		if err := v.writeTopic(&b, topic, &m, sections); err != nil {
			t.Errorf("pitot %s --help=%s: %v", v.name, topic, err)
		}
		return b.String()
	}
}

// isGeneral reports whether a flag sets nothing itself.
func isGeneral(name string) bool {
	return slices.ContainsFunc(config.GeneralFlags(), func(s config.Setting) bool { return s.Name == name })
}

// checkWidth reports lines that are wider than a terminal.
func checkWidth(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > helpWidth {
			t.Errorf("a line is too long: %s", line)
		}
	}
}

// The help of every verb is one screen, and each flag, key and topic has a page.
func TestHelpOfVerbs(t *testing.T) {
	for _, v := range verbs() {
		sections, show := helpOf(t, &v)
		screen := show("")
		if n := strings.Count(screen, "\n"); n > screenHeight {
			t.Errorf("pitot %s --help has %d lines", v.name, n)
		}
		if !strings.Contains(screen, "\nUsage: pitot "+v.name) && !strings.Contains(screen, "       pitot "+v.name) {
			t.Errorf("pitot %s --help has no usage:\n%s", v.name, screen)
		}
		checkWidth(t, screen)
		for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(v.help().usage, -1) {
			if !strings.Contains(screen, "\n  "+flag+" ") {
				t.Errorf("pitot %s --help does not list %s of the usage", v.name, flag)
			}
		}
		for _, s := range config.FlagsAndKeys(config.Verb(v.name)) {
			page := show(s.Name)
			if key := "YAML key     " + s.Name; !strings.Contains(page, key) && !isGeneral(s.Name) {
				t.Errorf("pitot %s --help=%s lacks %q:\n%s", v.name, s.Name, key, page)
			}
			checkWidth(t, page)
		}
		for _, s := range sections {
			checkWidth(t, show(s.Topic))
			for _, i := range s.items {
				if show(i.name) == "" {
					t.Errorf("pitot %s --help=%s is empty", v.name, i.name)
				}
			}
		}
		if len(sections) > 0 {
			all := show("all")
			checkWidth(t, all)
			for _, s := range config.FlagsAndKeys(config.Verb(v.name)) {
				if !strings.Contains(all, "  "+settingItem(&s).head) {
					t.Errorf("pitot %s --help=all lacks %s", v.name, s.Name)
				}
			}
		}
	}
}

// Hidden settings are reached by a topic that the first screen names.
func TestHelpTopics(t *testing.T) {
	for _, v := range verbs() {
		sections, show := helpOf(t, &v)
		screen := show("")
		for _, s := range sections {
			hidden := slices.ContainsFunc(s.items, func(i item) bool { return !strings.Contains(screen, "\n  "+i.head) })
			if hidden && !s.hidden && !strings.Contains(screen, "--help="+s.Topic+" ") {
				t.Errorf("pitot %s --help hides settings of topic %s and does not name it", v.name, s.Topic)
			}
		}
	}
}

// --help= takes topics by their names and titles, and a word of a text.
func TestHelpSearch(t *testing.T) {
	run, err := verbNamed("run")
	if err != nil {
		t.Fatal(err)
	}
	_, show := helpOf(t, &run)
	for topic, want := range map[string]string{
		"arrival": "gamma(0.5) ", "--arrival": "PITOT_ARRIVAL", "prefix_share": "--prefix-share SHARE",
		"server": "--key-env VAR", "target": "unix:///", "slo": "mlperf-llama2-70b", "correlation": "--set correlation=0.5",
		"rerank": "--batch-size N", "prefix cache": "--cache MODE", "stall": "A pause", "faults": "429:1%",
		"ttft": "?ttft=TIME", "max-num-seqs": "?max_num_seqs=VALUE", "output": "--export NAME=PATH",
	} {
		if got := show(topic); !strings.Contains(got, want) {
			t.Errorf("--help=%s lacks %q:\n%s", topic, want, got)
		}
	}
	for topic, hint := range map[string]string{"arival": "did you mean --help=arrival?", "nonsense": "pitot run --help shows what there is"} {
		err := run.writeHelp(new(strings.Builder), topic)
		if err == nil || say.HintOf(err) != hint {
			t.Errorf("--help=%s: %v, hint %q", topic, err, say.HintOf(err))
		}
	}
}
