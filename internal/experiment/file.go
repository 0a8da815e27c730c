package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"pitot/internal/config"
	"pitot/internal/say"
	"pitot/internal/say/unreadable"
	"pitot/internal/slo"
	"pitot/internal/target"
	"pitot/internal/userfile"
)

// The file is strict: a key that is not known, a value without its unit and a name that
// is taken are mistakes, each with its line. What can be written stands in one table for
// each part; the JSON Schema is made of the same.

// key is one key of a part of the file.
type key struct {
	name   string
	about  string
	schema map[string]any // of its value
	read   func(r *reader, n *yaml.Node) error
}

// reader reads a plan.
type reader struct {
	plan *Plan
	path string
	row  *Row // that is being read
}

// Read reads the plan in a file, and checks it as far as this machine alone can tell.
// Errors are the user's.
func Read(path string) (*Plan, error) {
	data, err := userfile.Read(path, userfile.MostText)
	if err != nil {
		return nil, unreadable.FileError("plan", path, err, "pitot experiment new chat > plan.yaml writes one")
	}
	return Parse(path, data)
}

// Source gives the text that a plan was read from.
func (p *Plan) Source() []byte { return []byte(p.source) }

// Parse is Read of a file's contents.
func Parse(path string, data []byte) (*Plan, error) {
	p := &Plan{Path: path, source: string(data), Launches: 3, Seed: 1, Stop: Stop{Confidence: 0.95, Precision: 0.04, Early: true}}
	r := &reader{plan: p, path: path}
	in := yaml.NewDecoder(bytes.NewReader(data))
	var root, second yaml.Node
	switch err := in.Decode(&root); {
	case errors.Is(err, io.EOF):
		return nil, say.Errorf("%s is empty", path).WithHint("pitot experiment new chat writes a plan to begin with")
	case err != nil:
		return nil, say.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "yaml: ")).WithHint("a plan is YAML: keys, a colon, a space and a value; lines below a key are indented by spaces")
	}
	if err := in.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, say.Errorf("%s holds more than one document", path).WithHint("one file is one experiment: leave out what begins with ---")
	}
	if err := r.readMapping(root.Content[0], "a plan", planKeys()); err != nil {
		return nil, err
	}
	return p, r.checkPlan()
}

// linePrefix begins a message with where it is about.
func (r *reader) linePrefix(line int) string {
	if line == 0 {
		return r.path + ": "
	}
	return fmt.Sprintf("%s:%d: ", r.path, line)
}

// readMapping reads a part by its keys.
func (r *reader) readMapping(n *yaml.Node, what string, keys []key) error {
	if n.Kind != yaml.MappingNode {
		return say.Errorf("%s%s has keys: KEY: VALUE", r.linePrefix(n.Line), what).WithHint("its keys are " + strings.Join(namesOf(keys), ", "))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		at := slices.IndexFunc(keys, func(x key) bool { return x.name == k.Value })
		if at < 0 {
			return say.Errorf("%sunknown key %.60q in %s", r.linePrefix(k.Line), k.Value, what).WithHint(say.KnownHint(k.Value, namesOf(keys)))
		}
		if seen[k.Value] {
			return say.Errorf("%s%s is given twice", r.linePrefix(k.Line), k.Value).WithHint("keep one of them")
		}
		seen[k.Value] = true
		if err := keys[at].read(r, v); err != nil {
			var own *say.Error
			if errors.As(err, &own) && strings.HasPrefix(own.Msg, r.path) {
				return err
			}
			return say.Errorf("%s%s: %v", r.linePrefix(v.Line), k.Value, err).WithHint(say.HintOf(err))
		}
	}
	return nil
}

func namesOf(keys []key) (names []string) {
	for _, k := range keys {
		names = append(names, k.name)
	}
	return names
}

// scalar is a plain value.
func scalar(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		return "", say.Errorf("want one value").WithHint("write it behind the colon; quotes around a value that has : # { or [ in it")
	}
	return n.Value, nil
}

