package target

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitot/internal/client"
	"pitot/internal/config"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// aimed is a target of which nothing is known but how it was written.
func aimed(t *testing.T, spec string) *Target {
	t.Helper()
	e, route, err := client.ParseTarget(spec)
	if err != nil {
		t.Fatal(err)
	}
	target := &Target{Spec: spec, Dialer: &client.Dialer{Endpoint: e}}
	a, err := target.chooseAPI(&config.Target{Spec: spec}, route)
	if err != nil {
		t.Fatal(err)
	}
	if err := target.useAPI(a, route); err != nil {
		t.Fatal(err)
	}
	return target
}

// However the target is written, the commands and addresses in what is said of
// it are right.
func TestAddresses(t *testing.T) {
	for _, c := range []struct{ spec, curl, missing string }{
		{"http://h:1", "curl http://h:1/v1/models", "does the server speak openai-chat? --api names another; try curl http://h:1/v1/models; where its path is another, give that with the target"},
		{"http://h:1/v1/", "curl http://h:1/v1/models", "does the server speak openai-chat? --api names another; try curl http://h:1/v1/models; where its path is another, give that with the target"},
		{"http://h:1/foo", "curl http://h:1/foo/v1/models", "Pitot adds /v1/chat/completions to the path of a target; where the route is another give all of it, for example http://h:1/foo/chat/completions"},
		{"http://h:1/v2", "curl http://h:1/v2/v1/models", "did you mean http://h:1/v1?"},
		{"https://h/v1/chat/completion", "curl https://h/v1/chat/completion/v1/models", "did you mean https://h/v1/chat/completions?"},
		{"http://h:1/v1/completions", "curl http://h:1/v1/models", "check the route; http://h:1 alone lets Pitot choose it"},
		{"http://h:1/chat/completions", "curl http://h:1/models", "check the route; http://h:1 alone lets Pitot choose it"},
		{"https://h/api/v4/chat/completions?version=2", "curl https://h/api/v4/models", "check the route; https://h alone lets Pitot choose it"},
		{"unix:///run/s.sock:/v1", "curl --unix-socket /run/s.sock http://localhost/v1/models",
			"does the server speak openai-chat? --api names another; try curl --unix-socket /run/s.sock http://localhost/v1/models; where its path is another, give that with the target"},
	} {
		target := aimed(t, c.spec)
		if got := target.curlCommand(); got != c.curl {
			t.Errorf("%s: %s, want %s", c.spec, got, c.curl)
		}
		var failed *Error
		if err := target.ExplainFailure(record.ErrNotFound, 404, ""); !errors.As(err, &failed) || failed.Hint != c.missing || failed.Msg != "not found at "+target.URL {
			t.Errorf("%s: %v\n got %s\nwant %s", c.spec, err, failed.Hint, c.missing)
		}
		target.hasModelList = true
		if got := target.errorHint(record.ErrNotFound); !strings.HasPrefix(got, c.curl+" lists its models") {
			t.Errorf("%s: %s", c.spec, got)
		}
	}
}

// A refusal says whether a key was sent and where it came from, never the key.
func TestRefusedKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key.txt")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	deny := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) })
	for _, c := range []struct {
		env  string
		args []string
		msg  string
		hint string
	}{
		{"", nil, "the server refuses the request with HTTP 403, and no key was sent: no", "export OPENAI_API_KEY=…"},
		{key, nil, "the server refuses the key from OPENAI_API_KEY with HTTP 403: no", "is it a key for this server"},
		{key, []string{"--key-file", file}, "the server refuses the key from the file " + file + " with HTTP 403: no", "is it a key"},
		{key, []string{"--header", "Authorization=Bearer " + key}, "the server refuses the key from --header Authorization with HTTP 403: no", "is it a key"},
		{"", []string{"--header", "X-Api-Key=" + key}, "the server refuses the key from --header X-Api-Key with HTTP 403: no", "is it a key"},
		{key, []string{"--header", "X-Api-Key=" + key}, "the server refuses the key from --header X-Api-Key and OPENAI_API_KEY with HTTP 403: no", "is it a key"},
	} {
		t.Setenv("OPENAI_API_KEY", c.env)
		_, err := opened(t, deny, c.args...)
		var refused *Error
		if !errors.As(err, &refused) || refused.Msg != c.msg || !strings.HasPrefix(refused.Hint, c.hint) {
			t.Errorf("%q: %+v", c.args, err)
		}
	}
}

