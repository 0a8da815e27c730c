package target

import (
	"testing"

	"pitot/internal/client"
	"pitot/internal/config"
)

// A host's API is taken where the URL has no path, or the one of that API.
func TestAPIOfAHost(t *testing.T) {
	const gemini = "https://generativelanguage.googleapis.com"
	for spec, want := range map[string]string{
		gemini: "gemini", gemini + "/v1beta": "gemini", gemini + "/v1beta/openai": "openai-chat",
		"https://api.anthropic.com": "anthropic", "https://api.anthropic.com/v1": "anthropic", "https://api.anthropic.com/proxy": "openai-chat",
	} {
		e, route, err := client.ParseTarget(spec)
		if err != nil {
			t.Fatal(err)
		}
		target := &Target{Dialer: &client.Dialer{Endpoint: e}}
		a, err := target.chooseAPI(&config.Target{}, route)
		if err != nil || a.Name() != want || !target.apiGuessed || want == "gemini" && target.Dialer.Endpoint.Base != "" {
			t.Errorf("%s: %v, guessed %v, base %q, %v", spec, a, target.apiGuessed, target.Dialer.Endpoint.Base, err)
		}
	}
}
