package config

import (
	"strings"
	"testing"

	"pitot/internal/say"
)

// Settings without a flag are set by --set, as strongly as by a flag.
func TestSet(t *testing.T) {
	p, _, err := Decode(VerbRun, []string{"http://h", "--rate", "1", "--set", "prompt-ids", "--set=n=4", "--set", "header-public=A=1", "--set", "header-public=B=2"}, []string{"PITOT_N=2"})
	if err != nil || !p.PromptIDs || p.Choices != 4 || strings.Join(p.PublicHeaders, " ") != "A=1 B=2" {
		t.Errorf("%v, %d, %q: %v", p.PromptIDs, p.Choices, p.PublicHeaders, err)
	}
	for args, want := range map[string][2]string{
		"--set n=2 --set n=3":     {"--set n is given twice", "keep one of them"},
		"--set corelation=0.5":    {`--set: unknown key "corelation"`, "did you mean correlation?"},
		"--set rate=4":            {"--set: rate has a flag", "write --rate"},
		"--set correlation":       {"--set correlation needs a value", "for example --set correlation=0"},
		"--set correlation=2":     {"--set correlation: 2 is not between -1 and 1", ""},
		"--correlation 0.5":       {"unknown flag --correlation", "it is a key of --config FILE, or --set correlation=0"},
		"--set turn-input=20":     {"--set turn-input without --turns", "give the length of conversations: --turns 4"},
		"--set scrape-header=A=b": {"--set scrape-header without --scrape", "it is for the pages"},
	} {
		_, _, err := Decode(VerbRun, append([]string{"http://h", "--rate", "1"}, strings.Fields(args)...), nil)
		if err == nil || !strings.Contains(err.Error(), want[0]) || !strings.Contains(say.HintOf(err), want[1]) {
			t.Errorf("%s: %v, hint %q", args, err, say.HintOf(err))
		}
	}
}
