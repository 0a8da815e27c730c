package target

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/client/api"
	"pitot/internal/config"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/sim/serve"
)

// planned decodes a command line.
func planned(t testing.TB, args ...string) Wanted {
	t.Helper()
	p, rest, err := config.Decode(config.VerbRun, args, nil)
	if err != nil || len(rest) > 1 {
		t.Fatal(err, rest)
	}
	return WantedBy(&p)
}

const key = "sk-very-secret-1234"

// scripted is a server of one model with a mind of its own.
type scripted struct {
	models string                                                             // body of /v1/models, "" for 404
	refuse func(path string, ask map[string]any) (status int, message string) // 0 to answer
	count  func(words int) int                                                // prompt tokens, nil for no usage

	mu   sync.Mutex
	seen []map[string]any
}

// asked is how many requests it was sent: one may still be under way.
func (s *scripted) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/models" {
		if s.models == "" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, s.models)
		return
	}
	var ask map[string]any
	body, _ := io.ReadAll(r.Body)
	if r.Method != http.MethodPost || json.Unmarshal(body, &ask) != nil {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	s.seen = append(s.seen, ask)
	s.mu.Unlock()
	if s.refuse != nil {
		if status, message := s.refuse(r.URL.Path, ask); status != 0 {
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message}})
			return
		}
	}
	text, _ := ask["prompt"].(string)
	if list, ok := ask["messages"].([]any); ok {
		for _, m := range list {
			text += " " + fmt.Sprint(m.(map[string]any)["content"])
		}
	}
	usage := ""
	if s.count != nil && ask["stream_options"] != nil {
		usage = fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":1}`, s.count(len(strings.Fields(text))))
	}
	w.Header().Set("Content-Type", "text/event-stream")
	delta := `"delta":{"content":"x"}`
	if strings.HasSuffix(r.URL.Path, "/v1/completions") {
		delta = `"text":"x"`
	}
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,%s,\"finish_reason\":\"length\"}]%s}\n\ndata: [DONE]\n\n", delta, usage)
}

const oneModel = `{"data":[{"id":"small","owned_by":"someone"}]}`

// opened opens a target with a plan's flags.
func opened(t testing.TB, h http.Handler, args ...string) (*Target, error) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	target, err := Open(t.Context(), planned(t, append([]string{srv.URL, "--rate", "1"}, args...)...), func(string) {})
	if err == nil {
		t.Cleanup(target.Close)
	}
	return target, err
}

