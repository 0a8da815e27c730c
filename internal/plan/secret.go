package plan

import (
	"encoding/json"
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

// storedHeaders are those that may be written to a file.
func storedHeaders(p *Plan) (out []string) {
	for _, h := range p.Headers {
		if name, _, _ := strings.Cut(h, "="); !IsSecret(name) {
			out = append(out, h)
		}
	}
	return out
}

// storedBody is the body without its secret fields.
func storedBody(p *Plan) []string {
	public, hidden := withoutSecrets(p.Body)
	if len(hidden) == 0 {
		public = p.Body
	}
	if public == "" || public == "{}" && len(hidden) > 0 {
		return nil
	}
	return []string{public}
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
	out := slices.Clone(argv)
	for i, a := range argv {
		name, value, has := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(a, "-"), "-"), "=")
		if !strings.HasPrefix(a, "-") {
			continue
		}
		switch {
		case has:
			out[i] = a[:len(a)-len(value)] + redactValue(name, value)
		case i+1 < len(argv):
			out[i+1] = redactValue(name, argv[i+1])
		}
	}
	return out
}

// redactValue gives the value of a flag as it may be shown.
func redactValue(flag, value string) string {
	switch flag {
	case "header":
		if name, _, ok := strings.Cut(value, "="); ok && IsSecret(name) {
			return name + "=" + redacted
		}
	case "proxy":
		if strings.Contains(value, "@") {
			return withoutPassword(value)
		}
	case "body":
		if public, hidden := withoutSecrets(value); len(hidden) > 0 {
			return public
		}
	}
	return value
}
