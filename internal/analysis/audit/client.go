package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitot/internal/say"
	"pitot/internal/sim/serve"
	"pitot/internal/stats"
)

// Client holds the truth while another client ran, and what it reported.
type Client struct {
	True        Numbers       `json:"true"`
	Requests    int           `json:"requests"` // answered to their end
	Failed      int           `json:"failed"`   // answers the server did not finish, or refused
	Tokens      int           `json:"tokens"`
	CPUPerToken time.Duration `json:"cpu_ns_per_token"` // user and system time of the command, start-up included
	Wall        time.Duration `json:"wall_ns"`
	Span        time.Duration `json:"span_ns"` // from the first request to the end of the last
	Rate        float64       `json:"rate"`    // arrivals per second
	GapCV       float64       `json:"gap_cv"`  // coefficient of variation of the gaps between arrivals: 1 is Poisson
	MemoryBytes int64         `json:"memory_bytes"`
	Late        serve.Late    `json:"late"`
	Reported    *ClientReport `json:"said"`           // nil if it left no result that can be read
	Exit        string        `json:"exit,omitempty"` // how the command failed
}

// CheckClient runs a shell command against the reference server. In the command,
// {url}, {host}, {port}, {model} and {dir} are replaced; a result of vLLM,
// SGLang, AIPerf or GuideLLM that it leaves in {dir} is read.
func (c *Checker) CheckClient(ctx context.Context, command string) (*Client, error) {
	if !strings.Contains(command, "{url}") && !strings.Contains(command, "{port}") {
		return nil, say.Errorf("--client: the command does not say where the server is").WithHint("write {url}, or {host} and {port}, for example --client 'curl -N {url}/v1/completions -d …'")
	}
	srv, dir, truth, err := c.startReference(ctx)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	host, port, _ := strings.Cut(strings.TrimPrefix(srv.URL, "http://"), ":")
	out := filepath.Join(dir, "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	line := strings.NewReplacer("{url}", srv.URL, "{host}", host, "{port}", port, "{model}", "reference", "{dir}", out).Replace(command)
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Stdout, cmd.Stderr = c.Err, c.Err
	begin := time.Now()
	failed := cmd.Run()
	r := &Client{Wall: time.Since(begin)}
	if failed != nil {
		r.Exit = failed.Error()
	}
	stats, err := srv.Stop()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	r.Late = stats.Late
	if cmd.ProcessState != nil {
		r.CPUPerToken = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		r.MemoryBytes = maxRSS(cmd.ProcessState)
	}
	if err := r.readTruth(truth); err != nil {
		if failed != nil {
			err = fmt.Errorf("%w: %v", err, failed)
		}
		return nil, err
	}
	r.Reported = c.reportIn(out)
	return r, nil
}

// ErrNothingAnswered says that there is nothing to compare.
var ErrNothingAnswered = errors.New("the client sent no request that was answered")

// reportIn reads what a client left in a directory or below it, nil if that is no
// result of a tool that is known.
func (c *Checker) reportIn(dir string) (reported *ClientReport) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.HasPrefix(filepath.Ext(path), ".json") {
			return nil
		}
		if report, err := c.ReadReport(path); err == nil {
			reported = &report
		}
		return nil
	})
	return reported
}

func (r *Client) readTruth(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	defer f.Close()
	var g truths
	end := int64(0)
	for t, err := range serve.ReadTruth(f) {
		if err != nil {
			return fmt.Errorf("check: read truth: %w", err)
		}
		if t.Status != 200 || t.Aborted {
			r.Failed++
			continue
		}
		g.addTruth(&t)
		r.Tokens += t.OutputTokens
		end = max(end, t.DoneNS)
	}
	if g.requests == 0 {
		return ErrNothingAnswered
	}
	r.True, r.Requests = g.numbers(), g.requests
	slices.Sort(g.arrivals)
	r.Span = time.Duration(end - g.arrivals[0])
	if n := len(g.arrivals); n > 2 {
		between := make([]float64, n-1)
		for i := range between {
			between[i] = float64(g.arrivals[i+1] - g.arrivals[i])
		}
		mean, sd := stats.Moments(between)
		r.Rate, r.GapCV = 1e9/mean, sd/mean
	}
	r.CPUPerToken /= time.Duration(max(r.Tokens, 1))
	return nil
}
