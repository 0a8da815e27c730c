package cli

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"pitot/internal/report"
	"pitot/internal/say"
	"pitot/internal/say/unreadable"
	"pitot/internal/workload/profile"
)

// profileFlags are those of pitot workload profile.
type profileFlags struct {
	logs    []string
	out     string
	options profile.Options
}

func parseProfileFlags(args []string) (f profileFlags, err error) {
	f.options = profile.Options{Requests: 5, Clients: 2}
	for len(args) > 0 {
		name, value, valued := strings.Cut(args[0], "=")
		args = args[1:]
		if !strings.HasPrefix(name, "-") || name == "-" {
			f.logs = append(f.logs, name+map[bool]string{true: "=" + value}[valued])
			continue
		}
		if !valued && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		switch name {
		case "-o", "--out":
			if f.out = value; value == "" {
				return f, say.Errorf("%s names no file", name)
			}
		case "--k", "--clients":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 || n > 1_000_000 {
				return f, say.Errorf("%s: %.20q is not a number from 1 on", name, value)
			}
			if name == "--k" {
				f.options.Requests = n
			} else {
				f.options.Clients = min(n, profile.MostClients)
			}
		default:
			return f, say.Errorf("unknown flag %s", name).WithHint(say.KnownHint(name, []string{"-o", "--out", "--k", "--clients"}))
		}
	}
	if len(f.logs) == 0 {
		return f, say.Errorf("no log named").WithHint("for example pitot workload profile access.jsonl -o profile.yaml")
	}
	return f, nil
}

// profileGarbage is the maximum amount of garbage, in percent of the memory that is kept.
const profileGarbage = 25

// profileWorkload makes a profile of logs.
func profileWorkload(e *Env, args []string) error {
	f, err := parseProfileFlags(args)
	if err != nil {
		return err
	}
	// What is kept of a large log is nearly all of the memory, and what lines leave behind is
	// not to grow to as much again.
	defer debug.SetGCPercent(debug.SetGCPercent(profileGarbage))
	b, err := profile.NewBuilder(f.options)
	if err != nil {
		return err
	}
	var logs []report.ProfiledLog
	for _, name := range f.logs {
		l, err := profile.ReadLog(name, b.Add)
		if err != nil {
			return err
		}
		b.LeaveOut(l.LeftOut())
		logs = append(logs, report.ProfiledLog{Name: name, Log: l})
	}
	p, err := b.BuildProfile()
	if err != nil {
		return err
	}
	data, err := p.Encode()
	if err != nil {
		return err
	}
	told := e.Stdout
	if f.out == "" {
		told = e.Stderr
		if _, err := e.Stdout.Write(data); err != nil {
			return err
		}
	} else if err := os.WriteFile(f.out, data, 0o644); err != nil {
		return unreadable.FileError("-o", f.out, err, "name a file that can be written")
	}
	return report.WorkloadProfile(told, p, logs, f.out, len(data), e.styleOf(told))
}
