package report

import (
	"fmt"
	"strings"

	"pitot/internal/say"
)

// texts is a list of texts that grows.
type texts []string

func (t *texts) addText(more ...string) { *t = append(*t, more...) }

func (t *texts) addFormat(format string, args ...any) { t.addText(fmt.Sprintf(format, args...)) }

// addQuantity adds a number with what it is of, if it is known.
func (t *texts) addQuantity(x *float64, what string) {
	if x != nil {
		t.addText(say.Quantity(*x) + " " + what)
	}
}

// Grouping is names by what they have in common, in the order in which that came.
type Grouping struct {
	Keys  []string
	Names map[string][]string
}

// AddName puts a name to the others of a key.
func (g *Grouping) AddName(key, name string) {
	if g.Names == nil {
		g.Names = map[string][]string{}
	}
	if g.Names[key] == nil {
		g.Keys = append(g.Keys, key)
	}
	g.Names[key] = append(g.Names[key], name)
}

// JoinNames returns the names of a key in a line.
func (g *Grouping) JoinNames(key string) string { return strings.Join(g.Names[key], ", ") }

// addLine adds a line with a label, unless it has no parts.
func addLine(lines []labelled, label string, parts []string) []labelled {
	if parts = nonEmpty(parts...); len(parts) == 0 {
		return lines
	}
	return append(lines, labelled{Label: label, Value: parts})
}

// Parts returns the items of a line, the first with its label: "Server: 3 running".
func (l labelled) Parts() []string {
	if l.Label == "" {
		return l.Value
	}
	return append([]string{l.Label + ": " + l.Value[0]}, l.Value[1:]...)
}
