package target

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"pitot/internal/client"
	"pitot/internal/client/api"
	"pitot/internal/results/record"
	"pitot/internal/say"
)

// Error says that a target cannot be measured: it is unreachable, or refuses.
type Error struct {
	Msg   string
	Hint  string
	Class string // of the error, "" where it has none: record.ErrContextLength, …
}

func (e *Error) Error() string { return e.Msg }

// ExplainFailure says what is wrong with the target, from the class of an error, the
// HTTP status it came with (0 or [record.Unset] for none) and the server's message.
func (t *Target) ExplainFailure(class string, status int32, detail string) error {
	msg := "the target cannot be measured (" + class + ")"
	if status > 0 && status != 200 && !record.IsServerError(class) {
		msg = fmt.Sprintf("the target cannot be measured (%s, HTTP %d)", class, status)
	}
	switch class {
	case record.ErrAuth:
		msg = fmt.Sprintf("the server refuses the request with HTTP %d, and no key was sent", status)
		if len(t.keySources) > 0 {
			msg = fmt.Sprintf("the server refuses the key from %s with HTTP %d", strings.Join(t.keySources, " and "), status)
		}
	case record.ErrNotFound:
		msg = "not found at " + t.URL
	case record.ErrHTTP2:
		return &Error{detail, t.errorHint(class), class}
	case record.ErrRedirect:
		return &Error{msg + ": " + client.Redact(detail, t.Secret), redirectHint(detail), class}
	case record.ErrTLS:
		if !t.Dialer.Endpoint.TLS {
			return t.speaksTLS()
		}
	case record.ErrContextLength:
		msg = "the request does not fit the model's context"
	}
	if detail != "" {
		msg += ": " + client.Redact(detail, t.Secret)
	}
	if record.IsOwn(class) {
		return say.Errorf("this client cannot measure (%s): %s", class, client.Redact(detail, t.Secret)).WithHint(clientHint(class))
	}
	hint := t.errorHint(class)
	switch {
	case class == record.ErrTLS && wantsCertificate(detail) && t.certificate:
		hint = "the server does not take the certificate of --cert: is it of an authority that it trusts?"
	case class == record.ErrTLS && wantsCertificate(detail):
		hint = "the server asks for a certificate of the client: --cert FILE --key FILE"
	case class == record.ErrMalformed && isPage(strings.TrimPrefix(detail, notJSON)):
		hint = "that is a web page, and no API of an LLM server: check the host, the port and the path"
	case class == record.ErrTimeout && strings.Contains(detail, "TLS"):
		hint = "does the server speak HTTPS there? try " + strings.Replace(t.curlCommand(), "https://", "http://", 1)
	case class == record.ErrTLS && strings.Contains(detail, "first record does not look like a TLS handshake"):
		return t.speaksPlain()
	}
	return &Error{msg, hint, class}
}

// rowFailure is the [Target.ExplainFailure] of a request. What came of the response decides what
// the hint is.
func (t *Target) rowFailure(row *record.Row) error {
	err := t.ExplainFailure(row.Error, row.Status, row.Detail)
	var failed *Error
	if row.BytesIn == 0 || !errors.As(err, &failed) {
		return err
	}
	switch row.Error {
	case record.ErrTimeout:
		failed.Hint = "the server answers, but the response did not end within --timeout: see with curl -N what it sends, or give it longer"
	case record.ErrClosed, record.ErrReset:
		failed.Hint = "the server, or a proxy in front of it, broke the response off: its log may say why"
	}
	return err
}

// otherScheme tries whether a server that broke a connection off speaks TLS where plain HTTP was
// sent, or plain HTTP where TLS was, and returns the error that says so; nil where it does not.
func (t *Target) otherScheme(ctx context.Context, class, detail string) error {
	switch e := t.Dialer.Endpoint; class {
	case record.ErrReset, record.ErrClosed:
		if !e.TLS && !e.Unix && t.Dialer.SpeaksTLS(ctx) {
			return t.speaksTLS()
		}
	case record.ErrTLS, record.ErrTimeout:
		broken := strings.HasSuffix(detail, "EOF") || strings.HasSuffix(detail, "connection reset by peer") || strings.Contains(detail, "TLS handshake in time")
		if e.TLS && broken && t.Dialer.SpeaksPlain(ctx) {
			return t.speaksPlain()
		}
	}
	return nil
}

