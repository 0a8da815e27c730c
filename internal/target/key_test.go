package target

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"pitot/internal/client"
	"pitot/internal/results/record"
	"pitot/internal/sim/serve"
)

// A server that takes no key as the API sends it gets it as Authorization; one that takes
// neither is told of both.
func TestKeyAsBearer(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", key)
	for _, c := range []struct {
		own  string
		open bool // the list of models is
		want string
	}{{key, false, ""}, {key, true, ""}, {"another", false, "sent as x-api-key and as Authorization"}} {
		srv := serve.New(serve.Config{APIKey: c.own})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go srv.Serve(l)
		t.Cleanup(func() { l.Close() })
		address := "http://" + l.Addr().String()
		if c.open {
			address = openedFor(t, l.Addr().String(), "/v1/models", key)
		}
		p := planned(t, address, "--api", "anthropic", "--input", "8", "--output", "2")
		target, err := Open(context.Background(), p, func(string) {})
		if c.want != "" {
			if failed, ok := err.(*Error); !ok || !strings.Contains(failed.Hint, c.want) || strings.Contains(failed.Error(), key) {
				t.Errorf("%v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		found, err := target.Found()
		target.Close()
		if err != nil || len(target.Adaptations) != 1 || target.Adaptations[0].Value != "x-api-key" {
			t.Errorf("%v %v", err, target.Adaptations)
		}
		other, err := OpenFound(context.Background(), p, &found)
		if err != nil {
			t.Fatal(err)
		}
		if row := other.askOnce(context.Background(), someWords(20), 3); row.Outcome != record.OK {
			t.Errorf("%+v", row)
		}
		other.Close()
	}
}

// A key of the environment stays here where the user fills the header that would carry it: no
// refusal makes another header of it.
func TestKeyStaysHere(t *testing.T) {
	const key, gateway = "key-of-the-environment", "key-of-the-gateway"
	for _, c := range []struct{ api, variable, header string }{
		{"anthropic", "ANTHROPIC_API_KEY", "x-api-key"},
		{"anthropic", "ANTHROPIC_API_KEY", "Authorization"},
		{"gemini", "GEMINI_API_KEY", "X-Goog-Api-Key"},
		{"openai-chat", "OPENAI_API_KEY", "authorization"},
	} {
		for _, status := range []int{401, 403} {
			for _, open := range []bool{false, true} { // the list of models is
				t.Setenv(c.variable, key)
				var asked, leaked atomic.Int32
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if asked.Add(1); strings.Contains(fmt.Sprint(r.URL, r.Header), key) {
						leaked.Add(1)
					}
					if open && r.URL.Path == "/v1/models" {
						http.NotFound(w, r)
						return
					}
					http.Error(w, "no", status)
				}))
				t.Cleanup(s.Close)
				p := planned(t, s.URL, "--api", c.api, "--model", "m", "--header", c.header+"="+gateway, "--input", "8", "--output", "2")
				x, err := Open(context.Background(), p, func(string) {})
				if err == nil {
					x.Close()
				}
				if err == nil || !strings.Contains(err.Error(), "the key from --header "+c.header+" with HTTP") || asked.Load() == 0 || leaked.Load() > 0 {
					t.Errorf("%s, %s, %d, %v: %v; %d of %d requests had the key", c.api, c.header, status, open, err, leaked.Load(), asked.Load())
				}
			}
		}
	}
}

// openedFor is the URL of a server before another, which adds the key on one path.
func openedFor(t *testing.T, addr, path, key string) string {
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: addr})
		if r.In.URL.Path == path {
			r.Out.Header.Set("Authorization", "Bearer "+key)
		}
	}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Whole beforehand: an answer that overtakes the end of what is passed on would end it.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// A server that repeats what is in a Basic header, in whatever form, finds it redacted.
func TestBasicIsSecret(t *testing.T) {
	x := &Target{}
	x.addSecret("Basic " + base64.StdEncoding.EncodeToString([]byte("someone:a-pass/word-of-length")))
	for _, text := range []string{"no user someone:a-pass/word-of-length", "wrong: a-pass%2Fword-of-length", "wrong: YS1wYXNzL3dvcmQtb2YtbGVuZ3Ro"} {
		if got := client.Redact(text, x.Secret); !strings.HasSuffix(got, " [redacted]") {
			t.Errorf("%q: %q", text, got)
		}
	}
}
