package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Secrets are kept in memory only: they are not written to config.yaml or run.json
// and not shown.

const redacted = "[redacted]"

// PublicHeader says whether the value of a header may be stored and shown without
// --set header-public. Only headers that never hold secrets are listed: an unknown one may
// hold a key, or name a customer.
func PublicHeader(name string) bool {
	switch strings.ToLower(name) {
	case "accept", "accept-encoding", "accept-language", "anthropic-beta", "anthropic-version", "cache-control",
		"content-type", "openai-beta", "pragma", "user-agent":
		return true
	}
	return false
}

// IsSecret says whether a URL parameter, or the value of a header, is likely a
// key: one that a server may refuse.
func IsSecret(name string) bool {
	return containsAnyOf(name, "auth", "key", "token", "secret", "cookie", "password", "credential", "signature")
}

// IsSecretField says the same of a field of a request's body, where tokens are
// mostly those of a language model.
func IsSecretField(name string) bool {
	return containsAnyOf(name, "auth", "api_key", "api-key", "apikey", "access_token", "secret", "cookie", "password", "credential", "signature")
}

func containsAnyOf(name string, words ...string) bool {
	low := strings.ToLower(name)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(low, w) })
}

// publicHeader returns the public part of NAME=VALUE.
func publicHeader(v string) Public {
	if name, _, ok := strings.Cut(v, "="); ok && !PublicHeader(name) {
		shown := name + "=" + redacted
		return Public{Shown: shown, Kept: shown, Hidden: []string{"header " + name}}
	}
	return Public{Shown: v, Kept: v}
}

// lostHeader names the header whose value was hidden when it was kept.
func lostHeader(v string) []string {
	if name, value, _ := strings.Cut(v, "="); value == redacted {
		return []string{"header " + name}
	}
	return nil
}

// headerName returns the name by which one header differs from another.
func headerName(v string) string {
	name, _, _ := strings.Cut(v, "=")
	return strings.ToLower(name)
}

// publicKeyFile hides a file name that looks like a key given by mistake.
func publicKeyFile(v string) Public {
	if MayBeKey(v) {
		return Public{Shown: redacted, Kept: redacted}
	}
	return Public{Shown: v, Kept: v}
}