// speaksTLS is the error of a port that speaks TLS, of a target with http.
func (t *Target) speaksTLS() error {
	e := t.Dialer.Endpoint
	e.TLS = true
	return &Error{"the port " + e.Addr + " speaks TLS, not plain HTTP", "try " + e.URL(e.Base), record.ErrTLS}
}

// speaksPlain is the error of a port that speaks plain HTTP, of a target with https.
func (t *Target) speaksPlain() error {
	e := t.Dialer.Endpoint
	e.TLS = false
	return &Error{"the port " + e.Addr + " speaks plain HTTP, not TLS", "try " + e.URL(e.Base), record.ErrTLS}
}

// redirectHint is the hint for a redirect, by where it leads.
func redirectHint(redirect string) string {
	if client.IsLogin(redirect) {
		return "Pitot cannot log in: give the address of the API behind the login, and a key with --key-env VAR"
	}
	return "Pitot follows no redirect: give the address that it leads to as the target"
}

// rateLimited is the error of a request that was refused with 429, with the server's message and
// its Retry-After in seconds, if it has one.
func (t *Target) rateLimited(detail string, retryAfter int32) error {
	if retryAfter > 0 {
		detail = strings.TrimPrefix(fmt.Sprintf("%s; Retry-After: %d s", detail, retryAfter), "; ")
	}
	return t.ExplainFailure(record.ErrRateLimited, http.StatusTooManyRequests, detail)
}

// notJSON begins what is said of an answer that is none.
const notJSON = "not JSON: "

// isPage says whether an answer is a page of a website, or of a proxy.
func isPage(answer string) bool {
	begin := strings.ToLower(strings.TrimSpace(answer[:min(len(answer), 200)]))
	return strings.HasPrefix(begin, "<!doctype html") || strings.HasPrefix(begin, "<html")
}

// wantsCertificate says whether a TLS alert is about this client's certificate. Up to
// TLS 1.2 a missing one is reported as a failed handshake.
func wantsCertificate(detail string) bool {
	for _, alert := range []string{"certificate required", "bad certificate", "unknown certificate", "handshake failure"} {
		if strings.Contains(detail, "remote error: tls: "+alert) {
			return true
		}
	}
	return false
}

// clientHint is the hint for an error of this client or its machine.
func clientHint(class string) string {
	switch class {
	case record.ErrOwnFiles:
		return "raise the limit of open files before (ulimit -n)"
	case record.ErrOwnPorts:
		return "this machine has no local ports left: wait a minute, or measure from several"
	case record.ErrOwnMemory:
		return "ask for shorter answers, or measure from a larger machine"
	}
	return ""
}

// WentAway is the error of a target that refuses all connections, since a time after
// the load began.
func (t *Target) WentAway(since time.Duration) error {
	return &Error{
		Msg:  fmt.Sprintf("the server went away %.3g s after the load began: connections to %s are refused", since.Seconds(), t.Dialer.Endpoint.Addr),
		Hint: "its log may say why; restart it and measure again",
	}
}

