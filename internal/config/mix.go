package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"pitot/internal/say"
	"pitot/internal/say/unreadable"
	"pitot/internal/slo"
	"pitot/internal/userfile"
	"pitot/internal/workload"
	"pitot/internal/workload/seed"
)

// A mix is a workload of several classes of requests, read from a YAML file:
//
//	version: 1
//	classes:
//	  - name: chat
//	    share: 0.8            # of the requests; or rate: 4, of every class
//	    workload: chat        # a preset or a file of prompts, random where it is left out
//	    slo: p99 ttft<500ms
//	  - name: nightly
//	    share: 0.2
//	    input: lognormal(6000,3000)
//	    output: 200
//	    arrival: on-off(5s,20s)
//
// The other keys of a class are those of the settings of the same name.

// MixVersion is the version of the files that are read.
const MixVersion = 1

// mostClasses is the maximum number of classes in a mix. It is the number that a report shows.
const mostClasses = 12

// Mix is a workload of several classes of requests.
type Mix struct {
	Path    string
	SHA256  string
	About   string // what its file says that it is
	Classes []MixClass
}

// MixClass is one of them.
type MixClass struct {
	Name    string
	Share   float64 // of the requests, or of conversations that begin; the shares of all come to 1
	Rate    float64 // requests per second of its own, 0 where none is given
	Arrival string  // its own law, "" for none
	SLO     slo.Spec
	Ask     Ask // what it asks
}

// poisson is the law of classes that name none.
const poisson = "poisson"

// Rate is that of all classes, 0 where they have shares.
func (m *Mix) Rate() (sum float64) {
	for i := range m.Classes {
		sum += m.Classes[i].Rate
	}
	return sum
}

// ArrivalLaw returns the arrivals of all classes together, each with its own law; "" where no class
// has one. Classes without one are Poisson processes.
func (m *Mix) ArrivalLaw() string {
	var terms []string
	own := false
	for i := range m.Classes {
		c := &m.Classes[i]
		law := cmp.Or(c.Arrival, poisson)
		own = own || law != poisson // a sum of Poisson processes is one
		terms = append(terms, strconv.FormatFloat(c.Share, 'g', -1, 64)+"*"+law)
	}
	switch {
	case !own:
		return ""
	case len(terms) == 1:
		return m.Classes[0].Arrival
	}
	return strings.Join(terms, " + ")
}

// ClassObjective is the limits of its classes.
func (m *Mix) ClassObjective() (s slo.Spec) {
	for i := range m.Classes {
		if c := &m.Classes[i]; !c.SLO.IsNone() {
			s.Classes = append(s.Classes, slo.Class{Name: c.Name, Spec: c.SLO})
		}
	}
	return s
}

// ClassShares are those of its classes.
func (m *Mix) ClassShares() (list []float64) {
	for i := range m.Classes {
		list = append(list, m.Classes[i].Share)
	}
	return list
}

// HasConversations says whether a class has conversations.
func (m *Mix) HasConversations() bool {
	return slices.ContainsFunc(m.Classes, func(c MixClass) bool { return c.Ask.HasConversations() })
}

// generatedPrompts says whether all classes have generated prompts, and whether some have.
func (m *Mix) generatedPrompts() (all, some bool) {
	all = true
	for i := range m.Classes {
		one := m.Classes[i].Ask.IsGenerated()
		all, some = all && one, some || one
	}
	return all, some
}

// OfClass returns the workload of class k. It has a seed of its own, and the settings that all
// requests have in common.
func (a *Ask) OfClass(k int) Ask {
	const stream = 0x636c6173736573
	of := a.Mix.Classes[k].Ask
	of.Body, of.Choices, of.NoStream, of.PromptIDs, of.SeedSet = a.Body, a.Choices, a.NoStream, a.PromptIDs, a.SeedSet
	of.Batch, of.Query, of.Pooling = a.Batch, a.Query, a.Pooling
	of.Seed = seed.At(a.Seed, stream, uint64(k)) >> 11 // as a seed that anyone could give
	return of
}

// ShareOf is the share of the requests that a class has, 1 where it is not known.
func (a *Ask) ShareOf(class string) float64 {
	if a.Mix != nil {
		for i := range a.Mix.Classes {
			if c := &a.Mix.Classes[i]; c.Name == class {
				return c.Share * c.Ask.MeanTurns() / a.MeanTurns()
			}
		}
	}
	return 1
}