// What is said of a response that was cut or broken off is what was seen of it, not that none
// came; that it is waited for is shown meanwhile.
func TestResponseThatDoesNotEnd(t *testing.T) {
	defer func(was time.Duration) { showWait = was }(showWait)
	showWait = time.Millisecond
	const text = `data: {"choices":[{"index":0,"delta":{"content":"x"}}]}` + "\n\n"
	for _, c := range []struct{ stream, msg, hint string }{
		{text + text, "(timeout): the response began, and did not end: events with text: 2", "the server answers, but the response did not end within --timeout"},
		{text + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}` + "\n\n: ping\n\n", `(timeout): the finish reason "length" came, and then neither an end mark nor the end`, "the server answers"},
		{": ping\n\n", "(timeout): the response began, with HTTP 200, and no text came", "the server answers"},
		{"", "(timeout)", "the server accepts connections and does not answer"},
	} {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				_, _ = io.WriteString(w, oneModel)
				return
			}
			_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not seen
			if c.stream == "" {
				<-r.Context().Done()
				return
			}
			_, _ = io.WriteString(w, c.stream)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		srv := httptest.NewServer(h)
		var shown []string
		x, err := Open(t.Context(), planned(t, srv.URL, "--rate", "1", "--timeout", "50ms"), func(line string) { shown = append(shown, line) })
		srv.CloseClientConnections()
		srv.Close()
		var failed *Error
		if !errors.As(err, &failed) || !strings.Contains(failed.Msg, c.msg) || !strings.Contains(failed.Hint, c.hint) {
			t.Errorf("%q: %v, %+v", c.stream, x, err)
		}
		if len(shown) != 1 || !strings.Contains(shown[0], "waiting for a response of http://") {
			t.Errorf("%q: %q", c.stream, shown)
		}
	}
}

// HTTP/2 is suspected only where no byte of a response came.
func TestResponseThatIsBrokenOff(t *testing.T) {
	x := aimed(t, "http://h:1")
	for bytes, hint := range map[int64]string{0: "HTTP/2", 90: "broke the response off: its log may say why"} {
		row := record.BlankRow()
		row.Error, row.BytesIn, row.Status = record.ErrReset, bytes, 200
		var failed *Error
		if err := x.rowFailure(&row); !errors.As(err, &failed) || !strings.Contains(failed.Hint, hint) {
			t.Errorf("%d bytes: %+v", bytes, err)
		}
	}
}

// Where neither chat nor completions are there, the refusal of the chat is shown: nobody named
// the other.
func TestRefusalOfChatIsShown(t *testing.T) {
	_, err := opened(t, &scripted{models: oneModel, refuse: func(path string, _ map[string]any) (int, string) {
		if path == "/v1/chat/completions" {
			return 404, "small does not support chat"
		}
		return 404, "Not Found"
	}})
	if err == nil || !strings.HasSuffix(err.Error(), "/v1/chat/completions: small does not support chat") {
		t.Error(err)
	}
}

// A response that names another model, or that is not streamed, is noted.
func TestNotesOfTheFirstResponse(t *testing.T) {
	for _, c := range []struct{ model, body, want string }{
		{"m-mini-fallback", "", "other_model m-mini-fallback small"},
		{"small-2024-08-06", "", "other_model small-2024-08-06 small"},
		{"/models/Small", "", ""},
		{"owner/small", "", ""},
		{"small:latest", "", ""},
		{"small", "whole", "stream_ignored "},
	} {
		target, err := opened(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method != http.MethodPost:
				_, _ = io.WriteString(w, oneModel)
			case c.body == "whole":
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"model":"small","choices":[{"index":0,"message":{"content":"x"},"finish_reason":"length"}]}`)
			default:
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, `data: {"model":"`+c.model+`","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"length"}]}`+"\n\ndata: [DONE]\n\n")
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, a := range target.Adaptations {
			if a.Kind == result.OtherModel || a.Kind == result.StreamIgnored {
				got += strings.Join(append([]string{string(a.Kind), a.Value}, a.Of...), " ")
			}
		}
		if got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
