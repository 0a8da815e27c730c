package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/say"
)

func TestFleets(t *testing.T) {
	usual := Bus{JoinTimeout: usualJoinTimeout}
	for v, want := range map[string]Fleet{
		"4": {Workers: 4}, "auto": {Workers: AutoFleet}, "none": {},
		"nats://h:4222?workers=4":             {Workers: 4, NATS: "nats://h:4222", Bus: usual},
		"nats://a:1,nats://b:2?workers=4":     {Workers: 4, NATS: "nats://a:1,nats://b:2", Bus: usual},
		"listen://:4222?workers=2&cert=c.pem": {Workers: 2, Listen: ":4222", Bus: Bus{Cert: "c.pem", JoinTimeout: usualJoinTimeout}},
		"tls://h:4222?workers=4&token_file=t&nkey_file=n&ca=a&cert=c&key=k&join_timeout=1h0m0s": {Workers: 4, NATS: "tls://h:4222",
			Bus: Bus{TokenFile: "t", NkeyFile: "n", CA: "a", Cert: "c", Key: "k", JoinTimeout: time.Hour}},
	} {
		p, _, err := Decode(VerbRun, []string{"http://h", "--fleet", v, "--rate", "1"}, nil)
		if err != nil {
			t.Errorf("%s: %v", v, err)
			continue
		}
		if d := cmp.Diff(want, p.Fleet); d != "" {
			t.Errorf("%s: %s", v, d)
		}
		k := fleetKind(map[string]int{"auto": AutoFleet, "none": 0})
		if got := k.write(p.Fleet); got != v {
			t.Errorf("%s is written as %s", v, got)
		}
		kept, workers := publicFleet(v).Kept, k.write(Fleet{Workers: want.Workers})
		if kept != workers {
			t.Errorf("of %s a run keeps %q, want %q", v, kept, workers)
		}
	}
}

func TestFleetMistakes(t *testing.T) {
	for v, want := range map[string]string{
		"nats://h:4222":                            "does not say how many workers",
		"nats://h:4222?workers=0":                  "not between 1 and 4,096",
		"nats://h:4222?workers=2&tokenfile=t":      `unknown parameter "tokenfile"`,
		"nats://h:4222?workers=2&workers=3":        "workers is given twice",
		"nats://h:4222?workers=2&key=k":            "key without cert",
		"nats://h:4222?workers=2&join_timeout=x":   "join_timeout",
		"nats://u:sk-secret@h:4222?workers=2":      "visible in the list of processes",
		"listen://4222?workers=2":                  "not HOST:PORT",
		"listen://:4222?workers=2&nkey_file=a.key": "takes no nkey",
		"http://h?workers=2":                       "not the URL of a NATS server",
		"0":                                        "not between 1 and 4,096",
	} {
		_, _, err := Decode(VerbRun, []string{"http://h", "--fleet", v, "--rate", "1"}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", v, err, want)
		}
		if err != nil && strings.Contains(err.Error()+say.HintOf(err), "sk-secret") {
			t.Errorf("a secret is shown: %v", err)
		}
	}
}

func FuzzFleets(f *testing.F) {
	f.Add("nats://h:4222?workers=4&token_file=t&join_timeout=1h")
	f.Add("listen://:1?workers=1")
	f.Add("auto")
	k := fleetKind(map[string]int{"auto": AutoFleet, "none": 0})
	f.Fuzz(func(t *testing.T, v string) {
		fleet, err := k.parse(v)
		if err != nil {
			return
		}
		if again, err := k.parse(k.write(fleet)); err != nil || again != fleet {
			t.Errorf("%q: %+v, read again %+v: %v", v, fleet, again, err)
		}
		publicFleet(v)
	})
}
