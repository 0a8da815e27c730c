package native

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"pitot/internal/sim"
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/lm"
)

// Models that generate nothing: each text is one prompt for the engine, and the step that
// it is done with is all that it takes.

// VLLMPooling is vLLM with a pooling model: /v1/embeddings and /v1/rerank, as version 0.32
// answers there.
func VLLMPooling(s dialect.Served, base dialect.Dialect) dialect.Dialect {
	p := pooling{s}
	rerank := dialect.Route{Methods: post, Generate: p.beginRerank}
	own := []dialect.Route{{Path: "/v1/embeddings", Methods: post, Generate: p.beginEmbeddings}}
	for _, path := range []string{"/v1/rerank", "/v2/rerank", "/rerank"} {
		rerank.Path = path
		own = append(own, rerank)
	}
	return &face{base, prependRoutes(base, own, "/v1/models", "/health", "/ping", "/version", "/load", "/metrics", "/tokenize", "/detokenize"), vllmError}
}

func vllmError(status int, message string) dialect.Reply {
	kind := "InternalServerError"
	switch status {
	case http.StatusBadRequest:
		kind = "BadRequestError"
	case http.StatusNotFound:
		kind = "NotFoundError"
	}
	return dialect.Reply{Status: status, Body: fmt.Appendf(nil, `{"error":{"message":%s,"type":"%s","param":null,"code":%d}}`, dialect.Marshal(message), kind, status)}
}

// pooling answers requests to such a model.
type pooling struct{ dialect.Served }

// usualDimensions are those of a vector of which no other number was asked for.
const usualDimensions = 384

// dimensionsMost bounds what may be asked for.
const dimensionsMost = 1 << 16

func (p *pooling) refuse(status int, format string, args ...any) (*dialect.Call, *dialect.Reply) {
	r := vllmError(status, fmt.Sprintf(format, args...))
	return nil, &r
}

// beginEmbeddings is OpenAI's route.
func (p *pooling) beginEmbeddings(req *dialect.Request) (*dialect.Call, *dialect.Reply) {
	var in struct {
		Model      string          `json:"model"`
		Input      json.RawMessage `json:"input"`
		Format     string          `json:"encoding_format"`
		Dimensions int             `json:"dimensions"`
	}
	if problem := decodeBody(req, &in); problem != "" {
		return p.refuse(http.StatusBadRequest, "%s", problem)
	}
	var texts list
	switch err := json.Unmarshal(in.Input, &texts); {
	case in.Model != "" && in.Model != p.Name:
		return p.refuse(http.StatusNotFound, "The model `%s` does not exist.", in.Model)
	case err != nil:
		return p.refuse(http.StatusBadRequest, "body.input: Input should be a valid string or a list of them")
	case len(texts) == 0:
		return p.refuse(http.StatusBadRequest, "You must pass at least one prompt")
	case in.Format != "" && in.Format != "float":
		return p.refuse(http.StatusBadRequest, "body.encoding_format: the mock answers with 'float' alone")
	case in.Dimensions < 0 || in.Dimensions > dimensionsMost:
		return p.refuse(http.StatusBadRequest, "body.dimensions: Input should be from 1 to %d", dimensionsMost)
	}
	return p.newCall(req, "", texts, func(b []byte, w *poolingWriter) []byte {
		b = fmt.Appendf(b, `{"id":"embd-%x","object":"list","created":%d,"model":%s,"data":[`, req.N, int64(p.Began), dialect.Marshal(p.Name))
		for i := range w.prompts {
			b = fmt.Appendf(b, `{"index":%d,"object":"embedding","embedding":`, i)
			b = append(w.appendVector(b, i, cmp.Or(in.Dimensions, usualDimensions)), "},"...)
		}
		return fmt.Appendf(b[:len(b)-1], `],"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":0,"prompt_tokens_details":null}}`, w.tokens, w.tokens)
	})
}

