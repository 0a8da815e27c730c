package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"pitot/internal/config"
	"pitot/internal/say"
	"pitot/internal/sim/deploy"
	"pitot/internal/sim/serve"
	"pitot/internal/target"
)

func mockVerb(ctx context.Context, e *Env) (int, error) {
	var serving config.Serving
	var embedded config.Embedded
	own, settings := engineFlags(e.Args)
	args, err := config.DecodeParts(config.VerbMock, own, e.Environ, &serving, &embedded)
	if err != nil {
		return Usage, err
	}
	name := ""
	if len(args) > 0 {
		name = withSettings(strings.TrimPrefix(args[0], "mock:"), settings)
	}
	if len(settings) > 0 && !strings.Contains(name, "@") {
		key, _, _ := strings.Cut(settings[0], "=")
		return Usage, say.Errorf("--%s is a setting of a model on an accelerator, and none is named", strings.ReplaceAll(key, "_", "-")).WithHint("for example pitot mock llama-3.1-8b@h100 " + strings.Join(e.Args, " "))
	}
	if len(args) > 1 {
		return Usage, say.Errorf("more than one name: %q and %q", args[0], args[1])
	}
	srv, about, notes, err := target.NewMock(&serving, &embedded, name)
	if err != nil {
		return Usage, err
	}
	if _, gpu, likely := strings.Cut(serving.Model, "@"); name == "" && likely && gpu != "" {
		notes = append(notes, fmt.Sprintf("--model is the name alone: what answers has fixed latencies; for its engine write pitot mock '%s'", serving.Model))
	}
	for _, n := range notes {
		fmt.Fprintln(e.Stderr, "pitot: "+n)
	}
	l, err := net.Listen("tcp", listenAddress(&serving))
	if err != nil {
		return Usage, cannotListen(&serving, err)
	}
	ctx, stop := interruptibleContext(ctx, nil) // before others learn that it is there
	defer stop()
	if serving.UntilEOF {
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		go func() {
			_, _ = io.Copy(io.Discard, e.Stdin) // however it ends, who started this has gone
			end()
		}()
	}
	started := serve.Started{URL: "http://" + l.Addr().String(), About: about}
	tell := func(text string, value any) {
		if serving.UntilEOF { // a program reads it
			_ = json.NewEncoder(e.Stdout).Encode(value)
			return
		}
		fmt.Fprintln(e.Stdout, text)
	}
	tell(fmt.Sprintf("serving on %s (%s)", started.URL, about), started)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	select {
	case err = <-served:
	case <-ctx.Done():
		end, cancel := context.WithTimeout(context.Background(), serving.Drain)
		defer cancel()
		// Answers that outlast the wait are cut, which is what was asked for; a
		// log of the truth that could not be written is an error.
		if err = srv.Shutdown(end); errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
	}
	tell(srv.Stats().String(), srv.Stats())
	return Done, err
}

// engineFlags takes out of a command line what are flags of vLLM, which the twin has as
// settings: so the mock starts with the command line of a server. Those that the mock has
// itself are its own.
func engineFlags(args []string) (own, settings []string) {
	mine := map[string]bool{}
	for _, s := range config.Settings() {
		mine[s.Name] = s.AppliesTo(config.VerbMock)
	}
	for i := 0; i < len(args); i++ {
		flag, ok := strings.CutPrefix(args[i], "--")
		name, value, given := strings.Cut(flag, "=")
		if short := strings.TrimPrefix(name, "-"); !ok && slices.Contains([]string{"-tp", "-pp", "-dp"}, name) {
			name, ok = short, true // vLLM's
		}
		key := strings.ReplaceAll(name, "-", "_")
		off, negated := strings.CutPrefix(key, "no_")
		switch {
		case args[i] == "--":
			return append(own, args[i:]...), settings
		case !ok || mine[name] || !deploy.IsSetting(key) && !(negated && deploy.IsSetting(off)):
			own = append(own, args[i])
		case given:
			settings = append(settings, key+"="+value)
		case negated && deploy.IsSetting(off):
			settings = append(settings, off+"=false")
		case i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") && (!deploy.IsSwitch(key) || isBool(args[i+1])):
			i++
			settings = append(settings, key+"="+args[i])
		default:
			settings = append(settings, key+"=true")
		}
	}
	return own, settings
}

func isBool(word string) bool {
	return slices.Contains([]string{"true", "false"}, strings.ToLower(word))
}

// withSettings is MODEL@GPU?settings with further ones, which count.
func withSettings(name string, settings []string) string {
	if len(settings) == 0 {
		return name
	}
	name, query, _ := strings.Cut(name, "?")
	values := map[string]string{}
	var order []string
	for _, s := range append(strings.Split(query, "&"), settings...) {
		key, value, _ := strings.Cut(s, "=")
		if key == "" {
			continue
		}
		if _, twice := values[key]; !twice {
			order = append(order, key)
		}
		values[key] = value
	}
	for i, key := range order {
		order[i] = key + "=" + values[key]
	}
	return name + "?" + strings.Join(order, "&")
}

func listenAddress(s *config.Serving) string {
	return net.JoinHostPort(s.Host, strconv.Itoa(s.Port))
}

// cannotListen is the error of an address that cannot be listened on, with a hint for
// the port or the host.
func cannotListen(s *config.Serving, err error) error {
	hint := "choose another with --port, or --port 0 for any"
	var lookup *net.DNSError
	var address *net.AddrError
	switch {
	case errors.Is(err, syscall.EACCES):
		hint = "ports below 1024 need privileges; choose another with --port"
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.As(err, &lookup), errors.As(err, &address):
		hint = "--host is an address of this machine: 127.0.0.1 for it alone, 0.0.0.0 for all of its networks"
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		err = call.Err
	}
	return say.Errorf("listen on %s: %v", listenAddress(s), err).WithHint(hint)
}

func mockHelp() manual {
	return manual{engine: true,
		about: "Serve a simulated LLM over HTTP. It has the API of vLLM.",
		usage: "pitot mock [MODEL@GPU[?settings]] [flags]",
		examples: `pitot mock                                        # fixed: 50 ms TTFT, 10 ms ITL
			pitot mock llama-3.1-8b@h100 --max-num-seqs 64    # vLLM on that GPU, with vLLM's flags
			pitot mock --ttft 200ms --jitter 0.3 --faults "429:1%,stall:2%:3s"`,
		notes: `Its routes are chat completions, completions, responses, messages, models, tokenize, metrics
and health. The words mean nothing, but response_format and structured_outputs are respected.`,
	}
}
