package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"pitot/internal/client/api"
	"pitot/internal/config"
	"pitot/internal/report/export"
	"pitot/internal/say"
	"pitot/internal/sim/deploy"
	"pitot/internal/sim/serve"
	"pitot/internal/slo"
)

// manual is the help of a verb, without its settings.
type manual struct {
	about    string // a sentence or two
	usage    string // a line each
	examples string // a line each
	notes    string // paragraphs; one with columns keeps its lines
	sections []section
	target   bool // its argument is a target
	engine   bool // it takes settings of a simulated engine
}

// section is a group of things that the help lists, with the texts of its topic.
type section struct {
	config.Group
	items  []item
	extras []func(w io.Writer)
	names  bool // only the names are listed
	hidden bool // on the first screen, without being counted
}

// item is one thing that the help shows in a line, and in full by --help=NAME.
type item struct {
	name    string // of --help=NAME
	head    string // as the user writes it: --rate R
	brief   string
	text    string
	rare    bool // only shown on a first screen that has space
	setting *config.Setting
}

// helpWidth is the width of the help, in columns.
const helpWidth = 90

// screenHeight is the number of lines of a verb's first screen. If its settings need more, the
// screen shows only the common ones.
const screenHeight = 50

// exitCodesTopic is the topic of pitot help that is no verb.
const exitCodesTopic = "exit-codes"

func writeOverview(w io.Writer) {
	fmt.Fprint(w, `Pitot load-tests LLM servers and shows how much traffic they carry within an SLO.

Usage: pitot VERB [arguments] [flags]

Examples
  pitot run http://localhost:8000 --rate 4      measure your server
  pitot run mock:llama-3.1-8b@h100 --rate 20    the same on a simulated server
  pitot find http://localhost:8000 --slo chat   find its capacity
`)
	group := ""
	for _, v := range verbs() {
		if v.group != group {
			group = v.group
			fmt.Fprintf(w, "\n%s\n", group)
		}
		fmt.Fprintf(w, "  %-12s %s\n", v.name, v.summary())
	}
	fmt.Fprint(w, `
pitot VERB --help shows the flags of a verb; pitot help ttft explains a word.
The exit code is 0 if all went well: pitot help exit-codes lists the others.
`)
}

// summary returns the verb's line in the overview: the first sentence of its help.
func (v *verb) summary() string {
	first, _, _ := strings.Cut(strings.TrimSuffix(v.help().about, "."), ". ")
	return strings.ToLower(first[:1]) + first[1:]
}

func writeExitCodes(w io.Writer) {
	fmt.Fprint(w, "Exit codes\n")
	for _, c := range exitCodes() {
		writeLines(w, 3, fmt.Sprint(c.code), c.meaning)
	}
	fmt.Fprint(w, "If several apply, the order is 130, 3, 4 for INVALID, 6, 5, 4 for undecided.\n")
}

// writeHelpOn writes what pitot help NAME shows.
func writeHelpOn(w io.Writer, name string) error {
	if name == exitCodesTopic {
		writeExitCodes(w)
		return nil
	}
	v, err := verbNamed(name)
	if err != nil {
		if writeGlossary(w, strings.ReplaceAll(name, " ", "-")) {
			return nil
		}
		if !slices.ContainsFunc(verbs(), func(v verb) bool { return say.NearestName(name, []string{v.name}) != "" }) {
			return say.Errorf("no verb and no word of the glossary is %q", name).WithHint("pitot --help lists the verbs; pitot run --help=" + strings.ReplaceAll(name, " ", "-") + " searches the settings")
		}
		return err
	}
	return v.writeHelp(w, "")
}

// writeHelp writes the help of a verb: the first screen, or what --help=TOPIC shows.
func (v *verb) writeHelp(w io.Writer, topic string) error {
	m := v.help()
	return v.writeTopic(w, topic, &m, v.helpSections(&m))
}

