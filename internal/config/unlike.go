package config

import (
	"fmt"
	"slices"
	"strings"
)

// SearchDifferences names what two searches ask for that is not the same, each with both values:
// the workload, how it arrives, the API, the SLO and, of an embedded target, what it is. Where a
// server is reached, how long it is searched and how it is watched may differ.
func SearchDifferences(before, now *Plan) (list []string) {
	had, has := before.settingParts(), now.settingParts()
	value := func(values []string) string {
		if len(values) == 0 {
			return "the default"
		}
		return strings.Join(values, " ")
	}
	asks := []string{"api", "arrival", "max-in-flight", "over", "retry", "slo", "timeout"}
	for _, s := range Settings() {
		switch {
		case !s.AppliesTo(VerbFind) || s.Name == "seed":
			continue
		case s.Group != groupRequests && !slices.Contains(asks, s.Name):
			continue
		case s.Public != nil: // what is kept of it is not all
			continue
		}
		if a, b := value(s.setValues(had)), value(s.setValues(has)); a != b {
			list = append(list, fmt.Sprintf("--%s %s there, %s here", s.Name, a, b))
		}
	}
	if (before.Kind() != "http" || now.Kind() != "http") && before.Spec != now.Spec {
		list = append(list, fmt.Sprintf("%s there, %s here", before.Spec, now.Spec))
	}
	return list
}