func TestAdapt(t *testing.T) {
	without := func(field, message string) func(string, map[string]any) (int, string) {
		return func(_ string, ask map[string]any) (int, string) {
			if _, there := ask[field]; there {
				return 400, message
			}
			return 0, ""
		}
	}
	picky := func(path string, ask map[string]any) (int, string) {
		for _, c := range [][2]string{
			{"stream_options", "Unrecognized field: stream_options"},
			{"temperature", "Unsupported value: 'temperature' does not support 0 with this model"},
			{"max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."},
		} {
			if _, there := ask[c[0]]; there {
				return 400, c[1]
			}
		}
		return 0, ""
	}
	for _, c := range []struct {
		name        string
		refuse      func(string, map[string]any) (int, string)
		check       func(t *Target) bool
		adaptations int
	}{
		{"nothing to adapt", nil, func(t *Target) bool {
			return !t.Options.NoUsage && t.Options.RunningUsage && !t.Options.NoTemperature && t.Options.MaxField == "max_tokens"
		}, 0},
		{"stream_options", without("stream_options", "extra field stream_options is not permitted"), func(t *Target) bool { return t.Options.NoUsage && !t.Options.RunningUsage }, 3}, // each of the two, and no lengths
		{"continuous_usage_stats", func(_ string, ask map[string]any) (int, string) {
			if o, ok := ask["stream_options"].(map[string]any); ok && o["continuous_usage_stats"] != nil {
				return 400, "stream_options.continuous_usage_stats: Extra inputs are not permitted"
			}
			return 0, ""
		}, func(t *Target) bool { return !t.Options.RunningUsage && !t.Options.NoUsage }, 1},
		{"temperature", without("temperature", "temperature must be 1"), func(t *Target) bool { return t.Options.NoTemperature }, 1},
		{"max_tokens", without("max_tokens", "use max_completion_tokens"), func(t *Target) bool { return t.Options.MaxField == "max_completion_tokens" }, 1},
		{"all of them", picky, func(t *Target) bool {
			return t.Options.NoUsage && t.Options.NoTemperature && t.Options.MaxField == "max_completion_tokens"
		}, 5},
		{"no chat template", func(path string, _ map[string]any) (int, string) {
			if strings.HasSuffix(path, "/chat/completions") {
				return 400, "default chat template is no longer allowed"
			}
			return 0, ""
		}, func(t *Target) bool {
			return t.API.Name() == "openai-completions" && strings.HasSuffix(t.URL, "/v1/completions")
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			target, err := opened(t, &scripted{models: `{"data":[{"id":"small","owned_by":"vllm"}]}`, refuse: c.refuse, count: func(n int) int { return n }})
			if err != nil {
				t.Fatal(err)
			}
			if !c.check(target) || len(target.Adaptations) != c.adaptations {
				t.Errorf("%+v, adaptations %+v", target.Options, target.Adaptations)
			}
		})
	}
	_, err := opened(t, &scripted{models: oneModel, refuse: func(string, map[string]any) (int, string) { return 400, "no such thing as stream_options, temperature" }})
	var target *Error
	if !errors.As(err, &target) {
		t.Errorf("a server that refuses everything: %v", err)
	}
}

// The result says which of several models is measured.
func TestModelChosen(t *testing.T) {
	models := `{"data":[{"id":"base","owned_by":"vllm"},{"id":"lora-a","owned_by":"vllm"},{"id":"lora-b","owned_by":"vllm"}]}`
	count := func(n int) int { return n }
	target, err := opened(t, &scripted{models: models, count: count})
	if err != nil {
		t.Fatal(err)
	}
	want := []result.Adaptation{{Kind: result.ModelChosen, Value: "base", Of: []string{"base", "lora-a", "lora-b"}}}
	if diff := cmp.Diff(want, target.Adaptations); diff != "" {
		t.Error(diff)
	}
	target, err = opened(t, &scripted{models: models, count: count}, "--model", "lora-a")
	if err != nil || len(target.Adaptations) != 0 {
		t.Errorf("%v %v: the user chose it", err, target.Adaptations)
	}
}

func TestCalibrate(t *testing.T) {
	for _, c := range []struct {
		name              string
		count             func(int) int
		perWord, overhead float64
		adaptations       int
	}{
		{"exact", func(n int) int { return n + 8 }, 1, 8, 0},
		{"one and a half a word", func(n int) int { return n + n/2 + 3 }, 1.5, 3, 0},
		{"no usage", nil, 0, 0, 1},
		{"a count that does not follow", func(int) int { return 77 }, 0, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			target, err := opened(t, &scripted{models: oneModel, count: c.count})
			if err != nil {
				t.Fatal(err)
			}
			if k := target.Calibration; k.PerWord != c.perWord || k.Overhead != c.overhead || len(target.Adaptations) != c.adaptations {
				t.Errorf("%+v, adaptations %+v", k, target.Adaptations)
			}
		})
	}
	t.Run("prompts are too long", func(t *testing.T) {
		target, err := opened(t, &scripted{models: oneModel, refuse: func(_ string, ask map[string]any) (int, string) {
			if len(fmt.Sprint(ask["messages"])) > 500 {
				return 400, "this model's maximum context length is 100 tokens"
			}
			return 0, ""
		}, count: func(n int) int { return n }})
		if err != nil || len(target.Adaptations) != 1 || !strings.Contains(target.Adaptations[0].Why.Quote, "context_length") {
			t.Errorf("%v, %+v", err, target)
		}
	})
}

