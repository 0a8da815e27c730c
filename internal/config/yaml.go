package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"pitot/internal/results/rundir"
	"pitot/internal/say"
	"pitot/internal/say/unreadable"
	"pitot/internal/userfile"
)

// readFile takes the settings of a YAML file: a flat mapping of the flags' names,
// and target.
func (d *decoder) readFile(path string) (target string, err error) {
	d.path = path
	data, err := userfile.Read(path, userfile.MostText)
	if err != nil {
		hint := "a config is a YAML file of flags, as rate: 4; every run leaves one, config.yaml in its directory"
		if own := filepath.Join(path, rundir.Config); fileExists(own) {
			hint = "did you mean " + own + "?"
		}
		return "", unreadable.FileError("config", path, err, hint)
	}
	return d.readYAML(path, data)
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (d *decoder) readYAML(path string, data []byte) (target string, err error) {
	root, err := rootNode(path, data)
	if err != nil || root == nil {
		return "", err
	}
	if root.Kind != yaml.MappingNode {
		return "", say.Errorf("%s:%d: want key: value", path, root.Line).WithHint("for example: rate: 4")
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		k, v := root.Content[i], root.Content[i+1]
		at := fmt.Sprintf("%s:%d: ", path, k.Line)
		if k.Kind != yaml.ScalarNode {
			return "", say.Errorf("%sa key is a plain word", at).WithHint(plainLine)
		}
		if seen[k.Value] > 0 {
			return "", say.Errorf("%s%s is given twice, first on line %d", at, k.Value, seen[k.Value]).WithHint("keep one of them")
		}
		seen[k.Value] = k.Line
		s, ok := d.known[k.Value]
		if !ok && d.resumed && slices.ContainsFunc(Settings(), func(s Setting) bool { return s.Name == k.Value }) {
			continue // of another verb: whose run it is is checked when it is resumed
		}
		if !ok && k.Value != "target" {
			return "", d.unknownKey(at, k.Value)
		}
		values, err := scalars(v)
		if err != nil {
			return "", say.Errorf("%s%s: %v", at, k.Value, err).WithHint("write " + k.Value + ": VALUE" + quoteHint)
		}
		if len(values) != 1 && (s == nil || !s.IsRepeatable()) {
			return "", say.Errorf("%s%s: want one value, not a list", at, k.Value).WithHint("write " + k.Value + ": VALUE" + quoteHint)
		}
		if k.Value == "target" {
			target = values[0]
			continue
		}
		if err := d.assignSetting(fromFile, at+k.Value, k.Value, values); err != nil {
			return "", err
		}
	}
	return target, nil
}

// rootNode gives the root of the one document in a file, nil if it is empty.
func rootNode(path string, data []byte) (*yaml.Node, error) {
	in := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	switch err := in.Decode(&first); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, fileLineError(path, err)
	}
	if err := in.Decode(&second); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, fileLineError(path, err)
		}
		return nil, say.Errorf("%s:%d: a second document begins", path, second.Line).WithHint("one file is one run: leave out what begins with ---")
	}
	if len(first.Content) == 0 || first.Content[0].Tag == "!!null" {
		return nil, nil
	}
	return first.Content[0], nil
}

// What to do about YAML that cannot be read.
const (
	plainLine = "a line is KEY: VALUE, for example rate: 4"
	quoteHint = "; put quotes around a value that has : # { or [ in it"
)

// fileLineError writes an error as FILE:LINE, as editors expect it.
func fileLineError(path string, err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	hint := plainLine + quoteHint
	switch {
	case strings.Contains(text, "tab character"), strings.Contains(text, "cannot start any token"):
		hint = "use spaces, not tabs; no line of a config needs any in front"
	case strings.Contains(text, "UTF-8"), strings.Contains(text, "control characters"):
		hint = "this is no text; a config is a YAML file of flags, as rate: 4"
	case strings.Contains(text, "unexpected end of stream"):
		hint = "a quote or bracket is not closed"
	}
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if line, what, ok := strings.Cut(rest, ": "); ok {
			if _, err := strconv.Atoi(line); err == nil {
				return say.Errorf("%s:%s: %s", path, line, what).WithHint(hint)
			}
		}
	}
	return say.Errorf("%s: %s", path, text).WithHint(hint)
}

