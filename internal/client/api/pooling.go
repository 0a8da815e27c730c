package api

import (
	"cmp"

	"pitot/internal/results/record"
	"pitot/internal/say"
	"pitot/internal/workload"
)

// Pooling is an [API] of models that generate nothing: a request has texts, one a
// message, and its answer a vector or a score of each. A result is what a choice is
// elsewhere, so a row's Choices are the texts that were answered.
type Pooling interface {
	API
	// Paired says that the texts are held against a query, which is the first message.
	Paired() bool
}

// GeneratesTokens says whether the answers of an API have tokens of their own.
func GeneratesTokens(a API) bool {
	_, pooling := a.(Pooling)
	return !pooling
}

// poolingDialect is a dialect of such models.
type poolingDialect struct {
	dialect
	paired bool
}

// Paired implements [Pooling].
func (d *poolingDialect) Paired() bool { return d.paired }

// newPooling adds what these APIs have: no template is laid over a text, and servers of generating
// models have the same list of models, so that it is no sign.
func newPooling(d dialect, paired bool) *poolingDialect {
	d.bare, d.models, d.key = true, cmp.Or(d.models, "/v1/models"), cmp.Or(d.key, "OPENAI_API_KEY")
	d.decoder = func() Decoder { return new(poolingDecoder) }
	d.headers = func(key string) []Header { return requestHeaders("application/json", bearer(key)) }
	d.prepare = func(_ string, o *Options) error { // nothing is streamed, held to a length or drawn
		o.Stream, o.NoTemperature = false, true
		return nil
	}
	return &poolingDialect{d, paired}
}

// unaskedQuery stands where a request has no query: while a server is asked what it
// counts for a text.
const unaskedQuery = "a"

// queryAndTexts gives the query and the texts of a request.
func queryAndTexts(r *workload.Request) (query, texts []workload.Message) {
	if len(r.Messages) < 2 {
		return nil, r.Messages
	}
	return r.Messages[:1], r.Messages[1:]
}

// appendTexts writes a list of texts.
func appendTexts(dst []byte, texts []workload.Message, o Options) []byte {
	dst = append(dst, '[')
	for i := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendPrompt(dst, &workload.Request{Messages: texts[i : i+1]}, o)
	}
	return append(dst, ']')
}

// appendPair writes a query and the texts that are held against it.
func appendPair(dst []byte, r *workload.Request, texts string, o Options) []byte {
	query, all := queryAndTexts(r)
	dst = append(dst, `"query":`...)
	if query == nil {
		dst = append(dst, `"`+unaskedQuery+`"`...)
	} else {
		dst = appendPrompt(dst, &workload.Request{Messages: query}, o)
	}
	dst = append(append(append(dst, `,"`...), texts...), `":`...)
	return appendTexts(dst, all, o)
}

// Embeddings is OpenAI's embeddings, as vLLM, TEI, Infinity, llama.cpp and hosted
// services serve them.
var Embeddings API = newPooling(dialect{
	name: "openai-embeddings", routes: []string{"/v1/embeddings"},
	alias: map[string]string{"vllm": "openai-embeddings", "aiperf": "embeddings"},
	asked: allTexts, body: embeddingsBody,
}, false)

// Rerank is the API of Jina and Cohere that scores texts by a query, as vLLM and
// Infinity have it.
var Rerank API = newPooling(dialect{
	name: "rerank", routes: []string{"/v1/rerank"},
	alias: map[string]string{"vllm": "vllm-rerank", "aiperf": "rankings"},
	asked: firstTexts, body: rerankBody,
}, true)

// TEIEmbed is the embeddings of Hugging Face's Text Embeddings Inference on its own
// route. Its answers tell no usage.
var TEIEmbed API = newPooling(dialect{
	name: "tei-embed", routes: []string{"/embed"}, models: "/info", key: "HF_TOKEN", list: teiInfo,
	alias: map[string]string{"aiperf": "hf_tei_embeddings"},
	asked: allTexts, body: teiEmbedBody,
}, false)

// TEIRerank is the scores of Text Embeddings Inference. Its answers tell no usage.
var TEIRerank API = newPooling(dialect{
	name: "tei-rerank", routes: []string{"/rerank"}, models: "/info", key: "HF_TOKEN", list: teiInfo,
	alias: map[string]string{"aiperf": "hf_tei_rankings"},
	asked: pairedTexts, body: teiRerankBody,
}, true)

func allTexts(r *workload.Request, _ Options) Asked { return Asked{Choices: int64(len(r.Messages))} }

func pairedTexts(r *workload.Request, _ Options) Asked {
	_, texts := queryAndTexts(r)
	return Asked{Choices: int64(len(texts))}
}