// The embedded server has a chat template of eight tokens.
func TestCalibrateMock(t *testing.T) {
	target, err := Open(t.Context(), planned(t, "mock:fixed?ttft=1ms", "--rate", "1"), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if k := target.Calibration; k.PerWord != 1 || k.Overhead != 8 {
		t.Errorf("%+v", k)
	}
	if len(target.Adaptations) > 0 || !target.Options.IgnoreEOS {
		t.Errorf("adaptations %+v, %+v", target.Adaptations, target.Options)
	}
}

// What is wrong with a target is said in one line, with what to do, and never
// with the key.
func TestTargetErrors(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", key)
	quiet := log.New(io.Discard, "", 0)
	plain := func(t *testing.T, h http.Handler) string {
		srv := httptest.NewServer(h)
		t.Cleanup(srv.Close)
		return srv.URL
	}
	always := func(status int, message string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message + " " + r.Header.Get("Authorization")}})
		})
	}
	for _, c := range []struct {
		name      string
		url       func(t *testing.T) string
		args      []string
		msg, hint string
	}{
		{"wrong key", func(t *testing.T) string {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			srv := serve.New(serve.Config{APIKey: "another"})
			go srv.Serve(l)
			t.Cleanup(func() { _ = srv.Shutdown(context.Background()) })
			return "http://" + l.Addr().String()
		}, nil, "refuses the key from OPENAI_API_KEY", "--key-env"},
		{"a key that is repeated", func(t *testing.T) string { return plain(t, always(401, "invalid key")) }, nil, "[redacted]", "--key-file"},
		{"wrong model", func(t *testing.T) string { return plain(t, &scripted{models: oneModel}) }, []string{"--model", "smal"}, `no model "smal"`, "small"},
		{"no models", func(t *testing.T) string { return plain(t, &scripted{}) }, nil, "does not list its models", "--model"},
		{"not found", func(t *testing.T) string { return plain(t, http.NotFoundHandler()) }, []string{"--model", "x", "--api", "openai-chat"}, "not found", "curl"},
		{"context", func(t *testing.T) string {
			return plain(t, &scripted{models: oneModel, refuse: func(string, map[string]any) (int, string) {
				return 400, "maximum context length is 4 tokens"
			}})
		}, nil, "does not fit", "--input"},
		{"rate limit", func(t *testing.T) string {
			return plain(t, &scripted{models: oneModel, refuse: func(string, map[string]any) (int, string) { return 429, "slow down" }})
		}, nil, "rate_limited", "limits your rate"},
		{"rate limit of the list, with Retry-After", func(t *testing.T) string {
			return plain(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "20")
				w.WriteHeader(429)
			}))
		}, nil, "(rate_limited, HTTP 429): Retry-After: 20 s", "--respect-limits holds requests back until it takes them, and --retry 2"},
		{"server error", func(t *testing.T) string {
			return plain(t, &scripted{models: oneModel, refuse: func(string, map[string]any) (int, string) { return 500, "CUDA out of memory" }})
		}, nil, "CUDA out of memory", ""},
		{"refused", func(t *testing.T) string {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			return "http://" + l.Addr().String()
		}, nil, "refused", "--wait-ready"},
		{"certificate", func(t *testing.T) string {
			srv := httptest.NewUnstartedServer(&scripted{models: oneModel})
			srv.Config.ErrorLog = quiet
			srv.StartTLS()
			t.Cleanup(srv.Close)
			return srv.URL
		}, nil, "tls", "--ca-cert"},
		{"certificate, while it waits", func(t *testing.T) string {
			srv := httptest.NewUnstartedServer(&scripted{models: oneModel})
			srv.Config.ErrorLog = quiet
			srv.StartTLS()
			t.Cleanup(srv.Close)
			return srv.URL
		}, []string{"--wait-ready", "10m"}, "tls", "--insecure"},
		{"no TLS there", func(t *testing.T) string {
			return strings.Replace(plain(t, &scripted{models: oneModel}), "http:", "https:", 1)
		}, nil, "speaks plain HTTP, not TLS", "try http://127.0.0.1:"},
		{"no TLS there, and it closes", func(t *testing.T) string {
			return "https://" + choosy(t, nil, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.0 404 Not Found\r\n\r\n") })
		}, nil, "speaks plain HTTP, not TLS", "try http://127.0.0.1:"},
		{"TLS there, and it says so", func(t *testing.T) string {
			srv := httptest.NewUnstartedServer(&scripted{models: oneModel})
			srv.Config.ErrorLog = quiet
			srv.StartTLS()
			t.Cleanup(srv.Close)
			return strings.Replace(srv.URL, "https:", "http:", 1) + "/base"
		}, nil, "speaks TLS, not plain HTTP", "/base"},
		{"TLS there, and it closes", func(t *testing.T) string { return "http://" + choosy(t, handshake(t), nil) }, nil, "speaks TLS, not plain HTTP", "try https://127.0.0.1:"},
		{"TLS there, and it resets", func(t *testing.T) string {
			return "http://" + choosy(t, handshake(t), func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) })
		}, nil, "speaks TLS, not plain HTTP", "try https://127.0.0.1:"},
		{"TLS there, and it sends an alert", func(t *testing.T) string {
			return "http://" + choosy(t, handshake(t), func(c net.Conn) { _, _ = io.WriteString(c, "\x15\x03\x01\x00\x02\x02\x46") })
		}, nil, "speaks TLS, not plain HTTP", "try https://127.0.0.1:"},
		{"TLS there, while it waits", func(t *testing.T) string { return "http://" + choosy(t, handshake(t), nil) }, []string{"--wait-ready", "10m"}, "speaks TLS, not plain HTTP", "try https://127.0.0.1:"},
		{"neither there", func(t *testing.T) string { return "http://" + choosy(t, nil, nil) }, nil, "closed", "look at the server's log"},
		{"redirected list of models", func(t *testing.T) string {
			return plain(t, redirecting(302, "http://host:8000/v1/models?token="+key))
		}, nil, "/v1/models: it redirects to http://host:8000/v1/models: use that address", "the address that it leads to"},
		{"redirected login", func(t *testing.T) string { return plain(t, redirecting(303, "/login?next=/")) }, nil, "/login, a login page", "cannot log in"},
		{"redirected request", func(t *testing.T) string {
			return plain(t, redirecting(308, "https://host/v1/chat/completions"))
		}, []string{"--model", "x"}, "(redirect, HTTP 308): it redirects to https://host/v1/chat/completions: use that address", "the address that it leads to"},
		{"request redirected to a login", func(t *testing.T) string {
			return plain(t, redirecting(307, "https://sso.host/"))
		}, []string{"--model", "x"}, "(redirect, HTTP 307): it redirects to https://sso.host/, a login page", "cannot log in"},
		{"only HTTP/2", onlyHTTP2, nil, "the server speaks only HTTP/2; pitot measures over HTTP/1.1", "enable HTTP/1.1 on the server"},
		{"only HTTP/2, while it waits", onlyHTTP2, []string{"--wait-ready", "10m"}, "the server speaks only HTTP/2", "enable HTTP/1.1 on the server"},
		{"closes at once", func(t *testing.T) string {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			srv := &http.Server{Protocols: new(http.Protocols), ErrorLog: quiet} // HTTP/2 and nothing else, of the standard library
			srv.Protocols.SetUnencryptedHTTP2(true)
			go srv.Serve(l)
			t.Cleanup(func() { srv.Close() })
			return "http://" + l.Addr().String()
		}, nil, "the target cannot be measured", "speaks only HTTP/2"},
		{"never ready", func(t *testing.T) string { return plain(t, always(503, "loading the model")) }, []string{"--wait-ready", "100ms"}, "loading the model", "log"},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin := time.Now()
			_, err := Open(t.Context(), planned(t, append([]string{c.url(t), "--rate", "1"}, c.args...)...), func(string) {})
			var target *Error
			if !errors.As(err, &target) {
				t.Fatalf("error %v", err)
			}
			if !strings.Contains(target.Msg, c.msg) || !strings.Contains(target.Hint, c.hint) {
				t.Errorf("%q, hint %q", target.Msg, target.Hint)
			}
			if strings.Contains(target.Msg+target.Hint, key) || strings.ContainsAny(target.Msg, "\r\n") {
				t.Errorf("%q, hint %q", target.Msg, target.Hint)
			}
			if time.Since(begin) > 10*time.Second {
				t.Errorf("it took %v", time.Since(begin))
			}
		})
	}
}