// writeTopic writes what --help=TOPIC shows; "" stands for the first screen.
func (v *verb) writeTopic(w io.Writer, topic string, m *manual, sections []section) error {
	switch topic {
	case "":
		v.writeScreen(w, m, sections)
		return nil
	case "all":
		v.writeIntroduction(w, m)
		for i := range sections {
			fmt.Fprintln(w)
			sections[i].writeAll(w, v)
		}
		return nil
	}
	word := strings.ReplaceAll(strings.ToLower(strings.TrimLeft(topic, "-?")), "_", "-")
	defined := writeGlossary(w, word)
	var parts []func()
	var similar []item
	var names []string
	isTopic := slices.ContainsFunc(sections, func(s section) bool { return s.isCalled(word, v) })
	for i := range sections {
		s := &sections[i]
		for k := range s.items {
			if it := &s.items[k]; it.name == word && !(s.names && s.Topic == word) {
				parts = append(parts, func() { it.writeFull(w, v, !isTopic) })
			}
			names = append(names, s.items[k].name)
		}
	}
	for i := range sections {
		if s := &sections[i]; s.isCalled(word, v) {
			parts = append(parts, func() { s.writeAll(w, v) })
		}
		names = append(names, sections[i].Topic)
	}
	if len(parts) > 0 {
		for i, write := range parts {
			if i > 0 || defined {
				fmt.Fprintln(w)
			}
			write()
		}
		return nil
	}
	for _, s := range sections {
		for _, it := range s.items {
			if it.mentions(word) {
				similar = append(similar, it)
			}
		}
	}
	if len(similar) > 0 {
		if defined {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "Settings that mention %q; --help=NAME shows one in full\n", topic)
		writeBriefs(w, headWidth(similar), similar)
		return nil
	}
	if defined {
		return nil
	}
	hint := "pitot " + v.name + " --help shows what there is"
	if near := say.NearestName(word, names); near != "" {
		hint = "did you mean --help=" + near + "?"
	}
	return say.Errorf("pitot %s: no flag, topic or text matches --help=%.40s", v.name, topic).WithHint(hint)
}

// helpSections returns all that the help of a verb lists.
func (v *verb) helpSections(m *manual) []section {
	verb, sections := config.Verb(v.name), slices.Clone(m.sections)
	settings := config.FlagsAndKeys(verb)
	for _, g := range config.Groups() {
		s := section{Group: g}
		for _, setting := range settings {
			if setting.Group == g.Title {
				s.items = append(s.items, settingItem(&setting))
			}
		}
		switch g.Topic {
		case "target":
			if m.target {
				s.extras = append(s.extras, writeTargets)
			}
		case "twin":
			if m.target {
				for _, setting := range config.TargetSettings() {
					it := settingItem(&setting)
					it.head = "?" + setting.TargetKey()
					if setting.Arg != "" {
						it.head += "=" + setting.Arg
					}
					s.items = append(s.items, it)
				}
				s.extras = append(s.extras, writeSimulated)
			}
		case "slo":
			if slices.ContainsFunc(s.items, func(i item) bool { return i.name == "slo" }) {
				s.extras = append(s.extras, writePresets)
			}
		case "output":
			if slices.ContainsFunc(s.items, func(i item) bool { return i.name == "export" }) {
				s.extras = append(s.extras, writeExportFormats)
			}
		}
		if len(s.items) > 0 {
			sections = append(sections, s)
		}
	}
	if m.target || verb == config.VerbMock {
		sections = append(sections, faultSection())
	}
	if m.engine {
		sections = append(sections, engineSection())
	}
	for i := range sections {
		if m.target && (sections[i].Topic == "faults" || sections[i].Topic == "engine") {
			sections[i].About = "" // topic twin names it
		}
	}
	return sections
}

// settingItem returns the help of a setting.
func settingItem(s *config.Setting) item {
	head := strings.TrimSpace("--" + s.Name + " " + s.Arg)
	if s.KeyOnly {
		head = "--set " + strings.TrimSuffix(s.Name+"="+s.Arg, "=")
	}
	text := s.HelpText()
	if s.Name == "api" && !s.AppliesTo(config.VerbCheck) {
		text += ". One of " + strings.Join(api.Names(), ", ")
	}
	return item{name: s.Name, head: head, brief: s.Summary(), text: text, rare: !s.Common, setting: s}
}

