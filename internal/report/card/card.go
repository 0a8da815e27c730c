// Package card makes one picture of a run to share, as SVG, PNG or Markdown.
package card

import (
	"cmp"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"pitot/internal/report"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// Card holds what a card shows. Its texts are plain lines.
type Card struct {
	Badges      []Badge  // what a reader must know first
	Subject     string   // the model, or the target
	Setup       []string // hardware, engine and workload, as far as they are known
	Headline    string
	Tone        paint  // of the headline's mark
	Basis       string // how sure the headline is
	SLO         string
	Load        string // that the numbers were measured at
	Numbers     []report.Number
	Curve       Curve
	Rated       string // what the verdict is on: the measurement or the simulation
	Measurement string // the verdict, and why
	Verdict     result.Verdict
	Command     string // without secrets
	Made        string // version and date
}

// Badge is a warning in few words.
type Badge struct {
	Text  string
	Paint paint
}

// longestText is the most characters of a text. A longer one is cut off.
const longestText = 400

// plain makes one line of a text, of bounded length.
func plain(text string) string { return say.Truncate(say.PlainLine(text), longestText) }

// New makes the card of a run.
func New(m *report.Model) *Card {
	run := m.Run
	c := &Card{
		Headline: plain(m.Headline.Sentence), Basis: plain(m.Headline.Interval),
		Verdict: run.Verdict, Curve: newCurve(run),
		Command: plain(say.ShellLine(withoutOut(run.Command))),
	}
	// A badge says that it is a simulation.
	c.Measurement = strings.TrimSuffix(plain(m.MeasurementText()), " · simulated in virtual time")
	if len(c.Basis) > 1 && !unicode.IsDigit(rune(c.Basis[1])) { // "p99 …" stays as it is
		c.Basis = say.Sentence(strings.TrimSuffix(c.Basis, "."))
	}
	if c.Rated = "Measurement"; run.Target.Kind == "sim" {
		c.Rated = "Simulation"
	}
	known := func(name string) string {
		for _, k := range m.Conditions {
			if k.Name == name && k.Known {
				return plain(k.Value)
			}
		}
		return ""
	}
	c.Subject = cmp.Or(known("Model"), plain(run.Target.Spec), "unknown target")
	hardware := known("Hardware")
	if n := known("GPUs"); n != "" && n != "1" && hardware != "" {
		hardware = n + " × " + hardware
	}
	engine, _, _ := strings.Cut(known("Engine"), ": ") // a simulated one lists its settings
	c.Setup = compact(hardware, known("Precision"), engine)
	if len(m.Facts) > 1 && len(m.Facts[1]) > 0 {
		c.Setup = append(c.Setup, plain(m.Facts[1][0]))
	}
	c.SLO = plain(sloOf(run))
	c.Load, c.Numbers = m.Numbers()
	for i := range c.Numbers {
		n := &c.Numbers[i]
		n.Name, n.Value, n.Note = plain(n.Name), plain(n.Value), plain(n.Note)
	}
	c.Badges, c.Tone = badges(m), tone(run)
	date, _, _ := strings.Cut(run.Started, "T")
	c.Made = plain(strings.Join(compact("pitot "+run.Pitot.Version, date), " · "))
	return c
}

// withoutOut returns a command without its directory, which others do not need.
func withoutOut(command []string) (args []string) {
	for i := 0; i < len(command); i++ {
		if command[i] == "--out" {
			i++
		} else if !strings.HasPrefix(command[i], "--out=") {
			args = append(args, command[i])
		}
	}
	return args
}

// compact returns the texts that are not empty.
func compact(texts ...string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" })
}

// sloOf returns the SLO of a run, "" for none.
func sloOf(run *result.Run) string {
	if run.Capacity != nil {
		return run.Capacity.SLO
	}
	for i := range run.Points {
		if s := run.Points[i].SLO; s != nil {
			return s.Spec
		}
	}
	return ""
}

// badges returns what a reader must know before the headline: the worst first.
func badges(m *report.Model) (list []Badge) {
	run := m.Run
	oneLoad := len(run.Points) > 0 && run.Capacity == nil && run.Curve == nil
	switch {
	case run.Verdict == result.Invalid:
		list = append(list, Badge{"INVALID measurement", bad})
	case oneLoad && run.Points[0].Outcome == result.Failing:
		list = append(list, Badge{"Server failing", bad})
	}
	switch run.Target.Kind {
	case "sim":
		list = append(list, Badge{"Simulation, not measured", warn})
	case "mock":
		list = append(list, Badge{"Mock server, not a real one", warn})
	}
	if run.Interrupted || run.Recovered || run.Capacity != nil && run.Capacity.Unfinished {
		list = append(list, Badge{"Not finished", warn})
	}
	return list
}

// tone returns how a run came out for the server. A VALID measurement has no tone by itself.
func tone(run *result.Run) paint {
	switch {
	case run.Verdict == result.Invalid || len(run.Points) == 0:
		return bad
	case run.Capacity != nil && run.Capacity.Asked() != nil:
		asked := map[result.Met]paint{result.Yes: good, result.No: bad, result.Undecided: warn}
		return asked[run.Capacity.AskedMet()]
	case run.Capacity != nil && run.Capacity.Floor != nil:
		return bad
	case run.Capacity != nil || run.Curve != nil:
		return accent
	}
	if r := run.Repeats; r != nil && r.Met[result.Yes] > 0 && r.Met[result.Yes] < len(r.Points) {
		return warn
	}
	p := &run.Points[0]
	switch s := p.SLO; {
	case p.Outcome == result.Failing || s != nil && s.Met == result.No && !s.Near:
		return bad
	case p.Stability == stats.Unstable || s != nil && (s.Near || s.Met == result.Undecided):
		return warn
	case s != nil:
		return good
	}
	return accent
}

// plainText describes a card in words, for readers who do not see it.
func (c *Card) plainText() string {
	var parts []string
	for _, b := range c.Badges {
		parts = append(parts, b.Text)
	}
	subject := strings.Join(append([]string{c.Subject}, c.Setup...), ", ")
	parts = append(parts, subject, c.Headline, c.Basis)
	for _, n := range c.Numbers {
		parts = append(parts, strings.TrimSpace(n.Name+": "+n.Value+" "+n.Unit)+" ("+n.Note+")")
	}
	parts = append(parts, c.Curve.Title, c.Rated+": "+c.Measurement, c.Command, c.Made)
	return strings.Join(compact(parts...), ". ") + "."
}

// CheckName reports whether the end of a file's name says how to write a card.
func CheckName(path string) error {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".svg", ".png", ".md":
		return nil
	}
	return say.Errorf("--card %s: the name has no known ending", say.PlainLine(path)).
		WithHint("name it card.svg, card.png, card.dark.png or card.md")
}

// Write writes a card in the format that the end of the file's name says.
func (c *Card) Write(w io.Writer, path string) error {
	switch name := strings.ToLower(path); filepath.Ext(name) {
	case ".svg":
		return c.WriteSVG(w)
	case ".png":
		return c.WritePNG(w, strings.HasSuffix(name, ".dark.png"))
	case ".md":
		return c.WriteMarkdown(w)
	}
	return CheckName(path)
}
