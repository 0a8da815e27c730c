package client

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Short values are taken out where they stand by themselves, long ones
// everywhere; what is shorter than four bytes stays.
func TestRedact(t *testing.T) {
	for _, c := range []struct{ text, secrets, want string }{
		{"wrong key: sk-0123456789", "sk-0123456789", "wrong key: [redacted]"},
		{"xsk-0123456789x", "sk-0123456789", "x[redacted]x"},
		{"team blue is not bluer; blue-1 (blue)", "blue", "team [redacted] is not bluer; [redacted]-1 ([redacted])"},
		{"blueblue", "blue", "blueblue"},
		{"yes and a", "yes\na\n", "yes and a"},
		{"one_two", "two2\none_two", "[redacted]"},
		{"\xffblue\xff", "blue", "\xff[redacted]\xff"},
	} {
		if got := Redact(c.text, c.secrets); got != c.want {
			t.Errorf("%q without %q: %q, want %q", c.text, c.secrets, got, c.want)
		}
	}
	x, _ := play(true, nil, read{streamed(textEvent("a"), finish(testSecret+strings.Repeat("y", 50)), done), 10, false})
	if want := "[redacted]" + strings.Repeat("y", 27) + "…"; x.Row.Finish != want {
		t.Errorf("finish %q, want %q", x.Row.Finish, want)
	}
}

const slashedKey = "sk-Ab/Cd+Ef=ghijklmnop"

// writings are ways in which a server may write a key.
var writings = map[string]func(key string) string{
	"as it is":              func(k string) string { return k },
	"JSON":                  func(k string) string { b, _ := json.Marshal(k); return string(b) },
	"JSON with \\/":         func(k string) string { return strings.ReplaceAll(k, "/", `\/`) },
	"JSON in JSON":          func(k string) string { return strings.ReplaceAll(k, "/", `\\\/`) },
	"JSON with \\u":         func(k string) string { return strings.ReplaceAll(k, "/", `\u002f`) },
	"JSON with \\u in JSON": func(k string) string { return strings.ReplaceAll(k, "/", `\\u002f`) },
	"Python":                func(k string) string { return strings.ReplaceAll(k, "/", `\x2f`) },
	"URL":                   url.QueryEscape,
	"URL in URL":            func(k string) string { return url.QueryEscape(url.QueryEscape(k)) },
	"each letter in URL": func(k string) string {
		return "%" + strings.ToUpper(strings.Join(pairs(hex.EncodeToString([]byte(k))), "%"))
	},
	"HTML": html.EscapeString,
	"HTML with a number": func(k string) string {
		return strings.NewReplacer("/", "&#x2F;", "+", "&#43;", "=", "&equals;").Replace(k)
	},
	"base64":            func(k string) string { return base64.StdEncoding.EncodeToString([]byte(k)) },
	"base64 for URLs":   func(k string) string { return base64.RawURLEncoding.EncodeToString([]byte(k)) },
	"Basic":             func(k string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte("Bearer "+k)) },
	"Basic with a user": func(k string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+k+"\n")) },
	"hexadecimal":       func(k string) string { return hex.EncodeToString([]byte(k)) },
	"upper case":        strings.ToUpper,
	"spaced":            func(k string) string { return strings.Join(strings.Split(k, ""), " ") },
	"without its end":   func(k string) string { return k[:len(k)-1] },
	"its half":          func(k string) string { return k[:len(k)/2] },
	"its other half":    func(k string) string { return k[len(k)/2:] },
	"its start":         func(k string) string { return k[:9] + "****" },
	"over two lines":    func(k string) string { return k[:9] + `\n` + k[9:] },
}

func pairs(s string) (list []string) {
	for i := 0; i+2 <= len(s); i += 2 {
		list = append(list, s[i:i+2])
	}
	return list
}

func TestRedactWritings(t *testing.T) {
	for _, key := range []string{slashedKey, testSecret, "MDEyMzQ1Njc4OWFiY2RlZg/=="} {
		for name, write := range writings {
			text := "invalid key " + write(key) + " - no."
			got := Redact(text, "other-secret-of-some-length\n"+key)
			kept := strings.TrimSuffix(strings.TrimPrefix(got, "invalid key "), " - no.")
			letters, _ := newLevel(strings.ReplaceAll(kept, redacted, "")).lettersAndDigits()
			if !strings.Contains(got, redacted) || len(got)-len(kept) != len("invalid key  - no.") || len(letters) > len("BasicQmVhcmVyIH+0=") {
				t.Errorf("%s, %s: %q", key, name, got)
			}
		}
	}
}

// What no secret is in stays as it is.
func TestRedactLeaves(t *testing.T) {
	for _, text := range []string{
		"", "sk-", "Incorrect API key provided: sk-Ab****.", "the model llama-3.1-8b-instruct is not there", `{"error":{"message":"100% of \\u0041 &amp; %zz \\u12 &#; \\"}}`,
		"\xff\xfe%", "data: {\"choices\":[]}", strings.Repeat("ghijkl ", 3),
	} {
		if got := Redact(text, slashedKey); got != text {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// A hostile text costs little.
func TestRedactIsBounded(t *testing.T) {
	key := strings.Repeat("a", 400)
	for _, text := range []string{strings.Repeat("a", 1<<20), strings.Repeat(key[:20]+"b", 1<<15), strings.Repeat(`\\`, 1<<19), strings.Repeat("&#x26;", 1<<17)} {
		begin := time.Now()
		if got := Redact(text, key); len(got) > maxRedacted || strings.Contains(got, key[:longPiece]) {
			t.Errorf("%.20s: %d bytes", text, len(got))
		}
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("%.20s: %v", text, took)
		}
	}
}

func FuzzRedact(f *testing.F) {
	for _, write := range writings {
		f.Add("bad key "+write(slashedKey), slashedKey)
	}
	f.Fuzz(func(t *testing.T, text, secret string) {
		got := Redact(text, secret)
		if len(text) <= maxRedacted && !strings.Contains(got, redacted) && got != text {
			t.Fatalf("%q without %q: %q", text, secret, got)
		}
		if len(secret) < longSecret || strings.ContainsAny(secret, "\n") || strings.Contains(redacted, secret) || !utf8.ValidString(secret) {
			return
		}
		for name, write := range map[string]func(string) string{"JSON": writings["JSON"], "URL": writings["URL"], "base64": writings["base64"]} {
			letters, _ := newLevel(secret).lettersAndDigits()
			if len(letters) < 2*longSecret || len(text) > 1<<10 {
				continue
			}
			if got := Redact(text+" "+write(secret)+" "+text, secret); !strings.Contains(got, redacted) {
				t.Fatalf("%s of %q in %q: %q", name, secret, text, got)
			}
		}
	})
}

// A secret that begins with another leaves nothing of its rest.
func TestRedactOverlappingSecrets(t *testing.T) {
	for _, secrets := range []string{"acme-prod\nacme-prod-Zk39fLq8812\n", "acme-prod-Zk39fLq8812\nacme-prod\n"} {
		if got := Redact("invalid key acme-prod-Zk39fLq8812", secrets); strings.Contains(got, "Zk39") || strings.Contains(got, "8812") {
			t.Error(got)
		}
	}
}