// isMix says whether a file is a mix; false where it cannot be read.
func isMix(path string) bool {
	if path == RandomWorkload {
		return false
	}
	kind, err := workload.Identify(path)
	return err == nil && kind == workload.Classes
}

// mostMix bounds the file of a mix, in bytes.
const mostMix = 1 << 20

// ReadMix reads the file of a mix; nil for a file that is none, or is not there.
func ReadMix(path string) (*Mix, error) {
	if !isMix(path) {
		return nil, nil
	}
	data, err := userfile.Read(path, userfile.MostText)
	switch {
	case err != nil:
		return nil, unreadable.FileError("--workload", path, err, "name a file that can be read")
	case len(data) > mostMix:
		return nil, say.Errorf("%s has more than %s bytes", path, say.Count(mostMix)).WithHint("a mix of classes is a page of YAML")
	}
	return parseMix(path, data)
}

const mixHint = "a mix has version: 1 and classes, each with name, share and what it asks: docs/guides/model-your-traffic.md"

func parseMix(path string, data []byte) (*Mix, error) {
	root, err := rootNode(path, data)
	if err != nil {
		return nil, err
	}
	if root == nil || root.Kind != yaml.MappingNode {
		return nil, say.Errorf("%s: want version and classes", path).WithHint(mixHint)
	}
	sum := sha256.Sum256(data)
	m := &Mix{Path: path, SHA256: hex.EncodeToString(sum[:])}
	var list *yaml.Node
	version := ""
	err = eachKey(path, root, []string{"version", "about", "classes"}, func(at string, k, v *yaml.Node) error {
		if k.Value == "classes" {
			if list = v; v.Kind != yaml.SequenceNode || len(v.Content) == 0 {
				return say.Errorf("%sclasses: want a list of classes", at).WithHint("  - name: chat\n    share: 0.8")
			}
			return nil
		}
		if v.Kind != yaml.ScalarNode {
			return say.Errorf("%s%s: want a plain value", at, k.Value)
		}
		if k.Value == "about" {
			m.About = v.Value
		} else {
			version = v.Value
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case version == "":
		return nil, say.Errorf("%s: no version", path).WithHint(fmt.Sprintf("write version: %d", MixVersion))
	case version != strconv.Itoa(MixVersion):
		return nil, say.Errorf("%s: version %.20q is not known", path, version).WithHint(fmt.Sprintf("this pitot reads version: %d", MixVersion))
	case list == nil:
		return nil, say.Errorf("%s: no classes", path).WithHint(mixHint)
	case len(list.Content) > mostClasses:
		return nil, say.Errorf("%s: %d classes, want %d at most", path, len(list.Content), mostClasses).WithHint("classes that are alike can be one, with quantiles(…) for its lengths")
	}
	for _, n := range list.Content {
		c, err := parseClass(path, n)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(m.Classes, func(o MixClass) bool { return o.Name == c.Name }); i >= 0 {
			return nil, say.Errorf("%s:%d: a second class %s", path, n.Line, c.Name).WithHint("results are listed by class: give each its own name")
		}
		m.Classes = append(m.Classes, c)
	}
	return m, m.takeShares()
}

// takeShares works out the shares of classes that have rates, and checks those that are
// given.
func (m *Mix) takeShares() error {
	total, rates := 0., m.Rate()
	for i := range m.Classes {
		c := &m.Classes[i]
		switch {
		case (c.Rate > 0) != (rates > 0):
			return say.Errorf("%s: some classes have a rate and some a share", m.Path).WithHint("give every class a rate, or every class a share of the requests")
		case c.Rate > 0:
			c.Share = c.Rate / rates
		}
		total += c.Share
	}
	if rates == 0 && math.Abs(total-1) > 1e-6 {
		return say.Errorf("%s: the shares of its classes come to %s, not to 1", m.Path, say.Decimal(total, 6)).WithHint("shares are of the requests: 0.8 and 0.2")
	}
	for i := range m.Classes {
		if m.Classes[i].Share /= total; m.Classes[i].Share < 1e-6 {
			return say.Errorf("%s: class %s has less than a millionth of the requests", m.Path, m.Classes[i].Name).WithHint("leave it out")
		}
	}
	return nil
}

// eachKey goes through the keys of a mapping, which are to be known and given once.
func eachKey(path string, n *yaml.Node, known []string, do func(at string, k, v *yaml.Node) error) error {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		at := fmt.Sprintf("%s:%d: ", path, k.Line)
		switch {
		case k.Kind != yaml.ScalarNode:
			return say.Errorf("%sa key is a plain word", at).WithHint("its keys are " + strings.Join(known, ", "))
		case seen[k.Value] > 0:
			return say.Errorf("%s%.60s is given twice, first on line %d", at, k.Value, seen[k.Value]).WithHint("keep one of them")
		case !slices.Contains(known, k.Value):
			hint := "its keys are " + strings.Join(known, ", ")
			if near := say.NearestName(k.Value, known); near != "" {
				hint = "did you mean " + near + "?"
			}
			return say.Errorf("%sunknown key %.60q", at, k.Value).WithHint(hint)
		}
		seen[k.Value] = k.Line
		if err := do(at, k, v); err != nil {
			return err
		}
	}
	return nil
}

// classSettings are the settings that a class can have of its own.
func classSettings() []string {
	return []string{"workload", "input", "output", "correlation", "prefix", "prefix-share", "turns", "turn-input", "system", "sub-agents", "think", "history", "arrival", "slo"}
}

func parseClass(path string, n *yaml.Node) (c MixClass, err error) {
	if n.Kind != yaml.MappingNode {
		return c, say.Errorf("%s:%d: a class is name, share and what it asks", path, n.Line).WithHint("  - name: chat\n    share: 0.8")
	}
	var l Load
	var g Good
	d := newDecoder(VerbRun, []any{&c.Ask, &l, &g})
	d.path = path
	line := fmt.Sprintf("%s:%d: ", path, n.Line)
	named := false
	err = eachKey(path, n, append([]string{"name", "share", "rate"}, classSettings()...), func(at string, k, v *yaml.Node) error {
		values, err := scalars(v)
		if err != nil || len(values) != 1 {
			return say.Errorf("%s%s: want one plain value", at, k.Value).WithHint("write " + k.Value + ": VALUE" + quoteHint)
		}
		value := values[0]
		switch k.Value {
		case "name":
			named = true
			if c.Name = value; slo.CheckClass(value) != nil || value == "other" {
				return say.Errorf("%sname %.60q cannot be that of a class", at, value).WithHint("lower-case letters, digits and -_. inside, 40 at most; other is what reports call the rest")
			}
			return nil
		case "share":
			c.Share, err = shareOf(value)
		case "rate":
			k := requestRate()
			c.Rate, err = k.parse(value)
		default:
			return d.assignSetting(fromFile, at+k.Value, k.Value, values)
		}
		if err != nil {
			return say.Errorf("%s%s: %v", at, k.Value, err).WithHint(say.HintOf(err))
		}
		return nil
	})
	if err != nil {
		return c, err
	}
	inClass := func(err error) error {
		return say.Errorf("%sclass %s: %v", line, c.Name, err).WithHint(say.HintOf(err))
	}
	switch {
	case !named:
		return c, say.Errorf("%sa class has no name", line).WithHint("write name: chat; results are listed by it")
	case c.Share > 0 && c.Rate > 0:
		return c, inClass(say.Errorf("share and rate both say how many requests it has").WithHint("keep one of them"))
	case c.Share == 0 && c.Rate == 0:
		return c, inClass(say.Errorf("neither share nor rate").WithHint("share: 0.8 of the requests, or rate: 4 a second"))
	case isMix(c.Ask.Workload):
		return c, inClass(say.Errorf("%s is a mix itself", c.Ask.Workload).WithHint("put its classes here"))
	}
	if err := d.takePreset(); err != nil {
		return c, inClass(err)
	}
	if err := d.checkConflicts(""); err != nil {
		return c, inClass(errors.New(strings.ReplaceAll(err.Error(), "--", "")))
	}
	if d.given["think"] > 0 && !c.Ask.HasConversations() {
		return c, inClass(say.Errorf("think is the pause between the turns of a conversation, and its requests stand alone").WithHint("say how many turns: turns: 4"))
	}
	if c.SLO = g.SLO; len(c.SLO.Classes) > 0 {
		return c, inClass(say.Errorf("slo: it names a class itself").WithHint("its limits are those of this class: p99 ttft<500ms"))
	}
	if d.given["arrival"] > 0 {
		if c.Arrival = l.Arrival; isSum(c.Arrival) {
			return c, inClass(say.Errorf("arrival: %.60q is a sum of laws", c.Arrival).WithHint("the classes are that already: give each of its laws a class"))
		}
	}
	return c, nil
}

// isSum says whether a law is one of several, outside of parentheses.
func isSum(law string) bool {
	depth := 0
	for _, r := range law {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case '+':
			if depth == 0 {
				return true
			}
		}
	}
	return false
}

