package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"pitot/internal/config"
	"pitot/internal/experiment/server"
	"pitot/internal/say"
	"pitot/internal/session"
	"pitot/internal/sim/deploy"
)

// A target that is a server is a URL, alone or with the user's own commands that start it,
// say when it is ready, describe it and stop it. Only a run executes them.

// Server holds the commands that start a target that is a URL.
type Server struct {
	Engine   string // "" where it is not known
	Commands server.Commands
	Tries    int      // starts in a row that may fail
	Twin     string   // MODEL@GPU?settings of its twin, "" where none is named
	Notes    []string // what a user should know before the first start
	line     int
}

// planMark stands in the plans of runs: what is started otherwise is another system.
func (s *Server) planMark() string {
	if s == nil || s.Commands.Start == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(s.Commands.Start)))
	return "start=" + hex.EncodeToString(sum[:6])
}

// ByHand says that somebody else starts the server.
func (p *Plan) ByHand() bool { return p.Server != nil && p.Server.Commands.Start == "" }

// settingsOf are those that a configuration adds to the baseline.
func settingsOf(c Configuration) (list []server.Setting) {
	if c.setsEngine() {
		list = append(list, server.Setting{Name: c.Knob, Value: c.Value})
	}
	return list
}

// Flags are a configuration's for the command line of a server, "" of the baseline.
func (p *Plan) Flags(c Configuration) string { return server.Flags(p.Server.Engine, settingsOf(c)) }

// describeSettings says what a configuration is: the target with its settings, of a server its URL
// and flags.
func (p *Plan) describeSettings(c Configuration) string {
	if p.Server == nil {
		return p.Spec(c)
	}
	return strings.TrimSpace(p.Target + " " + p.Flags(c))
}

// TwinSpec is the baseline as the twin has it, MODEL@GPU?settings; "" where none is named.
func (p *Plan) TwinSpec() string {
	if p.Server != nil {
		return p.Server.Twin
	}
	return config.EngineOf(p.Target)
}

const (
	readyWithin = 10 * time.Minute
	usualTries  = 3
)

func targetKeys() []key {
	command := func(name, about string, to func(*server.Commands) *string) key {
		return textKey(name, about, stringSchema(""), func(p *Plan, v string) error {
			if strings.TrimSpace(v) == "" {
				return say.Errorf("an empty command")
			}
			*to(&p.Server.Commands) = v
			return nil
		})
	}
	return []key{
		textKey("url", "of the server's API", stringSchema("http://localhost:8000"), func(p *Plan, v string) error {
			p.Target = v
			return nil
		}),
		textKey("engine", knownEngines()+", whose settings and flags are known, or other; by itself as start says", map[string]any{"enum": server.Engines()}, func(p *Plan, v string) error {
			if !slices.Contains(server.Engines(), v) {
				return say.Errorf("unknown engine %.40q", v).WithHint(say.KnownHint(v, server.Engines()))
			}
			p.Server.Engine = v
			return nil
		}),
		command("start", "shell command that runs the server, with {flags} where a configuration's flags stand: last, so that they count", func(c *server.Commands) *string { return &c.Start }),
		command("ready", "shell command that exits 0 once the server is ready; without it, Pitot polls its URL", func(c *server.Commands) *string { return &c.Ready }),
		textKey("ready_within", "how long a start may take, as 10m", stringSchema("10m"), func(p *Plan, v string) (err error) {
			p.Server.Commands.Within, err = parseDuration(v)
			return err
		}),
		command("describe", "shell command that prints the server's version and flags, as JSON or text; without it, the server's own pages and its log are read", func(c *server.Commands) *string { return &c.Describe }),
		command("stop", "shell command that stops the server; without it, and after it, its processes are ended", func(c *server.Commands) *string { return &c.Stop }),
		textKey("tries", "starts in a row that may fail before a configuration is left out", map[string]any{"type": "integer", "minimum": 1}, func(p *Plan, v string) (err error) {
			if p.Server.Tries, err = strconv.Atoi(v); err != nil || p.Server.Tries < 1 || p.Server.Tries > 100 {
				return say.Errorf("%.40q is no number of tries from 1 to 100", v)
			}
			return nil
		}),
		textKey("twin", "of the server, for forecast: sim:MODEL@GPU?settings", stringSchema("sim:llama-3.1-8b@h100"), func(p *Plan, v string) error {
			spec, ok := strings.CutPrefix(v, "sim:")
			if !ok {
				return say.Errorf("%.60q is no twin", v).WithHint("for example sim:llama-3.1-8b@h100")
			}
			_, err := deploy.Parse(spec)
			p.Server.Twin = spec
			return err
		}),
	}
}

