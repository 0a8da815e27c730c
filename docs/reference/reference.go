// Package reference has the reference documents that the program shows too.
package reference

import _ "embed"

// Glossary is glossary.md: a paragraph for each entry, "**Term, other term.** What it means."
//
//go:embed glossary.md
var Glossary string

// Skill is skill.md: how agents and scripts use the program.
//
//go:embed skill.md
var Skill string
