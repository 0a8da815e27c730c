package config

import (
	"strings"
	"testing"

	"pitot/internal/say"
)

// A command that is suggested reaches the target as the one before it did, and repeats no secret.
func TestReachingArgs(t *testing.T) {
	for command, want := range map[string]string{
		"pitot run http://h --rate 4 --key-env K --ca-cert ca.pem --insecure --seed 1":  "--key-env K --ca-cert ca.pem --insecure",
		"pitot sweep http://h -cert=c.pem --key k.pem --key-file f.txt":                 "--cert c.pem --key k.pem --key-file f.txt",
		"pitot run http://h --header X-Api-Key=sk-secret --header Accept=a/b":           "--header X-Api-Key=… --header Accept=a/b",
		"pitot run http://h --header X-Api-Key=[redacted] --set header-public=Tenant=t": "--header X-Api-Key=… --set header-public=Tenant=t",
		"pitot find http://h --api anthropic --model m --set proxy=http://u:pw@p:1":     "--api anthropic --model m --set proxy=http://p:1",
		"pitot run --config plan.yaml --rate 1 --insecure=false":                        "--config plan.yaml",
		"pitot run http://h --launch --model --rate 4":                                  "",
		"pitot run http://h --key-env":                                                  "",
		"pitot run http://h -- --model x":                                               "",
		"pitot":                                                                         "",
	} {
		got := strings.Join(ReachingArgs(strings.Fields(command)), " ")
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", command, got, want)
		}
	}
	p, _, err := Decode(VerbRun, strings.Fields("http://h --key-env K --insecure --header X-Api-Key=sk-secret --model m"), nil)
	if err != nil {
		t.Fatal(err)
	}
	const flags = "--model m --key-env K --insecure --header X-Api-Key=…"
	if got := strings.Join(p.reachingArgs(), " "); got != flags {
		t.Errorf("of a plan: %s", got)
	}
	p.Spec = "http://h"
	if hint := say.HintOf(p.checkLoad()); strings.Count(hint, "pitot run http://h --model m --key-env K --insecure --header X-Api-Key=… --") != 2 {
		t.Errorf("%s", hint)
	}
}
