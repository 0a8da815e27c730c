package target

import (
	"context"
	"fmt"

	"pitot/internal/client/api"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// found is an API that a server turned out to have.
type found struct {
	api  api.API
	sign api.Sign
}

// describeEvidence says by what the server shows that it has the API.
func (f found) describeEvidence() string { return f.sign.Path + " answers as that of " + f.sign.Of }

// hasAPISign says whether the server bears the sign of an API.
func (t *Target) hasAPISign(ctx context.Context, a api.API) bool {
	sign := a.Sign()
	if sign.Path == "" {
		return false
	}
	answer, err := t.fetch(ctx, "GET", t.Dialer.Endpoint.Base+sign.Path, nil)
	return err == nil && sign.IsIn(answer.Status, answer.Body)
}

// detectAPI finds out which API a server has, by what it answers where servers say what
// they are; false where none of them is known. Of one that has OpenAI's routes beside its own
// that is its own.
func (t *Target) detectAPI(ctx context.Context) (f found, ok bool) {
	asked := map[string]bool{}
	for _, a := range api.All() {
		sign := a.Sign()
		if asked[sign.Path] { // two APIs of one server have one sign
			continue
		}
		asked[sign.Path] = true
		if !t.hasAPISign(ctx, a) {
			continue
		}
		f, ok = found{a, sign}, true
		if a != api.Default() {
			break
		}
	}
	return f, ok
}

// changeAPI takes the API that the server has in place of one that was only guessed, and
// says so; false where it has none that is known, or that one.
func (t *Target) changeAPI(ctx context.Context) (bool, error) {
	if !t.apiGuessed {
		return false, nil
	}
	f, ok := t.detectAPI(ctx)
	if !ok || f.api == t.API {
		return false, nil
	}
	t.apiGuessed = false
	if err := t.useAPI(f.api, ""); err != nil {
		return false, err
	}
	t.noteAdaptation(result.Adaptation{Kind: result.OtherAPI, Value: f.api.Name(), Why: result.Reason{Code: result.RouteAnswersAs, Quote: f.sign.Path}})
	return true, nil
}

// wrongAPI says that the server does not have the API that the user named, and which it
// has, where an error of a class may mean that; nil where it is not known to be so.
func (t *Target) wrongAPI(ctx context.Context, class string) error {
	missing := class == record.ErrNotFound
	if t.apiGuessed || !missing && class != record.ErrBadRequest && class != record.ErrMalformed {
		return nil
	}
	if t.API.Sign().Path == "" && !missing || t.hasAPISign(ctx, t.API) {
		return nil
	}
	f, ok := t.detectAPI(ctx)
	if !ok || f.api == t.API {
		return nil
	}
	if !api.GeneratesTokens(t.API) && api.GeneratesTokens(f.api) { // its signs are those of a server of generated text
		switch t.API {
		case api.TEIEmbed:
			f.api = api.Embeddings
		case api.TEIRerank:
			f.api = api.Rerank
		}
	}
	return &Error{
		Msg:  fmt.Sprintf("the server does not have %s at %s", t.API.Name(), t.URL),
		Hint: fmt.Sprintf("%s: use --api %s", f.describeEvidence(), f.api.Name()),
	}
}
