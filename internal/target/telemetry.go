package target

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"pitot/internal/client"
	"pitot/internal/client/api"
	"pitot/internal/config"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/say"
	"pitot/internal/telemetry"
	"pitot/internal/telemetry/local"
	"pitot/internal/telemetry/scrape"
)

// Pages of metrics are asked for while a load goes on: the server's own, which is found
// beside its API, and those that the user names. Among what the server tells is the
// start time of its process: one that was restarted during a measurement is two servers,
// and the second began cold.

// sourcesNamed opens the pages that the user names.
func (t *Target) sourcesNamed(p *config.Target) error {
	var headers []api.Header
	secret := ""
	for _, h := range p.ScrapeHeaders {
		name, value, _ := strings.Cut(h, "=")
		headers = append(headers, api.Header{Name: name, Value: value})
		if !config.PublicHeader(name) {
			secret += value + "\n"
		}
	}
	for _, page := range p.Scrape {
		name, address, _ := strings.Cut(page, "=")
		s, err := sourceNamed(p, name, address, headers, secret)
		if err != nil {
			return err
		}
		t.Sources = append(t.Sources, s)
	}
	return nil
}

// sourceNamed opens one. A user and a password in its URL are sent as HTTP has them
// (RFC 7617), and kept in memory alone.
func sourceNamed(p *config.Target, name, address string, headers []api.Header, secret string) (*scrape.Source, error) {
	malformed := func(err error) error {
		return say.Errorf("--scrape %s: %v", name, err).WithHint("for example " + name + "=http://host:9400/metrics")
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, malformed(errors.New("malformed URL")) // which may hold a password
	}
	paths := scrape.MetricsPaths()
	base := address
	if u.Scheme != "unix" {
		if u.Path != "" && u.Path != "/" || u.RawQuery != "" {
			paths = []string{u.RequestURI()}
		}
		base = u.Scheme + "://" + u.Host
	}
	e, _, err := client.ParseTarget(base)
	if err != nil {
		return nil, malformed(err)
	}
	if e.Unix && e.Base != "" {
		paths = []string{e.Base}
	}
	trusted := *p
	trusted.Cert, trusted.Key = "", "" // what a target asks for is for the target
	if err := new(Target).configureTLS(&e, &trusted); err != nil {
		return nil, err
	}
	if u.User != nil {
		password, _ := u.User.Password()
		value := base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password))
		headers = append(slices.Clone(headers), api.Header{Name: "Authorization", Value: "Basic " + value})
		secret += password + "\n" + value + "\n"
	}
	d := &client.Dialer{Endpoint: e, Timeout: minTimeout(dialTimeout, p.Timeout)}
	return scrape.NewSource(name, "the metrics of "+name, d, headers, secret, paths...), nil
}

// findMetrics finds out whether the server has metrics, and when its process began.
func (t *Target) findMetrics(ctx context.Context, p *config.Target) {
	if p.NoScrape {
		return
	}
	e := t.Dialer.Endpoint
	t.askMachine(p)
	var paths []string
	for _, path := range scrape.MetricsPaths() {
		paths = append(paths, e.Base+path)
	}
	if e.Base != "" {
		paths = append(paths, scrape.MetricsPaths()...)
	}
	d := &client.Dialer{Endpoint: e, Timeout: t.Dialer.Timeout, Dial: t.Dialer.Dial}
	own := scrape.NewSource(record.SourceServer, "the server's own metrics", d, t.Headers, t.Secret, paths...)
	told, err := own.Ask(ctx)
	if err != nil {
		own.Close()
		if !errors.Is(err, scrape.ErrNone) && ctx.Err() == nil {
			t.Notes = append(t.Notes, "the server's own metrics are missing: "+err.Error())
		}
		return
	}
	if at, ok := told.Values[telemetry.ProcessStart]; ok {
		t.Server[metric.ProcessStart] = say.Exact(at)
	}
	if block := int(told.Values[telemetry.KVBlock]); block > 0 {
		t.KV.BlockSize = block
		t.KV.Blocks = int(told.Values[telemetry.KVTokens]) / block
	}
	// A replica that the user names is not asked twice.
	if !slices.ContainsFunc(t.Sources, func(s *scrape.Source) bool { return s.URL() == own.URL() }) {
		t.Sources = slices.Insert(t.Sources, 0, own)
	}
}

// Sources of the machine itself, where the user names no exporter.
const (
	kernelFiles = "/proc"
	driverFiles = "/sys"
)

// askMachine has the machine tell of the target's processes and of its GPUs, where the
// target is on this one and no exporter is named that would.
func (t *Target) askMachine(p *config.Target) {
	e := t.Dialer.Endpoint
	if t.Kind != "http" || len(p.Scrape) > 0 || e.Proxy != nil || !e.Unix && !local.IsThisMachine(e.Addr) {
		return
	}
	proc := os.DirFS(kernelFiles)
	processes, err := local.FindProcesses(proc, e.Addr, e.Unix)
	switch {
	case errors.Is(err, local.ErrElsewhere), errors.Is(err, local.ErrOwn):
		return
	case err == nil:
		t.Sources = append(t.Sources, scrape.NewTeller(local.SourceProc, "the server's processes", processes))
	case runtime.GOOS == "linux":
		t.Notes = append(t.Notes, "the processor time of the server's processes is missing: "+err.Error())
	}
	spent := func(pid int) (time.Duration, bool) { return local.ProcessorTime(proc, pid) }
	if n := local.StartNVIDIA(cmp.Or(p.ScrapeInterval, time.Second), processes.IDs(), spent); n != nil {
		t.Sources = append(t.Sources, scrape.NewTeller(local.SourceNVIDIA, "the GPUs' figures of nvidia-smi", n))
	}
	if a := local.FindAMD(os.DirFS(driverFiles)); a != nil {
		t.Sources = append(t.Sources, scrape.NewTeller(local.SourceAMD, "the GPUs' figures of amdgpu", a))
	}
}