// redirecting answers everything with a redirect.
func redirecting(status int, location string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(status)
	})
}

// handshake serves a connection of TLS.
func handshake(t *testing.T) func(net.Conn) {
	srv := httptest.NewTLSServer(nil)
	srv.Close()
	return func(c net.Conn) { _ = tls.Server(c, &tls.Config{Certificates: srv.TLS.Certificates}).Handshake() }
}

// choosy returns the address of a server that has one function for connections of TLS and
// another for all others, and closes them then. nil does nothing.
func choosy(t *testing.T, overTLS, plain func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				begin, _ := r.Peek(1)
				serve := plain
				if len(begin) > 0 && begin[0] == 22 { // a handshake
					serve = overTLS
				}
				if serve == nil {
					return
				}
				if len(begin) > 0 && begin[0] != 22 {
					_, _ = http.ReadRequest(r)
					serve(c)
				} else {
					serve(peeked{c, r})
				}
			}()
		}
	}()
	return l.Addr().String()
}

// peeked is a connection whose first bytes were read already.
type peeked struct {
	net.Conn
	r io.Reader
}

func (p peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

// onlyHTTP2 returns the address of a server that answers a request over HTTP/1.1 with SETTINGS.
func onlyHTTP2(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(c))
			_, _ = io.WriteString(c, "\x00\x00\x00\x04\x00\x00\x00\x00\x00")
			_ = c.Close()
		}
	}()
	return "http://" + l.Addr().String()
}

