package target

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"pitot/internal/client"
	"pitot/internal/say"
	"pitot/internal/workload"
	"pitot/internal/workload/token"
)

// Found holds the results of opening a target, for other processes that measure it at the same
// time. One process probes the server, and all send the same requests. Found contains no key and no
// header values, because each process reads its own.
type Found struct {
	Kind      string            `json:"kind"`
	URL       string            `json:"url"` // of its requests
	API       string            `json:"api"`
	Bearer    bool              `json:"bearer"` // the key is sent as Authorization, where the API has another header
	Engine    string            `json:"engine"`
	Options   json.RawMessage   `json:"options"` // of requests, but for the vocabulary, the body and what encodes text, which are the plan's
	Words     []string          `json:"words"`   // the vocabulary, where it is not the usual one
	First     []string          `json:"first_words"`
	Server    map[string]string `json:"server"`
	Residence time.Duration     `json:"residence_ns"`

	Calibration workload.Calibration `json:"calibration"`
	KV          KVCache              `json:"kv"`
}

// Found tells it of a target that is open.
func (t *Target) Found() (Found, error) {
	o := t.Options
	o.Vocab, o.Body = nil, nil
	options, err := json.Marshal(o)
	if err != nil {
		return Found{}, fmt.Errorf("describe target: %w", err)
	}
	f := Found{
		Kind: t.Kind, URL: t.URL, API: t.API.Name(), Engine: t.Server["engine"], Options: options,
		Server: redactedFacts(t), Residence: t.Residence, Calibration: t.Calibration, KV: t.KV,
		Bearer: t.bearer,
	}
	if v := t.Options.Vocab; v != nil && v.Name() != token.Universal().Name() {
		f.Words, f.First = slices.Collect(v.Words()), slices.Collect(v.FirstWords())
	}
	return f, nil
}

// redactedFacts are those the server told of itself; it may repeat what it was sent.
func redactedFacts(t *Target) map[string]string {
	facts := map[string]string{}
	for name, value := range t.Server {
		facts[name] = client.Redact(value, t.Secret)
	}
	return facts
}

// OpenFound opens a target that another process has asked already: nothing is sent to it
// before the load.
func OpenFound(ctx context.Context, p Wanted, f *Found) (*Target, error) {
	spec := *p.Target
	spec.Spec, spec.API, spec.NoProbe, spec.Wait = f.URL, f.API, true, 0
	p.Target = &spec
	t, err := openKind(ctx, p, f.Kind, nil)
	if err != nil {
		return nil, err
	}
	if f.Bearer {
		t.bearer = true
		t.setHeaders()
	}
	body, vocabulary := t.Options.Body, t.Options.Vocab
	if err := json.Unmarshal(f.Options, &t.Options); err != nil {
		t.Close()
		return nil, fmt.Errorf("read what was found out of the target: %w", err)
	}
	t.Options.Body, t.Options.Vocab = body, vocabulary
	if f.Words != nil {
		if t.Options.Vocab, err = token.Universal().RestrictTo(memberOf(f.Words), memberOf(f.First)); err != nil {
			t.Close()
			return nil, fmt.Errorf("read what was found out of the target: %w", err)
		}
	}
	t.Server, t.Residence, t.Calibration, t.KV = f.Server, f.Residence, f.Calibration, f.KV
	if t.URL != f.URL {
		t.Close()
		return nil, say.Errorf("the route %s becomes %s here", f.URL, t.URL).WithHint("use the same pitot everywhere")
	}
	return t, nil
}

func memberOf(words []string) func(string) bool {
	set := map[string]bool{}
	for _, w := range words {
		set[w] = true
	}
	return func(w string) bool { return set[w] }
}
