package target

import (
	"fmt"
	"strings"
	"time"

	"pitot/internal/data/record"
	"pitot/internal/say"
	"pitot/internal/wire"
	"pitot/internal/wire/api"
)

// Error is a target that cannot be measured: unreachable, or refusing.
type Error struct {
	Msg  string
	Hint string
}

func (e *Error) Error() string { return e.Msg }

// Failure says what is wrong with the target, from the class of an error and
// what the server said.
func (t *Target) Failure(class, detail string) error {
	msg := "the target cannot be measured (" + class + ")"
	switch class {
	case record.ErrAuth:
		msg = "the server refuses the request, and no key was sent"
		if len(t.keys) > 0 {
			msg = "the server refuses the key from " + strings.Join(t.keys, " and ")
		}
	case record.ErrNotFound:
		msg = "not found at " + t.URL
	case record.ErrContextLength:
		msg = "the request does not fit the model's context"
	}
	if detail != "" {
		msg += ": " + wire.Redact(detail, t.Secret)
	}
	return &Error{msg, t.hint(class)}
}

// WentAway says that the target is there no more, since a time after the load
// on it began.
func (t *Target) WentAway(since time.Duration) error {
	return &Error{
		Msg:  fmt.Sprintf("the server went away %.3g s after the load began: connections to %s are refused", since.Seconds(), t.Dialer.Endpoint.Addr),
		Hint: "its log may say why; start it again and measure anew",
	}
}

// hint says what to do about a class of error.
func (t *Target) hint(class string) string {
	switch class {
	case record.ErrConnect:
		return "is the server running there? try " + t.curl() + ", or wait for it with --wait-ready 10m"
	case record.ErrDNS:
		return "check the host's name"
	case record.ErrTLS:
		return "check the scheme and the certificate; --ca-cert FILE trusts an authority of your own, --insecure trusts anything"
	case record.ErrProxy:
		return "check --proxy"
	case record.ErrAuth:
		if len(t.keys) > 0 {
			return "is it a key for this server, and still good? another comes from --key-env VAR or --key-file FILE"
		}
		return "export OPENAI_API_KEY=…, or name where the key is with --key-env VAR or --key-file FILE; --header NAME=VALUE sends one under another name"
	case record.ErrNotFound:
		return t.pathHint()
	case record.ErrTimeout:
		return "the server accepts connections and does not answer; is it still loading? --wait-ready 10m waits"
	case record.ErrContextLength:
		return "ask for less with --input and --output"
	case record.ErrRateLimited:
		return "the server limits your rate; wait, or ask for less"
	}
	return ""
}

// pathHint says what may be wrong with the target's path or the model.
func (t *Target) pathHint() string {
	e := t.Dialer.Endpoint
	chat := api.Chat{}.Route()
	routes, near := []string{"/v1"}, ""
	for _, a := range api.All() {
		routes = append(routes, a.Route())
	}
	if e.Base != "" {
		near = say.Nearest(e.Base, routes)
	}
	switch {
	case t.listed:
		with := ""
		if len(t.keys) > 0 {
			with = " with the key"
		}
		return t.curl() + with + " lists its models: name one with --model, or another API with --api"
	case near != "":
		return "did you mean " + e.URL(near) + "?"
	case t.full:
		return "check the route; " + t.site() + " alone lets Pitot choose it"
	case e.Base != "":
		return "Pitot adds " + chat + " to the path of a target; where the route is another give all of it, for example " + e.URL(e.Base+strings.TrimPrefix(chat, "/v1"))
	}
	return "is it a server of OpenAI's API? try " + t.curl() + "; where its path is another, give that with the target"
}

// site is the target's address without any path.
func (t *Target) site() string { return strings.TrimSuffix(t.Dialer.Endpoint.URL(""), ":") }

// curl is a command that asks the server for its models.
func (t *Target) curl() string {
	e := t.Dialer.Endpoint
	switch {
	case e.Unix:
		return "curl --unix-socket " + e.Addr + " http://" + e.Host + t.models()
	case e.TLS && e.Config != nil && e.Config.InsecureSkipVerify:
		return "curl -k " + e.URL(t.models())
	}
	return "curl " + e.URL(t.models())
}