// engineSection lists the settings of simulated engines.
func engineSection() section {
	g := config.Group{Title: "Engine settings", Topic: "engine", About: "max_num_seqs and others"}
	s := section{Group: g, names: true, hidden: true}
	for _, name := range append(deploy.SettingNames(), "profile") {
		s.items = append(s.items, item{name: strings.ReplaceAll(name, "_", "-"), head: name, brief: "setting of the simulated engine",
			text: "a setting of the simulated engine, with vLLM's name if vLLM has it. " + engineUse(name)})
	}
	return s
}

// faultSection lists the faults of simulated servers.
func faultSection() section {
	g := config.Group{Title: "Faults", Topic: "faults", About: "what --faults can inject"}
	s := section{Group: g, hidden: true, extras: []func(w io.Writer){writeFaultList}}
	for line := range strings.Lines(serve.FaultUsage()) {
		form, about, _ := strings.Cut(strings.TrimSpace(line), "  ")
		name, _, _ := strings.Cut(form, ":")
		about = strings.TrimSpace(about)
		s.items = append(s.items, item{name: name, head: form, brief: about, text: about, rare: true})
	}
	return s
}

func engineUse(name string) string {
	return "It follows the deployment: llama-3.1-8b@h100?" + name + "=VALUE. In pitot mock it is " +
		"also a flag: --" + strings.ReplaceAll(name, "_", "-") + " VALUE"
}

// isCalled reports whether a word names the section, by its topic or its title.
func (s *section) isCalled(word string, v *verb) bool {
	title := strings.ReplaceAll(s.TitleFor(config.Verb(v.name)), " ", "-")
	return word == s.Topic || strings.EqualFold(word, title) || strings.EqualFold(word, s.Title)
}

// mentions reports whether a word is in the name or the text of an item.
func (i *item) mentions(word string) bool {
	plain := strings.NewReplacer("-", " ", "_", " ")
	text := strings.ToLower(i.head + " " + i.brief + " " + i.text)
	return word != "" && strings.Contains(plain.Replace(text), plain.Replace(word))
}

// withDefault returns a text about the item with its default.
func (i *item) withDefault(text string) string {
	if i.setting != nil && i.setting.DefaultDescription() != "" {
		text += " [" + i.setting.DefaultDescription() + "]"
	}
	return text
}