// textKey makes a key of a plain value.
func textKey(name, about string, schema map[string]any, set func(p *Plan, v string) error) key {
	return key{name, about, schema, func(r *reader, n *yaml.Node) error {
		v, err := scalar(n)
		if err != nil {
			return err
		}
		return set(r.plan, v)
	}}
}

func partKey(name, about string, keys []key) key {
	return key{name, about, objectSchema(keys), func(r *reader, n *yaml.Node) error { return r.readMapping(n, name, keys) }}
}

// planKeys are the keys of a plan, in the order in which it is written.
func planKeys() []key {
	return []key{
		partKey("contract", "what a deployment is accepted for", contractKeys()),
		partKey("budget", "what the experiment may take", []key{
			textKey("time", "of measured load, as 2h; of sim: virtual", stringSchema("2h"), func(p *Plan, v string) (err error) {
				p.Budget.Time, err = parseDuration(v)
				return err
			}),
			textKey("money", "what the time costs at the price of the GPUs, as $20", stringSchema("$20"), func(p *Plan, v string) (err error) {
				p.Budget.USD, err = parseDollars(v)
				return err
			}),
		}),
		{"target", "the baseline: sim:MODEL@GPU?settings, mock:MODEL@GPU?settings, or the URL of a server, alone or with how it is started", targetSchema(), (*reader).readTarget},
		{"common", "settings of pitot run for all rows", runSchema(), func(r *reader, n *yaml.Node) (err error) {
			r.plan.Common, err = r.readSettings(n, nil)
			return err
		}},
		{"rows", "the loads to measure: presets A to F, and your own with the settings of pitot run", rowsSchema(), (*reader).readRows},
		{"knobs", "settings of the engine, each with the values to try", knobsSchema(), (*reader).readKnobs},
		textKey("launches", "starts of the engine with each configuration", map[string]any{"type": "integer", "minimum": 2}, func(p *Plan, v string) (err error) {
			if p.Launches, err = strconv.Atoi(v); err != nil || p.Launches < 2 || p.Launches > 100 {
				return say.Errorf("%.40q is no number of launches from 2 to 100", v).WithHint("one launch says nothing of how launches differ; 3 is usual")
			}
			return nil
		}),
		textKey("seed", "of prompts, arrivals and the order of launches", map[string]any{"type": "integer", "minimum": 0}, func(p *Plan, v string) (err error) {
			if p.Seed, err = strconv.ParseUint(v, 10, 53); err != nil {
				return say.Errorf("%.40q is no seed", v).WithHint("a whole number from 0 on")
			}
			return nil
		}),
		partKey("stop", "when there is enough", []key{
			textKey("confidence", "of what is claimed, as 95%", stringSchema("95%"), func(p *Plan, v string) (err error) {
				p.Stop.Confidence, err = parseShare(v, 0.5, 0.999)
				return err
			}),
			textKey("precision", "how much more another configuration may carry and not be looked for, as 4%", stringSchema("4%"), func(p *Plan, v string) (err error) {
				p.Stop.Precision, err = parseShare(v, 0.001, 0.5)
				return err
			}),
			textKey("early", "give up configurations that cannot win, and end, as soon as the launches allow it", map[string]any{"type": "boolean"}, func(p *Plan, v string) (err error) {
				if p.Stop.Early, err = strconv.ParseBool(v); err != nil {
					return say.Errorf("%.40q is neither true nor false", v)
				}
				return nil
			}),
		}),
	}
}

