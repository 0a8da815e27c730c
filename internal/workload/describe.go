package workload

import (
	"math"
	"strconv"

	"pitot/internal/workload/token"
)

// Description is the workload section of run.json, as far as the workload
// itself can tell it.
type Description struct {
	Kind        string  `json:"kind"`             // "random", "file", "trace" or "mix"
	Preset      string  `json:"preset,omitempty"` // name of the preset that lengths come from, where none was changed
	Input       string  `json:"input,omitempty"`  // lengths in tokens, as ParseLengths reads them
	Output      string  `json:"output,omitempty"`
	Correlation float64 `json:"correlation,omitempty"` // Spearman's, of the lengths of prompts and answers
	// Conversations describes the requests that follow a request. It is nil where each request
	// stands alone.
	Conversations *ConversationDescription `json:"conversations,omitempty"`
	Prefix        *PrefixDescription       `json:"prefix,omitempty"`
	Cache         string                   `json:"cache,omitempty"` // what --cache asked for
	Vocabulary    *VocabularyDescription   `json:"vocabulary,omitempty"`
	Calibration   *Calibration             `json:"calibration,omitempty"`
	File          *FileDescription         `json:"file,omitempty"`
	Mix           *MixDescription          `json:"mix,omitempty"`
	Batch         *BatchDescription        `json:"batch,omitempty"` // of requests of which nothing is generated
}

// MixDescription describes the classes of requests of a mix.
type MixDescription struct {
	Name    string             `json:"name"` // path as given
	SHA256  string             `json:"sha256"`
	Classes []ClassDescription `json:"classes"`
}

// ClassDescription is a class of requests of a mix.
type ClassDescription struct {
	Name     string      `json:"name"`
	Share    float64     `json:"share"`             // of the requests
	Arrival  string      `json:"arrival,omitempty"` // law of its own
	SLO      string      `json:"slo,omitempty"`     // limits of its own, as the file has them
	Workload Description `json:"workload"`
}

// PrefixDescription describes the texts that prompts begin with. Each prefix makes a prompt longer
// than the workload's input says, by its own length.
type PrefixDescription struct {
	Tokens int     `json:"tokens"`         // of a tree its mean
	Share  float64 `json:"share"`          // of the requests, that begin with the same; the others have one of their own
	Prompt string  `json:"prompt"`         // lengths of whole prompts: input and prefix
	Tree   string  `json:"tree,omitempty"` // that they begin with the texts of, as ParseTree reads it
}

// ConversationDescription is a [ConversationConfig], as far as the request that begins a
// conversation does not say it.
type ConversationDescription struct {
	Turns   string `json:"turns"`   // lengths, as ParseLengths reads them
	Input   string `json:"input"`   // "" of a file's; tokens that a further turn adds, besides the answer before it
	Think   string `json:"think"`   // pause before a further turn, as ParsePause reads it
	System  int    `json:"system"`  // tokens of the system prompt
	History string `json:"history"` // of what the answers are repeated: "served" or "planned"

	SubAgents string `json:"sub_agents,omitempty"` // that steps start, as ParseSubAgents reads them
}

// Describe describes what follows the first turn.
func (v *Conversations) Describe() *ConversationDescription {
	c := &v.config
	d := &ConversationDescription{c.Turns.String(), c.Input.String(), c.Think.String(), c.System, "served", ""}
	if !c.SubAgents.IsNone() {
		d.SubAgents = c.SubAgents.String()
	}
	if c.Planned {
		d.History = "planned"
	}
	return d
}

// withPrefix writes lengths of prompts with a prefix: "640", or "uniform(1,8) + 512".
func withPrefix(input string, prefix int) string {
	if n, err := strconv.Atoi(input); err == nil {
		return strconv.Itoa(n + prefix)
	}
	return input + " + " + strconv.Itoa(prefix)
}

// VocabularyDescription describes the words of generated text.
type VocabularyDescription struct {
	Name       string `json:"name"`
	Words      int    `json:"words"`
	FirstWords int    `json:"first_words"`
}

// DescribeVocabulary describes the words of a vocabulary.
func DescribeVocabulary(v *token.Vocabulary) *VocabularyDescription {
	return &VocabularyDescription{v.Name(), v.Size(), v.FirstSize()}
}

// FileDescription is the file that prompts come from.
type FileDescription struct {
	Name            string         `json:"name"` // path as given
	SHA256          string         `json:"sha256"`
	Format          string         `json:"format"`
	Records         int            `json:"records"` // lines, or elements of the array
	Requests        int            `json:"requests"`
	Skipped         map[string]int `json:"skipped"`                // reason: records
	BlockTokens     int            `json:"block_tokens,omitempty"` // of a trace whose rows have the ids of blocks
	OutputEstimated bool           `json:"output_estimated"`       // recorded answers of unknown length, taken for 4/3 tokens a word
}

// Describe describes the workload when it is rendered with v.
func (r *Random) Describe(v *token.Vocabulary) Description {
	c := r.config
	d := Description{
		Kind:   "random",
		Preset: c.Preset,
		Input:  c.Input.String(),
		Output: c.Output.String(), Correlation: c.Correlation,
		Vocabulary: DescribeVocabulary(v), Calibration: c.Calibration.ifKnown(),
	}
	if c.Prefix > 0 {
		d.Prefix = &PrefixDescription{c.Prefix, c.PrefixShare, withPrefix(c.Input.String(), c.Prefix), ""}
	}
	if t := c.Tree; t != nil {
		d.Prefix = &PrefixDescription{int(math.Round(t.Mean())), c.PrefixShare, c.Input.String() + " + " + t.String(), t.String()}
	}
	return d
}

// Describe describes the workload. Output is how lengths are drawn for
// requests that say none.
func (f *File) Describe() Description {
	s := f.Stats()
	return Description{
		Kind:   "file",
		Output: f.options.Output.String(),
		File: &FileDescription{
			Name:            f.path,
			SHA256:          f.sha256,
			Format:          f.format.name,
			Records:         s.Records,
			Requests:        s.Requests,
			Skipped:         s.Skipped,
			OutputEstimated: f.format.estimated,
		},
	}
}