// firstTexts counts the texts of which the answer tells: top_n may ask for a few alone.
func firstTexts(r *workload.Request, o Options) Asked {
	a := pairedTexts(r, o)
	if top := overlays(r, o, "").number(a.Choices, "top_n"); top > 0 {
		a.Choices = min(a.Choices, top)
	}
	return a
}

func embeddingsBody(dst []byte, r *workload.Request, o Options) ([]byte, error) {
	start := len(dst)
	dst = appendModel(dst, o)
	dst = appendTexts(append(dst, `,"input":`...), r.Messages, o)
	return withExtras(append(dst, `,"encoding_format":"float"}`...), start, r, o)
}

func rerankBody(dst []byte, r *workload.Request, o Options) ([]byte, error) {
	start := len(dst)
	dst = append(appendModel(dst, o), ',')
	dst = appendPair(dst, r, "documents", o)
	return withExtras(append(dst, '}'), start, r, o)
}

func teiEmbedBody(dst []byte, r *workload.Request, o Options) ([]byte, error) {
	start := len(dst)
	dst = appendTexts(append(dst, `{"inputs":`...), r.Messages, o)
	return withExtras(append(dst, '}'), start, r, o)
}

func teiRerankBody(dst []byte, r *workload.Request, o Options) ([]byte, error) {
	start := len(dst)
	dst = appendPair(append(dst, '{'), r, "texts", o)
	return withExtras(append(dst, '}'), start, r, o)
}

// teiInfo reads what TEI tells of the one model that it has.
func teiInfo(body []byte) []Model { return infoModel(body, "tei", "max_input_length") }

// poolingDecoder reads the answers of all of them: a list of vectors (TEI), a list of
// scores with their index (TEI), or an object that has such a list as data
// (OpenAI) or as results (Jina, Cohere), and a usage.
type poolingDecoder struct {
	reading
	results int32
}

// Event implements [Decoder]: nothing is streamed.
func (x *poolingDecoder) Event(_, data []byte, d *Delta) error { return x.Whole(data, d) }

// Whole implements [Decoder].
func (x *poolingDecoder) Whole(data []byte, d *Delta) error {
	x.Reset()
	x.beginEvent(data)
	x.results = 0
	s := &x.s
	if s.peek() == '[' {
		ok := x.readResults(d)
		return x.endEvent(ok, d)
	}
	total := int32(record.Unset)
	ok := s.eachKey(func(key []byte) bool {
		switch string(key) {
		case "data", "results":
			if s.peek() != '[' {
				return s.skipValue()
			}
			return x.readResults(d)
		case "usage":
			return x.eachField(func(key []byte) bool {
				switch string(key) {
				case "prompt_tokens":
					return s.countNumber(&d.Usage.Prompt)
				case "total_tokens":
					return s.countNumber(&total)
				}
				return s.skipValue()
			})
		case "meta": // Cohere's
			return x.fieldIn("tokens", func() bool { return x.countIn("input_tokens", &total) })
		case "error":
			return s.null() || x.readFault(d)
		case "detail", "message": // Jina's, Cohere's
			if s.peek() != '"' {
				return s.skipValue()
			}
			return x.readFault(d)
		}
		return s.skipValue()
	})
	if d.Usage.Prompt == record.Unset { // all tokens are those of the texts
		d.Usage.Prompt = total
	}
	return x.endEvent(ok, d)
}

// readResults reads the results.
func (x *poolingDecoder) readResults(d *Delta) bool {
	s := &x.s
	d.Ended = true
	return s.eachElement(func() bool {
		s.skipSpace()
		from, first, index := s.i, len(d.Parts), x.results
		x.results++
		ok := x.countIn("index", &index)
		if !ok || !x.addText(d, record.Answer, int32(s.i-from)) {
			return false
		}
		if index < 0 { // no such number: each is one of its own
			index = x.results - 1
		}
		x.assignChoice(d, first, index, 0)
		return true
	})
}

// infoModel reads the /info of Hugging Face's servers, of the one model that they have.
func infoModel(body []byte, engine, longest string) []Model {
	name := unquote(stringField(body, "model_id"))
	if name == "" {
		return nil
	}
	context := int32(0)
	r := reading{s: scanner{b: body}}
	r.countIn(longest, &context)
	return []Model{{Name: name, Engine: engine, Context: max(int(context), 0)}}
}

// ResultShortage says what an answer of a pooling API lacks, "" where each text has its
// result.
func ResultShortage(results, asked int64) string {
	if results >= asked {
		return ""
	}
	return say.Plural(int(results), "result") + " for " + say.Plural(int(asked), "input")
}
