package target

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/results/metric"
	"pitot/internal/sim/engines"
	"pitot/internal/telemetry/local"
	"pitot/internal/telemetry/scrape"
)

// Told holds the facts that a server reports about itself without generating anything.
type Told struct {
	Engine, Version, Model string // "" where it does not tell
	Root                   string // path or repository that the model was loaded from, "" where it does not tell
	Context                int    // tokens that a request may have, 0 where it does not tell
	// Began is a mark of this start of the server that no other start of it has: when its
	// process began, "" where nothing tells.
	Began string
	Page  string // that tells the engine's settings, JSON or labels of a metric; "" where there is none
}

// IdentifyServer asks a server what it is. An error says that it does not answer, or not as a
// server does that is ready.
func IdentifyServer(ctx context.Context, p Wanted) (*Told, error) {
	unprobed := *p.Target
	unprobed.NoProbe, unprobed.Wait = true, 0
	p.Target = &unprobed
	t, err := Open(ctx, p, func(string) {})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return t.identifyServer(ctx)
}

func (t *Target) identifyServer(ctx context.Context) (*Told, error) {
	a, err := t.fetch(ctx, "GET", t.greetingPath(), nil)
	if err != nil {
		return nil, err
	}
	if a.Status >= 500 || a.Status == 404 && t.modelsPath() != "" {
		return nil, fmt.Errorf("%s answers %d", t.Dialer.Endpoint.URL(t.greetingPath()), a.Status)
	}
	told := &Told{}
	if a.Status == 200 && t.modelsPath() != "" {
		for _, m := range t.API.List(a.Body) {
			if t.Options.Model == "" || t.Options.Model == m.Name {
				t.Options.Model, told.Root, told.Context = m.Name, m.Root, m.Context
				if err := t.noteEngine(ctx, m.Engine); err != nil {
					return nil, err
				}
				break
			}
		}
	}
	metrics := t.metricsPage(ctx)
	told.Engine, told.Version, told.Model, told.Began = t.Server["engine"], t.Server["version"], t.Options.Model, processStart(metrics)
	if told.Began == "" {
		told.Began = t.localProcess()
	}
	told.Page = t.settingsPage(ctx, metrics)
	return told, nil
}

// EngineSettings returns the engine settings that the server reports, in the server's own form:
// JSON or metric labels. It returns "" if the server reports none, as a target without a socket
// does.
func (t *Target) EngineSettings(ctx context.Context) string {
	if t.Engine != nil {
		return ""
	}
	return t.settingsPage(ctx, t.metricsPage(ctx))
}

// processStart is when the first of the processes began that a page of metrics tells of, as
// it is written there, "" where it tells of none. The page may be cut off.
func processStart(page string) (began string) {
	first := math.Inf(1)
	for line := range strings.Lines(page) {
		rest, ok := strings.CutPrefix(line, metric.ProcessStart)
		if !ok || !strings.HasPrefix(rest, " ") && !strings.HasPrefix(rest, "{") {
			continue
		}
		words := strings.Fields(rest[strings.LastIndexByte(rest, '}')+1:]) // behind the labels; a timestamp may follow
		if len(words) == 0 {
			continue
		}
		if at, err := strconv.ParseFloat(words[0], 64); err == nil && at < first {
			first, began = at, words[0]
		}
	}
	return began
}

// metricsPage is the text of the server's own metrics, "" where it has none.
func (t *Target) metricsPage(ctx context.Context) string {
	for _, path := range scrape.MetricsPaths() {
		for _, base := range []string{t.Dialer.Endpoint.Base, ""} {
			if a, err := t.fetch(ctx, "GET", base+path, nil); err == nil && a.Status == 200 {
				return string(a.Body)
			}
			if t.Dialer.Endpoint.Base == "" {
				break
			}
		}
	}
	return ""
}

// localProcess is a mark of the process of this machine that listens, "" where none does
// that can be seen.
func (t *Target) localProcess() string {
	e := t.Dialer.Endpoint
	if e.Proxy != nil || !e.Unix && !local.IsThisMachine(e.Addr) {
		return ""
	}
	p, err := local.FindProcesses(os.DirFS(kernelFiles), e.Addr, e.Unix)
	if err != nil {
		return ""
	}
	return p.StartMark()
}

// settingsPage is where the engine tells its settings: a page of its own, vLLM's where it is
// in development mode, and else the labels of one of its metrics. "" where there is none of
// them.
func (t *Target) settingsPage(ctx context.Context, metrics string) string {
	for _, k := range slices.Backward(engines.All()) { // the usual one last
		if k.SettingsPath == "" {
			continue
		}
		a, err := t.fetch(ctx, "GET", t.Dialer.Endpoint.Base+k.SettingsPath, nil)
		if err == nil && a.Status == 200 && json.Valid(a.Body) {
			return string(a.Body)
		}
	}
	for line := range strings.Lines(metrics) {
		for _, k := range engines.All() {
			if labels, ok := strings.CutPrefix(line, k.SettingsSeries); ok && k.SettingsSeries != "" && strings.HasPrefix(labels, "{") {
				return labels
			}
		}
	}
	return ""
}
