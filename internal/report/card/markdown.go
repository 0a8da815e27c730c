package card

import (
	"fmt"
	"io"
	"strings"

	"pitot/internal/report"
)

// WriteMarkdown writes a card as a block of Markdown.
func (c *Card) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	escape := report.EscapeMarkdown
	for _, badge := range c.Badges {
		fmt.Fprintf(&b, "**%s** · ", escape(badge.Text))
	}
	subject := strings.Join(append([]string{c.Subject}, c.Setup...), " · ")
	fmt.Fprintf(&b, "%s\n\n**%s**\n", escape(subject), escape(c.Headline))
	if c.Basis != "" {
		fmt.Fprintf(&b, "\n%s\n", escape(c.Basis))
	}
	if len(c.Numbers) > 0 {
		at := "At " + c.Load
		if c.Load == "" {
			at = "Of the run"
		}
		fmt.Fprintf(&b, "\n| %s | | |\n|---|--:|---|\n", escape(at))
	}
	for _, n := range c.Numbers {
		value := strings.TrimSpace(n.Value + " " + n.Unit)
		fmt.Fprintf(&b, "| %s | %s | %s |\n", escape(n.Name), escape(value), escape(n.Note))
	}
	if c.SLO != "" {
		fmt.Fprintf(&b, "\nSLO: %s\n", escape(c.SLO))
	}
	command := strings.ReplaceAll(c.Command, "```", "'''")
	fmt.Fprintf(&b, "\n%s: %s\n\n```sh\n%s\n```\n\n", c.Rated, escape(c.Measurement), command)
	fmt.Fprintf(&b, "%s\n", escape(c.Made))
	_, err := io.WriteString(w, b.String())
	return err
}
