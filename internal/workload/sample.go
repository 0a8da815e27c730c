package workload

import (
	"errors"
	"hash/maphash"
	"io/fs"
	"slices"
	"strings"

	"pitot/internal/say"
)

// sampled is the number of requests that are read from a workload without an end.
const sampled = 20_000

// SummarizeRequests reads what there is to know of the requests of a preset, a trace or a file of
// prompts, without asking them. Lengths of prompts in a file are counted by count.
func SummarizeRequests(name string, count func(text []byte) int) (*Trace, error) {
	if p, ok := PresetNamed(name); ok {
		if p.Turns != "" {
			return nil, say.Errorf("%s has conversations, whose requests are not listed here", name).WithHint("pitot workload show " + name + " draws their lengths; pitot workload sample " + name + " shows what would be sent")
		}
		return lookPreset(p)
	}
	kind, err := Identify(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, say.Errorf("read %s: no such file", name).WithHint(missingHint(name))
	case err != nil:
		return nil, userError(name, err)
	case kind == Classes:
		return nil, say.Errorf("%s has classes of requests, each with lengths of its own", name).WithHint("pitot workload show " + name + " draws them")
	case kind == Sessioned:
		return nil, say.Errorf("%s holds recorded sessions, whose requests are not listed here", name).WithHint("pitot run TARGET --workload " + name + " --dry-run")
	case kind == Recorded:
		t, err := ReadTrace(name)
		return t, userError(name, err)
	}
	f, err := Open(name, FileOptions{})
	if err != nil {
		return nil, userError(name, err)
	}
	defer f.Close()
	return lookFile(f, count)
}

// missingHint says what can be named in place of a file that is not there.
func missingHint(name string) string {
	if near := say.NearestName(name, PresetNames()); near != "" {
		return "did you mean " + near + "?"
	}
	return "name a file that is there, or one of pitot workload list"
}

// lookPreset draws of one.
func lookPreset(p Preset) (*Trace, error) {
	in, err := ParseLengths(p.Input)
	if err != nil {
		return nil, err
	}
	out, err := ParseLengths(p.Output)
	if err != nil {
		return nil, err
	}
	r, err := NewRandom(RandomConfig{Preset: p.Name, Input: in, Output: out, Prefix: p.Prefix, PrefixShare: p.PrefixShare, Correlation: p.Correlation})
	if err != nil {
		return nil, err
	}
	t := &Trace{Format: "preset", Records: sampled}
	for i := range int64(sampled) {
		q, err := r.At(i)
		if err != nil {
			return nil, err
		}
		t.Input, t.Output = append(t.Input, int32(q.Input)), append(t.Output, int32(q.Output))
	}
	return t, nil
}

// lookFile reads all prompts of one.
func lookFile(f *File, count func(text []byte) int) (*Trace, error) {
	s := f.Stats()
	t := &Trace{Format: f.format.name, Records: s.Records, Rejected: s.Skipped, First: s.First, Counted: true}
	t.Empty, t.Unused, t.Above = s.Skipped[string(skipEmpty)], s.Unused, s.Above
	seed := maphash.MakeSeed()
	seen := map[uint64]bool{}
	known := false
	for i := range int64(len(f.entries)) {
		q, err := f.At(i)
		if err != nil {
			return nil, err
		}
		var text []byte
		for _, m := range q.Messages {
			for _, s := range m.Segments {
				text = append(text, s.Text...)
				text = append(text, '\n')
			}
		}
		h := maphash.Bytes(seed, text)
		if seen[h] {
			t.Same++
		}
		seen[h] = true
		if strings.Contains(string(text), "<think>") {
			t.Thinking++
		}
		t.Input = append(t.Input, int32(min(count(text), MaxLength)))
		t.Output = append(t.Output, int32(q.Output))
		if due := f.entries[i].due; due != noTime {
			t.At = append(t.At, due)
		}
		known = known || q.Output != Unknown
	}
	if !known {
		t.Output = nil
	}
	if t.At = slices.Sorted(slices.Values(t.At)); f.HasTimes() {
		t.Unit = "s"
	} else {
		t.At = nil
	}
	return t, nil
}

// Quantiles are the lengths of a column at shares of its rows, and their mean; rows that do
// not say are left out.
func Quantiles(column []int32, shares ...float64) (at []int, mean float64) {
	known := slices.DeleteFunc(slices.Clone(column), func(x int32) bool { return x < 0 })
	if len(known) == 0 {
		return nil, 0
	}
	slices.Sort(known)
	for _, x := range known {
		mean += float64(x) / float64(len(known))
	}
	for _, p := range shares {
		at = append(at, int(known[min(int(p*float64(len(known))), len(known)-1)]))
	}
	return at, mean
}