// MayBeKey says whether what should be a file name looks like the key itself; it must
// not be shown then.
func MayBeKey(path string) bool { return len(path) >= 16 && !strings.ContainsAny(path, `./\`) }

// publicBody is a body whose secret fields have no value.
func publicBody(v string) Public {
	public, hidden := withoutSecrets(v)
	if len(hidden) == 0 {
		return Public{Shown: v, Kept: v}
	}
	p := Public{Shown: public, Kept: public}
	for _, field := range hidden {
		p.Hidden = append(p.Hidden, fmt.Sprintf("field %q of the body", field))
	}
	return p
}

// BodyFields is the JSON object that is merged over each request's body, "" for none: what
// --body says, over what several answers to a request take. Engines refuse those at
// temperature 0, where all are the same.
func (a *Ask) BodyFields() string {
	if a.Choices <= 1 {
		return a.Body
	}
	over := fmt.Sprintf(`{"n":%d,"temperature":1`, a.Choices)
	if inner := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(a.Body), "{")); inner != "" && inner != "}" {
		var body map[string]json.RawMessage
		if json.Unmarshal([]byte(a.Body), &body) == nil && body["temperature"] != nil {
			over = fmt.Sprintf(`{"n":%d`, a.Choices)
		}
		return over + "," + inner
	}
	return over + "}"
}

// PublicFields are [Ask.BodyFields] without the values of secret ones.
func (a *Ask) PublicFields() string { return publicBody(a.BodyFields()).Shown }

// SecretValues are the values of the secret fields of the body: a server may repeat
// them.
func (a *Ask) SecretValues() (values []string) {
	var m map[string]any
	if json.Unmarshal([]byte(a.Body), &m) != nil {
		return nil
	}
	mapFields(m, func(name string, value any) any {
		if text, ok := value.(string); ok && IsSecretField(name) {
			values = append(values, text)
		}
		return value
	})
	return values
}

// lostFields names the fields of a body whose values were hidden when it was
// kept.
func lostFields(v string) (lost []string) {
	if !strings.Contains(v, redacted) {
		return nil
	}
	var m map[string]any
	if json.Unmarshal([]byte(v), &m) == nil {
		mapFields(m, func(name string, value any) any {
			if value == redacted && IsSecretField(name) {
				lost = append(lost, fmt.Sprintf("field %q of the body", name))
			}
			return value
		})
	}
	slices.Sort(lost)
	return lost
}

// publicURL is a URL without user and password.
func publicURL(v string) Public {
	if !strings.Contains(v, "@") {
		return Public{Shown: v, Kept: v}
	}
	public := withoutPassword(v)
	return Public{Shown: public, Kept: public, Hidden: []string{"user and password of the proxy"}}
}

// publicPage is NAME=URL without the password.
func publicPage(v string) Public {
	name, page, _ := strings.Cut(v, "=")
	if !strings.Contains(page, "@") {
		return Public{Shown: v, Kept: v}
	}
	u, err := url.Parse(page)
	if err != nil || u.User == nil {
		return Public{Shown: v, Kept: v}
	}
	u.User = url.User(redacted)
	public := name + "=" + strings.Replace(u.String(), url.PathEscape(redacted), redacted, 1)
	return Public{Shown: public, Kept: public, Hidden: []string{"user and password of " + name}}
}

// lostPage names the page whose password was hidden when it was kept.
func lostPage(v string) []string {
	if name, page, _ := strings.Cut(v, "="); strings.Contains(page, redacted+"@") {
		return []string{"user and password of " + name}
	}
	return nil
}

// withoutSecrets takes the values of the secret fields out of a JSON object and
// names the fields.
func withoutSecrets(object string) (public string, hidden []string) {
	var m map[string]any
	d := json.NewDecoder(strings.NewReader(object))
	d.UseNumber()
	if d.Decode(&m) != nil {
		return "", nil
	}
	mapFields(m, func(name string, value any) any {
		if IsSecretField(name) {
			hidden = append(hidden, name)
			return redacted
		}
		return value
	})
	out, err := json.Marshal(m)
	if err != nil {
		return "", hidden
	}
	slices.Sort(hidden)
	return string(out), hidden
}

// mapFields replaces every field of the objects in a JSON value by what change gives
// for it.
func mapFields(v any, change func(name string, value any) any) {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			v[k] = change(k, inner)
			mapFields(v[k], change)
		}
	case []any:
		for _, inner := range v {
			mapFields(inner, change)
		}
	}
}

func withoutPassword(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}

// RedactArgs gives a command line without the secrets that its flags hold.
func RedactArgs(argv []string) []string {
	secrets := map[string]*Setting{}
	for _, s := range Settings() {
		if s.Public != nil {
			secrets[s.Name] = &s
		}
	}
	out := slices.Clone(argv)
	for i, a := range argv {
		name, value, has := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(a, "-"), "-"), "=")
		if !strings.HasPrefix(a, "-") {
			continue
		}
		s := secrets[name]
		if name == setFlag { // --set KEY=VALUE, or --set=KEY=VALUE
			if has {
				out[i] = a[:len(a)-len(value)] + redactKey(secrets, value)
			} else if i+1 < len(argv) {
				out[i+1] = redactKey(secrets, argv[i+1])
			}
			continue
		}
		switch {
		case s == nil:
		case has:
			out[i] = a[:len(a)-len(value)] + s.ShownValue(value)
		case i+1 < len(argv):
			out[i+1] = s.ShownValue(argv[i+1])
		}
	}
	return out
}

// redactKey returns KEY=VALUE as it may be shown.
func redactKey(secrets map[string]*Setting, text string) string {
	key, value, valued := strings.Cut(text, "=")
	if s := secrets[key]; s != nil && valued {
		return key + "=" + s.ShownValue(value)
	}
	return text
}
