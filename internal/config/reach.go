package config

import (
	"slices"
	"strings"
)

// reachingSettings are those that say how a target is reached and what it is asked for.
var reachingSettings = []string{"config", "api", "model", "key-env", "key-file", "ca-cert", "cert", "key", "insecure", "header", "header-public", "proxy"}

// hiddenMark stands in the place of a secret in a command that is suggested.
const hiddenMark = "…"

// ReachingArgs returns those flags of a command that measured, as typed or as stored without its
// secrets, which another command needs to reach the same target. In the place of a secret stands
// "…".
func ReachingArgs(command []string) (args []string) {
	if len(command) < 2 {
		return nil
	}
	known := settingsOf(Verb(command[1]))
	for i := 2; i < len(command) && command[i] != "--"; i++ {
		name, value, has, ok := flagName(command[i])
		s := known[name]
		if !ok || s == nil && name != "config" && name != setFlag {
			continue
		}
		toggle := s != nil && s.Arg == ""
		if !has && !toggle {
			if i++; i == len(command) {
				break
			}
			value = command[i]
		}
		if name == setFlag {
			name, value, _ = strings.Cut(value, "=")
			s = known[name]
		}
		if slices.Contains(reachingSettings, name) {
			args = append(args, reachingArg(name, s, value, toggle)...)
		}
	}
	return args
}

// reachingArgs returns the same flags of a plan.
func (p *Plan) reachingArgs() (args []string) {
	known := settingsOf(VerbRun)
	for _, name := range reachingSettings {
		if s := known[name]; s != nil {
			for _, v := range s.setValues(p.settingParts()) {
				args = append(args, reachingArg(name, s, v, s.Arg == "")...)
			}
		}
	}
	return args
}

// reachingArg is one of these flags, with its value as it may be shown.
func reachingArg(name string, s *Setting, value string, toggle bool) []string {
	switch {
	case toggle && value == "false":
		return nil
	case toggle:
		return []string{"--" + name}
	}
	if s != nil {
		value = s.ShownValue(value)
	}
	value = strings.ReplaceAll(value, redacted, hiddenMark)
	if s != nil {
		return s.Args(value)
	}
	return []string{"--" + name, value}
}