func TestTrustedCertificate(t *testing.T) {
	srv := httptest.NewTLSServer(&scripted{models: oneModel, count: func(n int) int { return n }})
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--ca-cert", file}, {"--insecure"}} {
		if _, err := Open(t.Context(), planned(t, append(args, srv.URL, "--rate", "1")...), func(string) {}); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestNoProbe(t *testing.T) {
	h := &scripted{models: oneModel}
	target, err := opened(t, h, "--no-probe", "--model", "x")
	if err != nil || h.asked() > 0 || target.Options.Model != "x" || target.Residence != 0 {
		t.Errorf("%v, asked %d times, %+v", err, h.asked(), target)
	}
}

func TestLengthsThatDoNotFit(t *testing.T) {
	limit := &Target{Server: map[string]string{"max_model_len": "4096"}}
	p := config.Default()
	if err := limit.checkContextLength(&p.Ask); err != nil {
		t.Errorf("1,152 of 4,096 tokens: %v", err)
	}
	p.Prefix = 3000
	var refused *Error
	if err := limit.checkContextLength(&p.Ask); !errors.As(err, &refused) || refused.Hint == "" {
		t.Errorf("4,152 of 4,096 tokens: %v", err)
	}
	if err := (&Target{}).checkContextLength(&p.Ask); err != nil {
		t.Errorf("a server that names no limit: %v", err)
	}
}

// unlisting is an API whose servers have one model and no list of it.
type unlisting struct{ api.API }

func (unlisting) Models() string { return "" }

// routed is an API like Gemini's: its routes name the model, answers that are not
// streamed have another, and its key is in a variable of its own.
type routed struct{ api.API }

func (routed) Name() string        { return "routed" }
func (routed) KeyVariable() string { return "ROUTED_API_KEY" }
func (routed) Routes() []string {
	return []string{"/v1beta/models/{model}:stream", "/v1beta/models/{model}:whole"}
}

func (a routed) Prepare(engine string, o *api.Options) error {
	if o.Route == a.Routes()[0] && !o.Stream {
		o.Route = a.Routes()[1]
	}
	return a.API.Prepare(engine, o)
}

// Where the route names the model it is asked once the model is known, and that of
// a URL is the model's name.
func TestAPIWhoseRouteNamesTheModel(t *testing.T) {
	s := &scripted{count: func(words int) int { return words }}
	open := func(route, model string, stream bool) (*Target, error) {
		target, err := opened(t, s, "--no-probe")
		if err != nil {
			t.Fatal(err)
		}
		target.Options.Stream, target.Options.Model = stream, model
		return target, target.useAPI(routed{api.Chat}, route)
	}
	for _, c := range []struct {
		route, model string
		stream       bool
		want, named  string
	}{
		{"", "org/a b", true, "/v1beta/models/org%2Fa%20b:stream", "org/a b"},
		{"", "m", false, "/v1beta/models/m:whole", "m"},
		{"/x/v1beta/models/tuned:stream", "", true, "/x/v1beta/models/tuned:stream", "tuned"},
		{"/x/v1beta/models/tuned:stream", "tuned", true, "/x/v1beta/models/tuned:stream", "tuned"},
	} {
		target, err := open(c.route, c.model, c.stream)
		if err != nil || target.needsModel() != nil || target.Route != c.want || target.Options.Model != c.named || !strings.HasSuffix(target.URL, c.want) {
			t.Errorf("%+v: %v, route %s, model %s, URL %s", c, err, target.Route, target.Options.Model, target.URL)
		}
	}
	if _, err := open("/v1beta/models/one:stream", "two", true); err == nil || !strings.Contains(err.Error(), "--model two, but the target's URL names one") {
		t.Errorf("two names: %v", err)
	}
	target, err := open("", "", true)
	if err == nil {
		err = target.needsModel()
	}
	if err == nil || !strings.Contains(say.HintOf(err), "--model NAME") {
		t.Errorf("no name: %v", err)
	}
	if target.askFor("found"); target.Route != "/v1beta/models/found:stream" || target.needsModel() != nil {
		t.Errorf("route %s once the model is known", target.Route)
	}
	t.Setenv("ROUTED_API_KEY", "sk-routed")
	t.Setenv("OPENAI_API_KEY", "sk-openai")
	for variable, want := range map[string]string{"": "sk-routed", "OPENAI_API_KEY": "sk-openai"} {
		target := &Target{Kind: "http"}
		if err := target.setCredentials(&config.Target{KeyEnv: variable}, routed{api.Chat}, nil); err != nil || target.key != want {
			t.Errorf("key of %q: %q, %v", variable, target.key, err)
		}
	}
}

// A server whose API has no list of models is measured without a name of one.
func TestAPIWithoutModels(t *testing.T) {
	for _, route := range []string{"", "/elsewhere/chat/completions"} {
		s := &scripted{count: func(words int) int { return words }}
		target, err := opened(t, s, "--no-probe")
		if err != nil {
			t.Fatal(err)
		}
		if err := target.useAPI(unlisting{api.Chat}, route); err != nil {
			t.Fatal(err)
		}
		target.Options.Stream = true
		if err := target.waitReady(t.Context(), time.Second, func(string) {}); err != nil {
			t.Errorf("%q: %v", route, err)
		}
		if err := target.probe(t.Context(), planned(t, "http://h", "--rate", "1")); err != nil {
			t.Errorf("%q: %v", route, err)
		}
		if target.modelsPath() != "" || target.Options.Model != "" || s.asked() == 0 || target.Options.MaxField != "max_tokens" {
			t.Errorf("%q: %q, %+v, %d requests", route, target.modelsPath(), target.Options, s.asked())
		}
		if got, want := target.curlCommand(), "curl "+target.Dialer.Endpoint.URL("/"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
