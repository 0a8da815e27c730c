package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pitot/internal/workload/arrival"
)

// lines of a trace in which nothing is odd, each changed by edit.
func traceLines(n int, law string, edit func(i int, q *row)) *Trace {
	l, err := arrival.ParseLaw(law, arrival.Files{})
	if err != nil {
		panic(err)
	}
	p, err := l.NewProcess(5, 3, 0)
	if err != nil {
		panic(err)
	}
	t := &Trace{Unit: "s", Records: n, Rejected: map[string]int{}, First: map[string]int{}}
	c := columns{names: map[string]string{}}
	for i := range n {
		q := row{at: p.Next(), input: int32(100 + i%700), output: int32(20 + i%97), client: fmt.Sprint("client ", i%7)}
		for k := range (int(q.input) + 63) / 64 {
			q.blocks = append(q.blocks, int64(1000*i+k))
		}
		if edit != nil {
			edit(i, &q)
		}
		if err := c.add(&q); err != nil {
			panic(err)
		}
	}
	c.into(t)
	return t
}

func namesOf(list []Finding) (names []string) {
	for _, f := range list {
		names = append(names, f.Name)
	}
	return names
}

// Each finding is there where it should be, and alone; and none where nothing is odd.
func TestLint(t *testing.T) {
	poisson, _ := arrival.ParseLaw("poisson", arrival.Files{})
	usual := Conditions{Limit: 4096, Law: poisson, Seconds: 60, Slowest: 5}
	if got := traceLines(2000, "poisson", nil).Lint(usual); len(got) > 0 {
		t.Errorf("nothing is odd: %+v", got)
	}
	for name, c := range map[string]struct {
		edit func(i int, q *row)
		law  string
		for_ Conditions
	}{
		LintRepeated: {edit: func(i int, q *row) {
			if i%50 == 1 {
				q.input, q.blocks = 100, []int64{1, 2}
			}
		}},
		LintAtOnce:    {edit: func(_ int, q *row) { q.at = 5 }, for_: Conditions{Limit: 4096}},
		LintLimit:     {for_: Conditions{Limit: 800}},
		LintTruncated: {edit: func(_ int, q *row) { q.output = min(q.output, 100) }},
		LintRounded:   {edit: func(_ int, q *row) { q.at -= q.at % 2e9 }, for_: Conditions{Limit: 4096}},
		LintLaw:       {law: "on-off(5s,10s)"},
		LintEmpty: {edit: func(i int, q *row) {
			if i == 9 {
				q.input, q.blocks = 0, nil
			}
		}},
		LintClient: {edit: func(i int, q *row) {
			if i%5 < 3 {
				q.client = "client 0"
			}
		}},
		LintShort: {for_: Conditions{Seconds: 14, Slowest: 5}},
		LintBlocks: {edit: func(i int, q *row) {
			if i%9 == 0 {
				q.blocks = q.blocks[1:]
			}
		}},
	} {
		law, conditions := c.law, c.for_
		if law == "" {
			law = "poisson"
		}
		if conditions == (Conditions{}) {
			conditions = usual
		}
		got := namesOf(traceLines(2000, law, c.edit).Lint(conditions))
		if name == LintRepeated { // whose two ids fit no length either
			got = slices.DeleteFunc(got, func(s string) bool { return s == LintBlocks })
		}
		if !slices.Equal(got, []string{name}) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Files of prompts.
func TestLintFiles(t *testing.T) {
	count := func(text []byte) int { return len(strings.Fields(string(text))) }
	for name, c := range map[string]struct{ text, want string }{
		"fine":      {"{\"prompt\": \"one two\"}\n{\"prompt\": \"two three\"}\n", ""},
		"repeated":  {"{\"prompt\": \"one two\"}\n{\"prompt\": \"one two\"}\n", LintRepeated},
		"empty":     {"{\"prompt\": \"one two\"}\n{\"prompt\": \" \"}\n{\"prompt\": \"three\"}\n", LintEmpty + ", " + LintRejected},
		"reasoning": {"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"<think>b</think> c\"}, {\"role\": \"user\", \"content\": \"d\"}]}\n", LintReasoning},
	} {
		path := filepath.Join(t.TempDir(), "prompts.jsonl")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		look, err := SummarizeRequests(path, count)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := strings.Join(namesOf(look.Lint(Conditions{})), ", "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if _, err := SummarizeRequests("chatt", count); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a name that is not there: %v", err)
	}
}

// Unsorted rows and rows that cannot be read are told.
func TestLintRows(t *testing.T) {
	got, err := traceOf("timestamp,input_tokens\n1,5\n0,6\n2,x\n3,8\n")
	if err != nil {
		t.Fatal(err)
	}
	if names := namesOf(got.Lint(Conditions{})); !slices.Equal(names, []string{LintUnsorted, LintRejected}) {
		t.Errorf("%q", names)
	}
}

// What a trace shares, by hand: a block of the second row, all three of the third.
func TestSharing(t *testing.T) {
	got, err := traceOf(`{"timestamp": 0, "input_length": 40, "output_length": 1, "hash_ids": [1, 2, 3]}
{"timestamp": 5, "input_length": 30, "output_length": 9, "hash_ids": [1, 9]}
{"timestamp": 9, "input_length": 40, "output_length": 9, "hash_ids": [1, 2, 3]}
`)
	if err != nil {
		t.Fatal(err)
	}
	blocks, tokens, ok := got.BlockSharing()
	if size, misfits := got.BlockSize(); size != 16 || misfits != 0 || !ok || blocks != 4./8 || tokens != (16.+40)/110 {
		t.Errorf("blocks of %d (%d do not fit), %g of the blocks, %g of the tokens", size, misfits, blocks, tokens)
	}
	if r := got.LengthCorrelation(); r != -.5 {
		t.Errorf("correlation %g", r)
	}
}