// shareOf is a share of the requests, over 0.
func shareOf(v string) (float64, error) {
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || !(x > 0 && x <= 1) {
		return 0, say.Errorf("%.40q is no share", v).WithHint("of the requests, as 0.8; the shares of all classes come to 1")
	}
	return x, nil
}

// takeMix takes what the mix of --workload says: lengths, and where nobody has set them,
// the arrivals and limits of its classes. What else sets the same as its classes is refused.
func (d *decoder) takeMix(a *Ask) error {
	m, err := ReadMix(a.Workload)
	if err != nil || m == nil {
		return err
	}
	a.Mix = m
	for _, name := range []string{"input", "output", "correlation", "prefix", "prefix-share", "turns", "turn-input", "system", "sub-agents", "history", "cache"} {
		if s := d.known[name]; s != nil && d.given[name] > 0 {
			if name == "cache" {
				return say.Errorf("--cache has no meaning with the classes of %s", m.Path).WithHint("leave it out: classes share the prefixes that they have, and the warm-up asks for them")
			}
			return say.Errorf("--%s has no meaning with the classes of %s, which have their own", name, m.Path).WithHint("write " + name + " in the class that is to have it")
		}
	}
	a.Input, a.Output = m.combinedLengths()
	if law := m.ArrivalLaw(); law != "" && d.known["arrival"] != nil {
		l := findPart[Load](d.parts)
		switch {
		case d.conditionHolds("concurrency") || d.conditionHolds("over=concurrency"), d.conditionHolds("over=agents"):
			return say.Errorf("the classes of %s arrive by laws of their own, and users who wait for their answers do not", m.Path).WithHint("take a rate, or leave arrival out of the classes")
		case d.given["arrival"] > 0 && l.Arrival != law:
			return say.Errorf("--arrival %s and the arrivals of the classes of %s both say when requests are due", l.Arrival, m.Path).WithHint("leave --arrival out, or leave arrival out of the classes")
		}
		if err := d.known["arrival"].parseInto(d.parts, law); err != nil {
			return say.Errorf("%s: arrival: %v", m.Path, err).WithHint(say.HintOf(err))
		}
	}
	if objective := m.ClassObjective(); !objective.IsNone() && d.known["slo"] != nil && d.given["slo"] == 0 {
		if err := d.known["slo"].parseInto(d.parts, objective.String()); err != nil {
			return say.Errorf("%s: slo: %v", m.Path, err).WithHint(say.HintOf(err))
		}
		d.recordOrigin("slo", m.Path, false)
	}
	return nil
}