func contractKeys() []key {
	return []key{
		textKey("kind", "of traffic: chat, rag, batch or mixed", map[string]any{"enum": Kinds()}, func(p *Plan, v string) error {
			if !slices.Contains(Kinds(), v) {
				return say.Errorf("unknown kind %.40q", v).WithHint(say.KnownHint(v, Kinds()))
			}
			p.Contract.Kind = v
			return nil
		}),
		textKey("limits", "that requests are answered within, as --slo has them", stringSchema("p95 ttft<500ms, p95 tpot<50ms, errors<1%"), func(p *Plan, v string) (err error) {
			if p.Contract.Limits, err = slo.Parse(v); err != nil {
				return err
			}
			if p.Contract.Limits.LimitsAnswers() {
				return say.Errorf("an experiment asks no questions whose answers are checked: %.60q", v).WithHint("leave the limit on wrong answers out; look at the winner with pitot run URL --check-answers 5%")
			}
			_, err = p.Contract.Limits.SplitClaims()
			return err
		}),
		textKey("capacity", "requests per second that must be carried within the limits, as 12/s", stringSchema("12/s"), func(p *Plan, v string) (err error) {
			p.Contract.Capacity, err = perSecond(v)
			return err
		}),
		textKey("cost", "at most, per million output tokens within the limits, as $0.60", stringSchema("$0.60"), func(p *Plan, v string) (err error) {
			p.Contract.Cost, err = parseDollars(v)
			return err
		}),
		textKey("row", "that the contract is judged by: F", stringSchema("F"), func(p *Plan, v string) error {
			p.Contract.Row = v
			return nil
		}),
	}
}

// Units are part of a value: a number alone may be meant otherwise.

func parseDuration(v string) (time.Duration, error) {
	d, err := time.ParseDuration(v)
	if err != nil || d <= 0 {
		return 0, say.Errorf("%.40q is no length of time", v).WithHint("a number with its unit, as 90s, 30m or 2h")
	}
	return d, nil
}

func parseDollars(v string) (float64, error) {
	x, err := strconv.ParseFloat(strings.TrimPrefix(v, "$"), 64)
	if err != nil || !strings.HasPrefix(v, "$") || !(x > 0) || x > 1e9 {
		return 0, say.Errorf("%.40q is no amount of dollars", v).WithHint("write it with its unit, as $20 or $0.60")
	}
	return x, nil
}

func perSecond(v string) (float64, error) {
	if n, ok := strings.CutSuffix(strings.ReplaceAll(v, " ", ""), "/min"); ok {
		if x, err := strconv.ParseFloat(n, 64); err == nil && x > 0 {
			return 0, say.Errorf("%.40q is no rate of requests per second", v).WithHint("write it per second: " + say.Decimal(x/60, 3) + "/s")
		}
	}
	number, ok := strings.CutSuffix(strings.ReplaceAll(v, " ", ""), "/s")
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || !(x > 0) || x > 1e6 {
		return 0, say.Errorf("%.40q is no rate of requests", v).WithHint("write it with its unit, as 12/s")
	}
	return x, nil
}

func parseShare(v string, least, most float64) (float64, error) {
	number, ok := strings.CutSuffix(strings.ReplaceAll(v, " ", ""), "%")
	x, err := strconv.ParseFloat(number, 64)
	x = x / 100
	if err != nil || !ok || !(x >= least && x <= most) {
		return 0, say.Errorf("%.40q is no share from %s to %s", v, say.Percent(least), say.Percent(most)).WithHint("write it in percent, as 95%")
	}
	return x, nil
}

// readSettings reads settings of pitot run; others are keys of their own.
func (r *reader) readSettings(n *yaml.Node, others []key) (list []Setting, err error) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil, nil
	}
	if n.Kind != yaml.MappingNode {
		return nil, say.Errorf("%swant settings of pitot run: KEY: VALUE", r.linePrefix(n.Line)).WithHint("for example {workload: chat, concurrency: 8}")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if at := slices.IndexFunc(others, func(x key) bool { return x.name == k.Value }); at >= 0 {
			if err := others[at].read(r, v); err != nil {
				var own *say.Error
				if errors.As(err, &own) && strings.HasPrefix(own.Msg, r.path) {
					return nil, err
				}
				return nil, say.Errorf("%s%s: %v", r.linePrefix(v.Line), k.Value, err).WithHint(say.HintOf(err))
			}
			continue
		}
		names := append(runSettings(), namesOf(others)...)
		if !slices.Contains(names, k.Value) {
			hint := say.KnownHint(k.Value, names)
			if near := say.NearestName(k.Value, names); near == "" {
				hint = "a row has the settings of pitot run, see pitot run --help=all, and " + strings.Join(namesOf(rowKeys()), " and ")
			}
			return nil, say.Errorf("%sunknown key %.60q", r.linePrefix(k.Line), k.Value).WithHint(hint)
		}
		s := Setting{Name: k.Value, line: k.Line}
		switch v.Kind {
		case yaml.SequenceNode:
			for _, c := range v.Content {
				s.Values = append(s.Values, c.Value)
			}
		case yaml.ScalarNode:
			s.Values = []string{v.Value}
		default:
			return nil, say.Errorf("%s%s: want a plain value", r.linePrefix(v.Line), k.Value).WithHint("write " + k.Value + ": VALUE")
		}
		if slices.ContainsFunc(list, func(o Setting) bool { return o.Name == s.Name }) {
			return nil, say.Errorf("%s%s is given twice", r.linePrefix(k.Line), k.Value).WithHint("keep one of them")
		}
		list = append(list, s)
	}
	return list, nil
}