// errorHint is the hint for a class of error.
func (t *Target) errorHint(class string) string {
	switch class {
	case record.ErrConnect:
		return "is the server running there? try " + t.curlCommand() + ", or wait for it with --wait-ready 10m"
	case record.ErrDNS:
		return "check the host's name"
	case record.ErrTLS:
		return "check the scheme and the certificate; --ca-cert FILE trusts an authority of your own, --insecure trusts anything"
	case record.ErrHTTP2:
		return "enable HTTP/1.1 on the server, or put a proxy in front of it that speaks HTTP/1.1"
	case record.ErrClosed, record.ErrReset:
		return "look at the server's log; a server that speaks only HTTP/2 closes the connection too: enable HTTP/1.1 on it"
	case record.ErrProxy:
		return "is the proxy running there, and does it let " + t.Dialer.Endpoint.Addr + " through? check --proxy"
	case record.ErrAuth:
		if len(t.keySources) > 0 {
			switch name := keyHeader(t.API); {
			case t.bearer:
				return "is it a key for this server, and still good? it was sent as " + name + " and as Authorization"
			case (t.key != "" || t.userSetsHeader(name)) && !strings.EqualFold(name, authorization):
				return "is it a key for this server, and still good? it was sent as " + name + "; a server that wants it as Authorization, as vLLM does, gets it by --header 'Authorization=Bearer …'"
			}
			return "is it a key for this server, and still good? another comes from --key-env VAR or --key-file FILE"
		}
		return "export " + t.API.KeyVariable() + "=…, or name where the key is with --key-env VAR or --key-file FILE; --header NAME=VALUE sends one under another name"
	case record.ErrNotFound:
		return t.pathHint()
	case record.ErrMalformed:
		return "does the server speak another API? name it with --api, or look at the server's log"
	case record.ErrStream:
		return "the server reported this error itself: look at its log"
	case record.ErrTimeout:
		return "the server accepts connections and does not answer; is it still loading? --wait-ready 10m waits"
	case record.ErrContextLength:
		return "ask for less with --input and --output"
	case record.ErrRateLimited:
		return "the server limits your rate: wait, or ask for less; under load --respect-limits holds requests back until it takes them, and --retry 2 sends refused ones again"
	}
	return ""
}

// keyHeader is the name of the header that an API sends a key in.
func keyHeader(a api.API) string {
	const key = "key"
	for _, h := range a.Headers(key) {
		if strings.HasSuffix(h.Value, key) {
			return h.Name
		}
	}
	return ""
}

// pathHint is the hint where the path or the model was not found.
func (t *Target) pathHint() string {
	e := t.Dialer.Endpoint
	speaks := t.API
	if t.apiGuessed && t.API == api.Completions { // another may have been tried after the default
		speaks = api.Default()
	}
	route := speaks.Routes()[0]
	routes, near := []string{"/v1"}, ""
	for _, a := range api.All() {
		routes = append(routes, a.Routes()...)
	}
	if e.Base != "" {
		near = say.NearestName(e.Base, routes)
	}
	switch {
	case t.hasModelList:
		with := ""
		if len(t.keySources) > 0 {
			with = " with the key"
		}
		return t.curlOf(t.greetingPath()) + with + " lists its models: name one with --model, or another API with --api"
	case near != "":
		return "did you mean " + e.URL(near) + "?"
	case t.fullRoute:
		return "check the route; " + t.addressWithoutPath() + " alone lets Pitot choose it"
	case e.Base != "":
		return "Pitot adds " + route + " to the path of a target; where the route is another give all of it, for example " + e.URL(e.Base+strings.TrimPrefix(route, "/v1"))
	}
	return "does the server speak " + speaks.Name() + "? --api names another; try " + t.curlCommand() + "; where its path is another, give that with the target"
}

// addressWithoutPath is the target's address without any path.
func (t *Target) addressWithoutPath() string {
	return strings.TrimSuffix(t.Dialer.Endpoint.URL(""), ":")
}

// curlCommand is a command that asks the server for what its API is known by, else for its
// models, or for anything.
func (t *Target) curlCommand() string {
	if sign := t.API.Sign().Path; sign != "" && !t.apiGuessed && !t.fullRoute {
		return t.curlOf(t.Dialer.Endpoint.Base + sign)
	}
	return t.curlOf(t.greetingPath())
}

// curlOf is a command that asks for a path.
func (t *Target) curlOf(path string) string {
	e := t.Dialer.Endpoint
	switch {
	case e.Unix:
		return "curl --unix-socket " + e.Addr + " http://" + e.Host + path
	case e.TLS && e.Config != nil && e.Config.InsecureSkipVerify:
		return "curl -k " + e.URL(path)
	}
	return "curl " + e.URL(path)
}