func targetSchema() map[string]any {
	mapping := objectSchema(targetKeys())
	mapping["required"] = []string{"url"}
	return map[string]any{"anyOf": []any{stringSchema("sim:llama-3.1-8b@h100"), mapping}}
}

// isURL says that a target is a server.
func isURL(target string) bool {
	return !strings.HasPrefix(target, "sim:") && !strings.HasPrefix(target, "mock:")
}

func (r *reader) readTarget(n *yaml.Node) error {
	p := r.plan
	served := &Server{Commands: server.Commands{Within: readyWithin}, Tries: usualTries, line: n.Line}
	if n.Kind != yaml.MappingNode {
		v, err := scalar(n)
		if p.Target = v; err == nil && isURL(v) {
			p.Server = served
		}
		return err
	}
	p.Server = served
	if err := r.readMapping(n, "target", targetKeys()); err != nil {
		return err
	}
	if p.Target == "" {
		return say.Errorf("no url is given").WithHint("say where the server answers: url: http://localhost:8000")
	}
	if !isURL(p.Target) {
		return say.Errorf("url: %.60s is no server", p.Target).WithHint("write target: " + p.Target + ", without commands: it is started anew for each launch anyway")
	}
	return nil
}

// knownEngines names the engines whose settings are known: "vllm or sglang".
func knownEngines() string {
	return strings.Join(slices.DeleteFunc(server.Engines(), func(name string) bool { return name == server.Other }), " or ")
}

// checkServer looks at the commands as a whole.
func (r *reader) checkServer() error {
	s := r.plan.Server
	if s == nil {
		return nil
	}
	c := &s.Commands
	if c.Start == "" && c.Stop != "" {
		return say.Errorf("%starget: stop is given, and start is not", r.linePrefix(s.line)).WithHint("give both; without start, launches are made by hand, and nothing is stopped")
	}
	if s.Engine == "" {
		s.Engine = server.EngineOf(c.Start)
	}
	if s.Engine == "" || s.Engine == server.Other {
		s.Engine = ""
		s.Notes = append(s.Notes, "the engine is not known: names of settings are not checked, and flags are written --name value; target: engine: "+knownEngines()+" says it")
	}
	return nil
}

// checkReach refuses knobs of the engine that a start command has no place for: every
// configuration would be the baseline again.
func (r *reader) checkReach() error {
	s := r.plan.Server
	if s.Commands.Start == "" || server.TakesFlags(s.Commands.Start) {
		return nil
	}
	for _, k := range r.plan.Knobs {
		if k.Name != limitInFront {
			return say.Errorf("%s%s cannot reach the server: start has neither {flags} nor a PITOT_SERVER_ variable", r.linePrefix(s.line), k.Name).
				WithHint("put {flags} at the end of the command; before a script that reads the environment itself: PITOT_SERVER_FLAGS=\"$PITOT_SERVER_FLAGS\" ./script")
		}
	}
	return nil
}

// CheckFiles says which file that a row asks from is missing or cannot be used. Nothing is
// sent. A plan whose measurements are only looked at does not need them.
func (p *Plan) CheckFiles() error {
	for _, row := range p.Rows {
		one := row.Plan
		one.Out = ""
		if err := session.Check(&one); err != nil {
			hint := say.HintOf(err)
			if hint == "did you mean "+p.Path+"?" {
				hint = "paths count from the directory in which pitot is run"
			}
			line := row.line
			for _, list := range [][]Setting{p.Common, row.Settings} {
				for _, s := range list {
					if s.Name == "workload" && s.line > 0 {
						line = s.line
					}
				}
			}
			return say.Errorf("%srow %s: %v", (&reader{path: p.Path}).linePrefix(line), row.Name, err).WithHint(hint)
		}
	}
	return nil
}

// checkNames says of knobs what the engine does not know.
func (r *reader) checkNames() error {
	s := r.plan.Server
	for _, k := range r.plan.Knobs {
		if k.Name == limitInFront {
			continue
		}
		note, err := server.CheckName(s.Engine, k.Name)
		if err != nil {
			return say.Errorf("%s%s: %v", r.linePrefix(k.line), k.Name, err).WithHint(say.HintOf(err))
		}
		if note != "" {
			s.Notes = append(s.Notes, note)
		}
	}
	return nil
}
