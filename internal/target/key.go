package target

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"

	"pitot/internal/client/api"
	"pitot/internal/config"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/say/unreadable"
	"pitot/internal/userfile"
)

// The API key and the other secrets that are sent to a target.

// setCredentials reads the key, from the API's variable where the user names no other, and
// takes the user's headers. The key is kept in memory only, and not at all where the user
// fills the header that would carry it; secrets are other values that must not be shown.
func (t *Target) setCredentials(p *config.Target, a api.API, secrets []string) error {
	variable := a.KeyVariable()
	key, from := "", ""
	switch {
	case p.KeyFile != "":
		var err error
		if key, err = readKey(p.KeyFile, keyHint); err != nil {
			return err
		}
		from = "the file " + p.KeyFile
	case t.Kind == "http":
		from = cmp.Or(p.KeyEnv, variable)
		key = strings.TrimSpace(os.Getenv(from))
		if key == "" && from != variable {
			return say.Errorf("--key-env: %s is not set", from).WithHint("export " + from + "=… first")
		}
	}
	if strings.ContainsAny(key, "\r\n\x00 ") {
		return say.Errorf("the API key from %s holds a space or line break", from).WithHint("the file or variable should hold the key alone")
	}
	for _, h := range p.PublicHeaders {
		name, value, _ := strings.Cut(h, "=")
		t.userHeaders = append(t.userHeaders, api.Header{Name: name, Value: value})
	}
	for _, h := range p.Headers {
		name, value, _ := strings.Cut(h, "=")
		t.userHeaders = append(t.userHeaders, api.Header{Name: name, Value: value})
		if !config.PublicHeader(name) {
			t.addSecret(value)
		}
		if config.IsSecret(name) {
			t.keySources = append(t.keySources, "--header "+name)
		}
	}
	for _, value := range secrets {
		t.addSecret(value)
	}
	if key != "" && !t.userSetsHeader(authorization) && !t.userSetsHeader(keyHeader(a)) {
		t.key = key
		t.addSecret(key)
		t.keySources = append(t.keySources, from)
	}
	return nil
}

// keyAsBearer sends the key as Authorization from now on, where the API has another header
// for it and the server has refused that; false where there is nothing to change, or where what
// the server refused was a header of the user's. vLLM's Messages and many gateways take no other.
func (t *Target) keyAsBearer() bool {
	host, _, _ := net.SplitHostPort(t.Dialer.Endpoint.Addr)
	own := keyHeader(t.API)
	if _, makers := api.ByHost(host); makers || t.key == "" || t.bearer || strings.EqualFold(own, authorization) || t.userSetsHeader(own) {
		return false
	}
	t.bearer = true
	t.setHeaders()
	t.noteAdaptation(result.Adaptation{Kind: result.KeyAsBearer, Value: own})
	return true
}

const authorization = "Authorization"

// setHeaders sets the headers of requests: those that the API needs, and the user's, which
// replace them.
func (t *Target) setHeaders() {
	own := keyHeader(t.API)
	needed := []api.Header{{Name: "User-Agent", Value: "pitot"}, {Name: "Content-Type", Value: "application/json"}}
	t.Headers = nil
	for _, h := range append(needed, t.API.Headers(t.key)...) {
		if t.bearer && h.Name == own {
			h = api.Header{Name: authorization, Value: "Bearer " + t.key}
		}
		if !t.userSetsHeader(h.Name) {
			t.Headers = append(t.Headers, h)
		}
	}
	t.Headers = append(t.Headers, t.userHeaders...)
}

// userSetsHeader says whether the user gave a header of this name.
func (t *Target) userSetsHeader(name string) bool {
	return slices.ContainsFunc(t.userHeaders, func(own api.Header) bool { return strings.EqualFold(own.Name, name) })
}

// addSecret adds a header's value to the secrets to redact, and the part after its
// scheme ("Bearer …"), since a server may repeat only that: of Basic also the user with the
// password, and the password.
func (t *Target) addSecret(value string) {
	t.Secret += value + "\n"
	scheme, rest, ok := strings.Cut(value, " ")
	if !ok {
		return
	}
	t.Secret += rest + "\n"
	plain, err := base64.StdEncoding.DecodeString(rest)
	if _, password, ok := strings.Cut(string(plain), ":"); ok && err == nil && strings.EqualFold(scheme, "basic") {
		t.Secret += string(plain) + "\n" + password + "\n"
	}
}

// keyHint is the hint for a key file that holds no usable key.
const keyHint = "a file that holds the API key alone; or name a variable that holds it: --key-env VAR"

// readKey reads the API key from a file that holds nothing else.
func readKey(path, hint string) (string, error) {
	b, err := userfile.Read(path, userfile.MostSecret)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && config.MayBeKey(path) {
			return "", say.Errorf("read --key-file: there is no such file").WithHint(hint)
		}
		return "", unreadable.FileError("--key-file", path, err, hint)
	}
	key := string(bytes.TrimSpace(b))
	if key == "" {
		return "", say.Errorf("--key-file: %s is empty", path).WithHint(hint)
	}
	return key, nil
}