// beginRerank is Jina's and Cohere's route.
func (p *pooling) beginRerank(req *dialect.Request) (*dialect.Call, *dialect.Reply) {
	var in struct {
		Model     string  `json:"model"`
		Query     *string `json:"query"`
		Documents *list   `json:"documents"`
		Top       int     `json:"top_n"`
	}
	if problem := decodeBody(req, &in); problem != "" {
		return p.refuse(http.StatusBadRequest, "%s", problem)
	}
	switch {
	case in.Model != "" && in.Model != p.Name:
		return p.refuse(http.StatusNotFound, "The model `%s` does not exist.", in.Model)
	case in.Query == nil || in.Documents == nil || len(*in.Documents) == 0:
		return p.refuse(http.StatusBadRequest, "1 validation error:\n  {'type': 'missing', 'loc': 'body.documents', 'msg': 'Field required'}")
	}
	return p.newCall(req, *in.Query, *in.Documents, func(b []byte, w *poolingWriter) []byte {
		b = fmt.Appendf(b, `{"id":"score-%x","model":%s,"usage":{"prompt_tokens":%d,"total_tokens":%d},"results":[`, req.N, dialect.Marshal(p.Name), w.tokens, w.tokens)
		order := w.order()
		if in.Top > 0 {
			order = order[:min(in.Top, len(order))]
		}
		for _, i := range order {
			b = fmt.Appendf(b, `{"index":%d,"document":{"text":%s,"multi_modal":null},"relevance_score":%.9f},`, i, dialect.Marshal((*in.Documents)[i]), w.score(i))
		}
		return append(b[:len(b)-1], "]}"...)
	})
}

// newCall is a prompt for each text, behind the query where there is one.
func (p *pooling) newCall(req *dialect.Request, query string, texts []string, whole func([]byte, *poolingWriter) []byte) (*dialect.Call, *dialect.Reply) {
	w := &poolingWriter{whole: whole}
	call := &dialect.Call{ID: p.Name + "-" + strconv.FormatInt(req.N, 10), Batch: 1, Writer: w}
	for _, text := range texts {
		if query != "" {
			text = query + " " + text
		}
		prompt := p.Model.TextPrompt([]byte(text), 0)
		if prompt.Tokens > p.MaxModelLen {
			return p.refuse(http.StatusBadRequest, "This model's maximum context length is %d tokens. However, your request has %d input tokens. Please reduce the length of the input.", p.MaxModelLen, prompt.Tokens)
		}
		plan := lm.Plan{Limit: 1, Output: 1}
		answer := p.Model.Begin(&plan, req.N)
		w.prompts = append(w.prompts, prompt)
		w.tokens += prompt.Tokens
		call.Jobs = append(call.Jobs, sim.Job{Prompt: max(prompt.Tokens, 1), Output: 1, Limit: 1, Content: answer.Content(&prompt, 0)})
	}
	call.Prompt = w.tokens
	return call, nil
}

// poolingWriter writes an answer, which comes as a whole.
type poolingWriter struct {
	dialect.Writer // none: nothing is streamed
	prompts        []lm.Prompt
	tokens         int // of all
	whole          func([]byte, *poolingWriter) []byte
}

// pseudoRandom returns a number derived from a text and a position.
func (w *poolingWriter) pseudoRandom(text, at int) float64 {
	h := sim.Mix(uint64(lm.FixedFirst(w.prompts[text:text+1], 0)) + uint64(at))
	return float64(h>>11) / (1 << 53)
}

// appendVector appends that of a text.
func (w *poolingWriter) appendVector(b []byte, text, dimensions int) []byte {
	b = append(b, '[')
	for i := range dimensions {
		b = append(strconv.AppendFloat(b, w.pseudoRandom(text, i)/4-0.125, 'f', 9, 64), ',')
	}
	return append(b[:len(b)-1], ']')
}

func (w *poolingWriter) score(text int) float64 { return w.pseudoRandom(text, 0) }

// order lists the texts, the highest score first.
func (w *poolingWriter) order() []int {
	order := make([]int, len(w.prompts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(w.score(j), w.score(i)) })
	return order
}

// Whole implements [dialect.Writer].
func (w *poolingWriter) Whole(b []byte, _ []dialect.Part, _ dialect.Counts) []byte {
	return w.whole(b, w)
}

// Finish implements [dialect.Writer].
func (w *poolingWriter) Finish(_ int, finish string) string { return finish }
