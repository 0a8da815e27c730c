package native

import (
	"fmt"
	"net/http"

	"pitot/internal/sim/serve/dialect"
)

// GenerateRoute is SGLang's own route, /generate: a prompt of text or of token ids.
func GenerateRoute(s dialect.Served) dialect.Route {
	return dialect.Route{Path: "/generate", Methods: post, Generate: func(req *dialect.Request) (*dialect.Call, *dialect.Reply) {
		var in struct {
			Text   *string  `json:"text"`
			IDs    []uint32 `json:"input_ids"`
			Stream bool     `json:"stream"`
			ID     string   `json:"rid"`
			Params struct {
				Max         int      `json:"max_new_tokens"`
				Temperature *float64 `json:"temperature"`
				Stop        list     `json:"stop"`
				IgnoreEOS   bool     `json:"ignore_eos"`
				Seed        *int64   `json:"sampling_seed"`
			} `json:"sampling_params"`
		}
		refuse := func(format string, args ...any) (*dialect.Call, *dialect.Reply) {
			r := sglangError(http.StatusBadRequest, fmt.Sprintf(format, args...))
			return nil, &r
		}
		if problem := decodeBody(req, &in); problem != "" {
			return refuse("%s (the mock takes one prompt a request)", problem)
		}
		a := asked{ids: in.IDs, stream: in.Stream, limit: in.Params.Max, stops: in.Params.Stop,
			temperature: in.Params.Temperature, seed: in.Params.Seed, ignoreEOS: in.Params.IgnoreEOS}
		switch {
		case in.Text != nil:
			a.text, a.ids = []byte(*in.Text), nil
		case len(in.IDs) == 0:
			return refuse("Either text, input_ids or input_embeds should be provided.")
		}
		for _, id := range a.ids {
			if int(id) >= s.Model.Size() {
				return refuse("The input_ids contain an id out of the vocabulary: %d", id)
			}
		}
		w, call, ok := beginCall(s, req, a)
		if !ok {
			return refuse("The input is longer than the model's context length (%d tokens).", s.MaxModelLen)
		}
		if call.ID = in.ID; call.ID == "" {
			call.ID = fmt.Sprintf("%032x", req.N)
		}
		call.Writer = &sglangWriter{answering: w, id: string(dialect.Marshal(call.ID))}
		return call, nil
	}}
}

// sglangError is an error of this route.
func sglangError(status int, message string) dialect.Reply {
	return dialect.JSON(status, map[string]any{"error": map[string]string{"message": message}})
}

// sglangWriter writes an answer of /generate: each event has the text and the ids of
// all before it.
type sglangWriter struct {
	*answering
	id  string // as JSON
	all []byte // the text so far
	ids []byte // and the ids of its tokens
}

// Tokens implements [dialect.Writer].
func (w *sglangWriter) Tokens(b []byte, _, from, to int, finish string) ([]byte, bool) {
	w.all, w.ids = w.appendText(w.all, from, to, finish != ""), w.appendIDs(w.ids, from, to)
	return append(w.appendState(append(b, "data: "...), finish), "\n\n"...), true
}

// appendState appends the answer as it is.
func (w *sglangWriter) appendState(b []byte, finish string) []byte {
	why := "null"
	switch {
	case finish == "length":
		why = fmt.Sprintf(`{"type":"length","length":%d}`, w.output)
	case finish != "" && w.answer.Stop != "":
		why = fmt.Sprintf(`{"type":"stop","matched":%s}`, dialect.Marshal(w.answer.Stop))
	case finish != "":
		why = `{"type":"stop","matched":2}`
	}
	return fmt.Appendf(b, `{"text":"%s","output_ids":[%s],"meta_info":{"id":%s,"finish_reason":%s,"prompt_tokens":%d,"weight_version":"default","total_retractions":0,"completion_tokens":%d,"cached_tokens":%d}}`,
		w.all, w.ids, w.id, why, w.prompt.Tokens, w.output, w.cached)
}

// Done implements [dialect.Writer].
func (w *sglangWriter) Done(b []byte) []byte { return append(b, "data: [DONE]\n\n"...) }

// Error implements [dialect.Writer].
func (w *sglangWriter) Error(b []byte) []byte {
	return append(b, `data: {"error":{"message":"the engine failed"}}`+"\n\n"...)
}

// Malformed implements [dialect.Writer].
func (w *sglangWriter) Malformed(b []byte) []byte { return append(b, `data: {"text":"a`+"\n\n"...) }

// Whole implements [dialect.Writer].
func (w *sglangWriter) Whole(b []byte, parts []dialect.Part, n dialect.Counts) []byte {
	w.all, w.ids, w.cached = w.appendText(nil, 0, parts[0].Tokens, true), w.appendIDs(nil, 0, parts[0].Tokens), n.Cached
	return w.appendState(b, parts[0].Finish)
}