func (d *decoder) unknownKey(at, key string) error {
	names := append(d.sortedNames(), "target")
	hint := "keys are the names of flags, see pitot run --help=all"
	if n := say.NearestName(key, names); n != "" {
		hint = "did you mean " + n + "?"
	}
	return say.Errorf("%sunknown key %q", at, key).WithHint(hint)
}

// scalars gives the values of a scalar or of a list of scalars.
func scalars(n *yaml.Node) ([]string, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return []string{n.Value}, nil
	case yaml.SequenceNode:
		var out []string
		for _, c := range n.Content {
			if c.Kind != yaml.ScalarNode {
				return nil, errors.New("a list holds plain values")
			}
			out = append(out, c.Value)
		}
		return out, nil
	}
	return nil, errors.New("want a plain value")
}

// runsAgain begins a config.yaml; the verb that made it follows.
const runsAgain = "# Does this run again: pitot "

// RecordedBy is the verb that wrote a run's config.yaml, "" where that is not known.
func RecordedBy(path string) Verb {
	b, _ := userfile.Read(path, userfile.MostText)
	line, _, _ := strings.Cut(string(b), "\n")
	rest, ok := strings.CutPrefix(line, runsAgain)
	if !ok {
		return ""
	}
	v, _, _ := strings.Cut(rest, " ")
	return Verb(v)
}

// StdinPrefix begins the names of files that keep what came on standard input while it is used.
const StdinPrefix = "pitot-stdin-"

// isTemporary reports whether a file is gone when the program ends.
func isTemporary(path string) bool {
	return strings.HasPrefix(filepath.Base(path), StdinPrefix) || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/") || path == "/dev/stdin"
}

// YAML writes the plan of a verb so that --config does it again. Secrets are left out.
func (p *Plan) YAML(v Verb) []byte {
	var b bytes.Buffer
	var hidden []string
	fmt.Fprintf(&b, "%s%s --config config.yaml\n", runsAgain, v)
	if p.Spec != "" {
		yamlLine(&b, "target", []string{keptTarget(p.Spec)})
	}
	parts := p.settingParts()
	for _, s := range Settings() {
		if s.NotKept != "" || !s.AppliesTo(v) || p.Mix != nil && (s.Name == "input" || s.Name == "output") {
			continue
		}
		var kept []string
		values := s.setValues(parts)
		if p.unlikePreset(&s, parts) {
			values = s.written(parts)
		}
		for _, value := range values {
			if s.Name == "workload" && isTemporary(value) {
				hidden = append(hidden, "--workload, which came through a pipe: save it in a file")
				continue
			}
			if s.Public != nil {
				public := s.Public(value)
				hidden = append(hidden, public.Hidden...)
				if value = public.Kept; value == "" {
					continue
				}
			}
			kept = append(kept, value)
		}
		if len(kept) > 0 {
			yamlLine(&b, s.Name, kept)
		}
	}
	for _, what := range hidden {
		fmt.Fprintf(&b, "# not stored, to be given again: %s\n", what)
	}
	return b.Bytes()
}

// yamlLine writes one key, as a list where it has several values.
func yamlLine(b *bytes.Buffer, key string, values []string) {
	if len(values) == 1 {
		fmt.Fprintf(b, "%s: %s\n", key, yamlQuote(values[0]))
		return
	}
	fmt.Fprintf(b, "%s:\n", key)
	for _, v := range values {
		fmt.Fprintf(b, "  - %s\n", yamlQuote(v))
	}
}

// yamlQuote writes a value as a YAML scalar on one line, without quotes where they are
// not needed. The reader takes the text whatever type YAML sees in it.
func yamlQuote(v string) string {
	n := yaml.Node{Kind: yaml.ScalarNode, Value: v}
	if v == "" || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f || !strconv.IsPrint(r) }) {
		n.Style = yaml.DoubleQuotedStyle
	}
	out, err := yaml.Marshal(&n)
	if err != nil {
		return strconv.Quote(v)
	}
	return strings.TrimSuffix(string(out), "\n")
}
