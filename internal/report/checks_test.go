package report

import (
	"strings"
	"testing"

	"pitot/internal/results/result"
)

// Every check has words for what it found, in every case and without a number.
func TestEveryCheckIsPutIntoWords(t *testing.T) {
	cases := []string{"", result.CaseUnknown, result.CaseGone, result.CaseEmpty, result.CaseLate, result.CaseDrift,
		result.CaseClosed, result.CaseChance, result.CaseBacklog, result.CaseCut, result.CaseProcess, result.CaseConnections, result.CaseHost, result.CaseThrottled, result.CaseTokenizer, result.CaseIDs, result.CaseBeyond, "kernel", "user", "virtual"}
	for _, k := range result.CheckKinds() {
		if _, ok := checkWords()[k.Name]; !ok {
			t.Errorf("%s has no words", k.Name)
		}
		for _, is := range cases {
			for _, status := range []result.Status{result.Pass, result.Flag, result.Fail} {
				c := result.NewCheck(k.Name, 1, 2)
				c.Case, c.Status = is, status
				for _, known := range []bool{true, false} {
					if !known {
						c.Value = nil
					}
					m := BuildCheck(&c)
					if m.Value == "" && k.Name != result.CheckStamps || m.Limit == "" || strings.Contains(m.Value+m.Limit, "%!") {
						t.Errorf("%s, %q: %+v", k.Name, is, m)
					}
				}
			}
		}
	}
	for name := range checkWords() {
		if k := result.NewCheck(name, 0, 0); k.Unit == "" {
			t.Errorf("there are words for %s, which is no check", name)
		}
	}
}