// runSettings are the settings of pitot run that a row may have: what the experiment itself
// decides is none of them.
func runSettings() (names []string) {
	own := []string{"out", "seed", "launch", "launches", "slo", "format", "export", "open", "quiet", "dry-run", "strict", "repeat", "until", "budget", "config"}
	for _, s := range config.Settings() {
		if s.AppliesTo(config.VerbRun) && !slices.Contains(own, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

func rowKeys() []key {
	return []key{
		{"question", "the question that the row answers, in words", stringSchema(""), func(r *reader, n *yaml.Node) (err error) {
			r.row.Question, err = scalar(n)
			return err
		}},
		{"hypothesis", "what is expected, as p50 ttft of B > 3 x p50 ttft of A; a list of several", map[string]any{"anyOf": []any{stringSchema(""), map[string]any{"type": "array", "items": stringSchema("")}}}, func(r *reader, n *yaml.Node) error {
			nodes := []*yaml.Node{n}
			if n.Kind == yaml.SequenceNode {
				nodes = n.Content
			}
			for _, c := range nodes {
				v, err := scalar(c)
				if err != nil {
					return err
				}
				h, err := ParseHypothesis(v)
				if err != nil {
					return say.Errorf("%shypothesis %q: %v", r.linePrefix(c.Line), v, err).WithHint(say.HintOf(err))
				}
				h.line = c.Line
				r.row.Hypotheses = append(r.row.Hypotheses, h)
			}
			return nil
		}},
	}
}

// word is the pattern for names of rows and knobs. A name becomes the name of a directory.
var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$`)

func (r *reader) readRows(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode { // presets alone: [A, B, F]
		for _, c := range n.Content {
			if err := r.addRow(c, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: c.Line}); err != nil {
				return err
			}
		}
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return say.Errorf("want rows by their names").WithHint("for example A: and below it nothing, or its settings; or a list, [A, B, F]")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if err := r.addRow(n.Content[i], n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) addRow(name, of *yaml.Node) (err error) {
	if !word.MatchString(name.Value) {
		return say.Errorf("%s%.40q is no name of a row", r.linePrefix(name.Line), name.Value).WithHint("letters, digits, - and _")
	}
	if r.plan.Row(name.Value) != nil {
		return say.Errorf("%srow %s is given twice", r.linePrefix(name.Line), name.Value).WithHint("keep one of them")
	}
	r.row = &Row{Name: name.Value, line: name.Line}
	if r.row.Settings, err = r.readSettings(of, rowKeys()); err != nil {
		return err
	}
	r.plan.Rows = append(r.plan.Rows, r.row)
	return nil
}

func (r *reader) readKnobs(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return say.Errorf("want settings of the engine by their names").WithHint("for example max_num_seqs: [64, 256]")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, values := n.Content[i], n.Content[i+1]
		k := Knob{Name: strings.ReplaceAll(name.Value, "-", "_"), line: name.Line}
		if strings.HasPrefix(name.Value, "load.") {
			if k.Name = name.Value; k.Name != limitInFront {
				return say.Errorf("%s%.40q is no knob of the load", r.linePrefix(name.Line), name.Value).WithHint(limitInFront + ": [32, 64] is a limit in front of the server; another workload is a row of its own, another deployment an experiment of its own")
			}
		} else if !word.MatchString(k.Name) {
			return say.Errorf("%s%.40q is no setting of an engine", r.linePrefix(name.Line), name.Value).WithHint("as the engine calls it: max_num_seqs")
		}
		if slices.ContainsFunc(r.plan.Knobs, func(o Knob) bool { return o.Name == k.Name }) {
			return say.Errorf("%s%s is given twice", r.linePrefix(name.Line), k.Name).WithHint("one list has all its values")
		}
		if values.Kind == yaml.MappingNode {
			var err error
			if values, err = r.knobParts(&k, values); err != nil {
				return err
			}
		}
		nodes := []*yaml.Node{values}
		if values.Kind == yaml.SequenceNode {
			nodes = values.Content
		}
		for _, c := range nodes {
			v, err := scalar(c)
			if err != nil {
				return err
			}
			if strings.ContainsAny(v, "/&?\\ ") {
				return say.Errorf("%s%.40q is no value of %s", r.linePrefix(c.Line), v, k.Name).WithHint("a plain value, as 64 or false")
			}
			if n, err := strconv.Atoi(v); k.Name == limitInFront && (err != nil || n < 1 || n > 1e6) {
				return say.Errorf("%s%.40q is no number of requests", r.linePrefix(c.Line), v).WithHint("how many are sent at once at most, as 32")
			}
			if slices.Contains(k.Values, v) {
				return say.Errorf("%s%s has %s twice", r.linePrefix(c.Line), k.Name, v).WithHint("each value is tried once")
			}
			k.Values = append(k.Values, v)
		}
		if len(k.Values) == 0 {
			return say.Errorf("%s%s has no values", r.linePrefix(name.Line), k.Name).WithHint("for example " + k.Name + ": [64, 256]")
		}
		r.plan.Knobs = append(r.plan.Knobs, k)
	}
	return nil
}

// knobParts reads a knob that is more than its values: the rows that it can move.
func (r *reader) knobParts(k *Knob, n *yaml.Node) (values *yaml.Node, err error) {
	known := []string{"values", "rows"}
	values = &yaml.Node{Kind: yaml.SequenceNode, Line: n.Line}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, v := n.Content[i], n.Content[i+1]
		switch {
		case name.Value == "values":
			values = v
		case name.Value != "rows":
			return nil, say.Errorf("%sunknown key %.60q in knob %s", r.linePrefix(name.Line), name.Value, k.Name).WithHint(say.KnownHint(name.Value, known))
		default:
			nodes := []*yaml.Node{v}
			if v.Kind == yaml.SequenceNode {
				nodes = v.Content
			}
			k.Rows = []string{}
			for _, c := range nodes {
				row, err := scalar(c)
				if err != nil {
					return nil, err
				}
				k.Rows = append(k.Rows, row)
			}
		}
	}
	return values, nil
}

// checkPlan checks a plan as a whole.
func (r *reader) checkPlan() error {
	p := r.plan
	c := &p.Contract
	none := func(what, example string) error {
		return say.Errorf("%s: %s", r.path, what).WithHint(example)
	}
	switch {
	case c.Limits.IsNone():
		return none("the contract has no limits, and so rejects nothing", `say what must hold, under contract: limits: "p95 ttft<500ms, p95 tpot<50ms, errors<1%"`)
	case c.Capacity == 0:
		return none("the contract does not say how much must be carried within its limits, and so rejects nothing", "say it under contract: capacity: 12/s")
	case p.Target == "":
		return none("no target is given", "for example target: sim:llama-3.1-8b@h100")
	case c.Kind == "":
		c.Kind = Kinds()[0]
	}
	if err := r.checkServer(); err != nil {
		return err
	}
	if c.Row == "" {
		c.Row = contractRow
	}
	r.fillPresets()
	if p.ContractRow() == nil {
		return none("the contract is judged by row "+c.Row+", which is not among the rows", "add it to rows, or name another under contract: row: NAME")
	}
	for _, row := range p.Rows {
		if err := r.planRow(row); err != nil {
			return err
		}
	}
	for _, row := range p.Rows {
		for i := range row.Hypotheses {
			if err := p.checkHypothesis(&row.Hypotheses[i]); err != nil {
				return say.Errorf("%shypothesis %q: %v", r.linePrefix(row.Hypotheses[i].line), row.Hypotheses[i].Text, err).WithHint(say.HintOf(err))
			}
		}
	}
	for _, k := range p.Knobs {
		for _, row := range k.Rows {
			if p.Row(row) == nil {
				var names []string
				for _, known := range p.Rows {
					names = append(names, known.Name)
				}
				return say.Errorf("%sthere is no row %s that %s could move", r.linePrefix(k.line), row, k.Name).WithHint(say.KnownHint(row, names))
			}
		}
	}
	return r.checkKnobs()
}

// checkKnobs asks the target whether it knows each configuration.
func (r *reader) checkKnobs() error {
	p := r.plan
	if len(p.Knobs) == 0 {
		return say.Errorf("%s: no knobs are given: there is nothing to decide between", r.path).WithHint("for example knobs: {max_num_seqs: [64, 256]}; pitot find says what one configuration carries")
	}
	if p.Server != nil {
		if err := r.checkReach(); err != nil {
			return err
		}
		return r.checkNames()
	}
	_, query, _ := strings.Cut(p.Target, "?")
	for _, c := range p.Configurations()[1:] {
		line := 0
		for _, k := range p.Knobs {
			if k.Name == c.Knob {
				line = k.line
			}
		}
		if slices.Contains(strings.Split(query, "&"), c.Name) {
			return say.Errorf("%s%s is what the target has already", r.linePrefix(line), c.Name).WithHint("leave it out: the baseline is measured anyway")
		}
		one := p.ContractRow().Plan
		one.Spec = p.Spec(c)
		if err := target.Check(target.WantedBy(&one)); err != nil {
			return say.Errorf("%s%s: %v", r.linePrefix(line), c.Name, err).WithHint(say.HintOf(err))
		}
	}
	return nil
}

// planRow makes the plan of a row's runs.
func (r *reader) planRow(row *Row) error {
	p := r.plan
	judged := row.Name == p.Contract.Row
	all := mergeSettings(presetSettings(row.Name, p.Contract.Kind), p.Common, row.Settings)
	args := []string{p.Target}
	has := map[string]bool{}
	for _, s := range all {
		has[s.Name] = true
		for _, v := range s.Values {
			args = append(args, oneArgument(s.Name, v))
		}
	}
	mistake := func(err error) error {
		line := row.line
		for _, s := range all { // the setting that it is about
			if s.line > 0 && strings.Contains(err.Error(), flagOf(s.Name)) {
				line = s.line
			}
		}
		return say.Errorf("%srow %s: %v", r.linePrefix(line), row.Name, err).WithHint(say.HintOf(err))
	}
	if judged {
		if has["rate"] || has["concurrency"] {
			return say.Errorf("%srow %s: the load of the contract's row is its capacity", r.linePrefix(row.line), row.Name).WithHint("leave rate and concurrency out, or judge the contract by another row")
		}
		args = append(args, "--rate="+say.Exact(p.Contract.Capacity), "--slo="+p.Contract.Limits.String())
	}
	one, rest, err := config.Decode(config.VerbRun, args, nil)
	if err == nil && len(rest) > 1 {
		err = say.Errorf("more than one target: %q", rest)
	}
	if err == nil {
		err = one.Check(config.VerbRun)
	}
	if err != nil {
		return mistake(err)
	}
	if err := target.Check(target.WantedBy(&one)); err != nil {
		return mistake(err)
	}
	row.Plan = one
	return nil
}

// mergeSettings are settings of which later ones override earlier ones of the same name. A load
// or a length of the window overrides the other way to say it, too.
func mergeSettings(lists ...[]Setting) (out []Setting) {
	rivals := map[string]string{"rate": "concurrency", "concurrency": "rate", "duration": "requests", "requests": "duration"}
	for _, list := range lists {
		for _, s := range list {
			out = slices.DeleteFunc(out, func(o Setting) bool { return o.Name == s.Name || o.Name == rivals[s.Name] })
			out = append(out, s)
		}
	}
	return out
}
