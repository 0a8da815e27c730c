package report

import (
	"fmt"
	"io"
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload/profile"
)

// ProfiledLog is a log that a profile was made of.
type ProfiledLog struct {
	Name string
	*profile.Log
}

// WorkloadProfile writes what a profile holds, and what its logs did not say. file is where
// it was written, "" for where it can be seen.
func WorkloadProfile(w io.Writer, p *profile.Profile, logs []ProfiledLog, file string, size int, s Style) error {
	out := newPrinter(w, s)
	where := file
	if where == "" {
		where = "the profile"
	}
	out.writePainted(bold, fmt.Sprintf("%s of %s in %s: %s bytes without text, names or times of day", say.Plural(p.Requests, "request"), logNames(logs), where, say.Count(int64(size))))
	for _, l := range logs {
		if n := l.LeftOut(); n > 0 {
			out.writeMarked(yellow, "note", fmt.Sprintf("%s: %s left out%s", l.Name, say.Plural(n, "line"), l.RejectReasons()))
		}
		if l.Says != "" {
			out.writeMarked(yellow, "note", l.Name+": "+l.Says)
		}
	}
	if a := p.Arrival; a != nil {
		law := a.Law
		if a.Cascade != nil {
			law = fmt.Sprintf("by %s sums of %d requests; nearest steady law %s", say.Count(int64(len(a.Cascade.Spans))), a.Cascade.Every, a.Steady)
		}
		out.writeHanging("", "arrivals  ", "          ", fmt.Sprintf("%s/s over %s, CV %s, dispersion %s", say.Quantity(a.Rate), say.Seconds(p.Seconds), say.Decimal(a.CV, 2), profiledDispersion(a)))
		out.write("", "          ", "          "+law+fmt.Sprintf(" (gaps within %s of the log's, Kolmogorov-Smirnov)", say.Decimal(a.Distance, 3)))
	} else {
		out.line("arrivals  none: the log has no times")
	}
	for _, c := range p.Classes {
		text := fmt.Sprintf("%-9s %s", c.Name, say.Plural(c.Requests, "request"))
		if c.Lengths == nil {
			text += ", lengths not known"
		} else {
			text += fmt.Sprintf(", lengths in %s", say.Plural(len(c.Lengths.Buckets), "bucket"))
		}
		out.line("%s", text)
	}
	if x := p.Prefixes; x != nil {
		used := 0
		for _, u := range x.Uses {
			used += u[2]
		}
		again := 0
		for _, a := range x.Again {
			again += a[5]
		}
		out.writeHanging("", "shared    ", "          ", fmt.Sprintf("%s of the prompts begin as many do, in %s; %s more begin as one before", say.Percent(float64(used)/float64(x.Requests)), say.Plural(len(x.Nodes), "stretch"), say.Percent(float64(again)/float64(x.Requests))))
	}
	if t := p.Sessions; t != nil {
		out.writeHanging("", "sessions  ", "          ", fmt.Sprintf("%s, %s of the later turns carry the history", say.Count(int64(t.Sessions)), say.Percent(t.Carried)))
	}
	least, clients := say.Plural(p.Anonymity.Requests, "request"), "; the logs name no clients"
	if p.Anonymity.Clients > 0 {
		least, clients = least+" of "+say.Plural(p.Anonymity.Clients, "client"), ""
	}
	out.writeText("shown only where " + least + " have it" + clients)
	out.writeText(p.Risks)
	return out.err
}

func profiledDispersion(a *profile.Arrival) string {
	var parts []string
	for i, at := range []string{"1", "10", "60"} {
		if d := a.Dispersion[i]; d > 0 {
			parts = append(parts, say.Decimal(d, 2)+" at "+at+" s")
		}
	}
	return strings.Join(parts, ", ")
}

func logNames(logs []ProfiledLog) string {
	if len(logs) == 1 {
		return logs[0].Name + " (" + logs[0].Format + ")"
	}
	return say.Plural(len(logs), "log")
}
