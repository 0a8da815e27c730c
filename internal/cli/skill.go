package cli

import (
	"context"
	"io"

	"pitot/docs/reference"
	"pitot/internal/say"
)

// skillVerb prints how agents and scripts use the program.
func skillVerb(_ context.Context, e *Env) (int, error) {
	if len(e.Args) > 0 {
		return Usage, say.Errorf("pitot skill takes no argument").WithHint("pitot skill > SKILL.md")
	}
	_, err := io.WriteString(e.Stdout, reference.Skill)
	return Done, err
}

func skillHelp() manual {
	return manual{
		about:    "Print a SKILL.md for coding agents and scripts.",
		usage:    "pitot skill",
		examples: `pitot skill > SKILL.md`,
	}
}