// combinedLengths are those of all classes together, at the ranks of quantiles; those of a file are
// not known, so that it is left out.
func (m *Mix) combinedLengths() (in, out workload.Lengths) {
	type length struct {
		tokens int
		weight float64
	}
	const ranks = 2000
	mixed := func(of func(a *Ask, p float64) int) workload.Lengths {
		var all []length
		total := 0.
		for i := range m.Classes {
			c := &m.Classes[i]
			if !c.Ask.IsGenerated() {
				continue
			}
			for k := range ranks {
				all = append(all, length{of(&c.Ask, (float64(k)+.5)/ranks), c.Share})
				total += c.Share
			}
		}
		if len(all) == 0 {
			return workload.Lengths{}
		}
		slices.SortFunc(all, func(a, b length) int { return a.tokens - b.tokens })
		var points []string
		last, sum, i := 0, 0., 0
		for _, p := range []float64{0, 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.9, 100} {
			for ; i < len(all)-1 && sum+all[i].weight < p/100*total; i++ {
				sum += all[i].weight
			}
			last = max(last, all[i].tokens)
			if p == 100 {
				last = max(last, all[len(all)-1].tokens)
			}
			points = append(points, fmt.Sprintf("%s:%d", say.Exact(p), max(last, 1)))
		}
		l, err := workload.ParseLengths("quantiles(" + strings.Join(points, ",") + ")")
		if err != nil {
			return workload.FixedLength(max(last, 1))
		}
		return l
	}
	in = mixed(func(a *Ask, p float64) int { return int(a.PrefixMean()) + a.Input.Quantile(p) })
	out = mixed(func(a *Ask, p float64) int { return a.Output.Quantile(p) })
	if in.IsZero() {
		return Default().Input, Default().Ask.Output
	}
	return in, out
}
