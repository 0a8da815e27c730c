package plan

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// What a user gives as a secret is in memory alone: not in config.yaml, not in
// run.json, not on the screen.

const redacted = "[redacted]"

// IsSecret says whether the value of a header or URL parameter must not be
// stored or shown.
func IsSecret(name string) bool {
	return holds(name, "auth", "key", "token", "secret", "cookie", "password", "credential", "signature")
}

// IsSecretField says the same of a field of a request's body, where tokens are
// mostly those of a language model.
func IsSecretField(name string) bool {
	return holds(name, "auth", "api_key", "api-key", "apikey", "access_token", "secret", "cookie", "password", "credential", "signature")
}

func holds(name string, words ...string) bool {
	low := strings.ToLower(name)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(low, w) })
}

// publicHeader is what of NAME=VALUE may be seen.
func publicHeader(v string) Public {
	if name, _, ok := strings.Cut(v, "="); ok && IsSecret(name) {
		return Public{Shown: name + "=" + redacted, Hidden: []string{"header " + name}}
	}
	return Public{Shown: v, Kept: v}
}

// publicBody is a body without its secret fields.
func publicBody(v string) Public {
	public, hidden := withoutSecrets(v)
	if len(hidden) == 0 {
		return Public{Shown: v, Kept: v}
	}
	p := Public{Shown: public, Kept: public}
	if public == "{}" {
		p.Kept = ""
	}
	for _, field := range hidden {
		p.Hidden = append(p.Hidden, fmt.Sprintf("field %q of the body", field))
	}
	return p
}

// publicURL is a URL without user and password.
func publicURL(v string) Public {
	if !strings.Contains(v, "@") {
		return Public{Shown: v, Kept: v}
	}
	public := withoutPassword(v)
	return Public{Shown: public, Kept: public}
}

// withoutSecrets takes the secret fields out of a JSON object and names them.
func withoutSecrets(object string) (public string, hidden []string) {
	var m map[string]any
	d := json.NewDecoder(strings.NewReader(object))
	d.UseNumber()
	if d.Decode(&m) != nil {
		return "", nil
	}
	hidden = strip(m)
	out, err := json.Marshal(m)
	if err != nil {
		return "", hidden
	}
	slices.Sort(hidden)
	return string(out), hidden
}

func strip(v any) (hidden []string) {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			if IsSecretField(k) {
				delete(v, k)
				hidden = append(hidden, k)
				continue
			}
			hidden = append(hidden, strip(inner)...)
		}
	case []any:
		for _, inner := range v {
			hidden = append(hidden, strip(inner)...)
		}
	}
	return hidden
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
		switch {
		case s == nil:
		case has:
			out[i] = a[:len(a)-len(value)] + s.Shown(value)
		case i+1 < len(argv):
			out[i+1] = s.Shown(argv[i+1])
		}
	}
	return out
}