// writeIntroduction writes the head of a verb's help.
func (v *verb) writeIntroduction(w io.Writer, m *manual) {
	for _, line := range wrapText(m.about, helpWidth) {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintln(w)
	head := "Usage: "
	for line := range strings.Lines(m.usage) {
		fmt.Fprintf(w, "%s%s\n", head, strings.TrimSpace(line))
		head = "       "
	}
	if m.examples != "" {
		fmt.Fprint(w, "\nExamples\n")
		for line := range strings.Lines(m.examples) {
			fmt.Fprint(w, "  "+strings.TrimLeft(line, "\t"))
		}
		fmt.Fprintln(w)
	}
	for paragraph := range strings.SplitSeq(m.notes, "\n\n") {
		lines := wrapText(paragraph, helpWidth)
		if strings.Contains(paragraph, "  ") { // columns
			lines = strings.Split(paragraph, "\n")
		}
		if paragraph != "" {
			fmt.Fprintf(w, "\n%s\n", strings.Join(lines, "\n"))
		}
	}
}

// writeScreen writes the first screen of a verb's help.
func (v *verb) writeScreen(w io.Writer, m *manual, sections []section) {
	var screen strings.Builder
	v.writeSummary(&screen, m, sections, func(i *item) bool { return !i.isKey() })
	if strings.Count(screen.String(), "\n") > screenHeight {
		screen.Reset()
		v.writeSummary(&screen, m, sections, func(i *item) bool { return !i.rare && !i.isKey() })
	}
	fmt.Fprint(w, screen.String())
}

// isKey reports whether the item is no flag, but a key of --set or of a target.
func (i *item) isKey() bool {
	return i.setting != nil && (i.setting.KeyOnly || strings.HasPrefix(i.head, "?"))
}

// writeSummary writes a screen with a line for each item that is shown.
func (v *verb) writeSummary(w io.Writer, m *manual, sections []section, isShown func(i *item) bool) {
	v.writeIntroduction(w, m)
	verb, hidden, width := config.Verb(v.name), 0, 0
	var topics [][2]string
	shown := make([][]item, len(sections))
	for n, s := range sections {
		for _, i := range s.items {
			if !s.hidden && isShown(&i) {
				shown[n] = append(shown[n], i)
			} else if !s.hidden {
				hidden++
			}
		}
		if s.About != "" && (len(shown[n]) < len(s.items) || len(s.extras) > 0) {
			topics = append(topics, [2]string{"--help=" + s.Topic, s.About})
		}
		width = max(width, headWidth(shown[n]))
	}
	for n, s := range sections {
		if len(shown[n]) > 0 {
			fmt.Fprintf(w, "\n%s\n", s.TitleFor(verb))
			writeBriefs(w, width, shown[n])
		}
	}
	if len(sections) == 0 {
		return
	}
	if len(topics) == 0 {
		fmt.Fprint(w, "\nMore: --help=NAME shows one entry in full, --help=all shows all, --help=WORD searches.\n")
		return
	}
	title := "More help"
	if hidden > 0 {
		title = say.Count(hidden) + " more settings, by topic"
	}
	fmt.Fprintf(w, "\n%s\n", title)
	topics = append(topics, [][2]string{
		{"--help=NAME", "one entry in full"},
		{"--help=WORD", "search"},
		{"--help=all", "everything"},
	}...)
	half := (len(topics) + 1) / 2 // two columns
	for i, t := range topics[:half] {
		line := fmt.Sprintf("  %-16s %-27s", t[0], t[1])
		if half+i < len(topics) {
			line += fmt.Sprintf("%-16s %s", topics[half+i][0], topics[half+i][1])
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// writeAll writes all of a section.
func (s *section) writeAll(w io.Writer, v *verb) {
	fmt.Fprintln(w, s.TitleFor(config.Verb(v.name)))
	if s.names {
		var names []string
		for _, i := range s.items {
			names = append(names, i.head)
		}
		for _, line := range wrapText(strings.Join(names, ", "), helpWidth-2) {
			fmt.Fprintln(w, "  "+line)
		}
		text := "A setting of an engine has vLLM's name if vLLM has it. " + engineUse("max_num_seqs") + "."
		for _, line := range wrapText(text, helpWidth) {
			fmt.Fprintln(w, line)
		}
		return
	}
	for _, i := range s.items {
		writeLines(w, 24, i.head, i.withDefault(i.text))
	}
	for i, write := range s.extras {
		if i > 0 || len(s.items) > 0 {
			fmt.Fprintln(w)
		}
		write(w)
	}
}

// writeBriefs writes a line for each item, with heads of a width.
func writeBriefs(w io.Writer, width int, items []item) {
	for _, i := range items {
		writeLines(w, width, i.head, i.withDefault(i.brief))
	}
}

// headWidth returns the width of a column for the heads of items.
func headWidth(items []item) int {
	width := 18
	for _, i := range items {
		width = max(width, utf8.RuneCountInString(i.head))
	}
	return min(width+1, 24)
}

// writeLines writes a text next to its head, or below one that is wider than width.
func writeLines(w io.Writer, width int, head, text string) {
	if utf8.RuneCountInString(head) > width {
		fmt.Fprintln(w, "  "+head)
		head = ""
	}
	for _, line := range wrapText(text, helpWidth-3-width) {
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("  %-*s %s", width, head, line), " "))
		head = ""
	}
}

// writeFull writes all about an item, with or without a list of values.
func (i *item) writeFull(w io.Writer, v *verb, listed bool) {
	fmt.Fprintf(w, "%s\n\n", i.head)
	s, text := i.setting, i.text
	var values []config.Choice
	if s != nil {
		if short, described := s.HelpParts(); len(described) > 0 {
			text, values = short, described
		} else if listed {
			values = slices.DeleteFunc(s.Choices(), func(c config.Choice) bool { return c.About == "" })
		}
	}
	for _, line := range wrapText(say.Sentence(text), helpWidth-2) {
		fmt.Fprintln(w, "  "+line)
	}
	if s == nil {
		return
	}
	if len(values) > 0 {
		fmt.Fprintln(w)
		var rows []item
		for _, c := range values {
			rows = append(rows, item{head: c.Name, brief: c.About})
		}
		writeBriefs(w, headWidth(rows), rows)
	}
	fmt.Fprintln(w)
	fact := func(name, text string) {
		if text != "" {
			writeLines(w, 12, name, text)
		}
	}
	var names []string
	for _, c := range s.Choices() {
		if c.About == "" && len(values) == 0 {
			names = append(names, c.Name)
		}
	}
	fact("Values", strings.Join(names, ", "))
	fact("Default", s.DefaultDescription())
	own := !strings.HasPrefix(i.head, "?") // not a setting of the target
	switch {
	case !own && s.Arg == "":
		fact("Example", "'mock:fixed?"+s.TargetKey()+"'")
	case !own:
		fact("Example", "'mock:fixed?"+s.TargetKey()+"="+s.ExampleValue()+"'")
	case s.Arg != "":
		fact("Example", say.ShellLine(s.Args(s.ExampleValue())))
	}
	for _, r := range s.Relations() {
		fact(strings.ToUpper(r.How[:1])+r.How[1:], r.What)
	}
	if s.IsRepeatable() {
		fact("Repeat", "give it several times for several values")
	}
	if own && s.AppliesTo(config.Verb(v.name)) {
		fact("YAML key", s.Name)
	}
	if own && s.Name != "set" {
		fact("Variable", s.Variable())
	}
}

// Texts of topics, in addition to their settings.

func writeTargets(w io.Writer) {
	fmt.Fprint(w, `The target is the first argument, or the variable OPENAI_BASE_URL
  http://host:port        a server; also with /v1 or a full route
  https://…               with TLS
  unix:///path/to.sock    a socket
  mock:MODEL@GPU          a model of vLLM on that hardware, behind a real socket
  mock:fixed              fixed latencies: 'mock:fixed?ttft=50ms&itl=10ms'
  sim:…                   the same in virtual time: no socket, no waiting
pitot predict --list shows the names of models and GPUs.
`)
}

func writeSimulated(w io.Writer) {
	fmt.Fprint(w, `Settings of mock: and sim: targets follow ? and are joined by &:
  pitot run 'mock:llama-3.1-8b@h100?max_num_seqs=64&launch_cv=0.03' --rate 20
--help=engine has the settings of the engine, --help=faults the faults.
`)
}

// writePresets lists the presets of --slo by their source.
func writePresets(w io.Writer) {
	fmt.Fprint(w, "Presets for --slo\n")
	var sources []string
	presets := map[string][]slo.Preset{}
	for _, p := range slo.Presets() {
		if presets[p.Source] == nil {
			sources = append(sources, p.Source)
		}
		presets[p.Source] = append(presets[p.Source], p)
	}
	for _, source := range sources {
		for _, line := range wrapText(source, helpWidth-2) {
			fmt.Fprintln(w, "  "+line)
		}
		for _, p := range presets[source] {
			fmt.Fprintf(w, "    %-32s %s\n", p.Name, p.Spec)
		}
	}
}

func writeExportFormats(w io.Writer) {
	fmt.Fprint(w, "Formats for --export NAME=PATH\n")
	for _, f := range export.Formats() {
		writeLines(w, 16, f.Name, f.About)
	}
}

func writeFaultList(w io.Writer) {
	fmt.Fprint(w, `Commas separate several faults: --faults "429:1%,reset:0.5%", or ?faults=429:1%,reset:0.5%`, "\n")
}

// wrapText breaks a text between words.
func wrapText(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line+" "+word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
