package api

import (
	"strconv"

	"pitot/internal/results/record"
	"pitot/internal/workload"
)

// LlamaCpp is llama.cpp's own /completion: a bare prompt, and with each event the
// tokens so far.
var LlamaCpp API = &dialect{
	name: "llamacpp", routes: []string{"/completion"}, bare: true, models: "/v1/models",
	key: "LLAMA_API_KEY", maxField: "n_predict",
	sign:    Sign{Path: "/props", Field: "default_generation_settings", Of: "llama.cpp's server"},
	decoder: func() Decoder { return newFast(new(llamacppDecoder)) },
	prepare: func(_ string, o *Options) error { o.IgnoreEOS = true; return nil },
	concede: concedeSampling, asked: llamacppAsked, body: llamacppBody,
}

func llamacppAsked(r *workload.Request, o Options) Asked {
	over := overlays(r, o, "")
	return Asked{
		Tokens:     over.number(int64(r.Output), "n_predict", "max_tokens"),
		Candidates: over.number(0, "n_probs"),
	}
}

func llamacppBody(dst []byte, r *workload.Request, o Options) ([]byte, error) {
	start := len(dst)
	dst = append(appendPrompt(append(dst, `{"prompt":`...), r, o), ',')
	at := len(dst)
	dst = o.appendLimit(dst, r, "n_predict", `"ignore_eos":true`)
	dst = appendIf(dst, len(dst) > at, ",")
	dst = strconv.AppendBool(append(dst, `"stream":`...), o.Stream)
	return withExtras(append(dst, '}'), start, r, o)
}

// llamacppDecoder reads events, of which a whole answer is the last.
type llamacppDecoder struct{ reading }

func (x *llamacppDecoder) readEvent(data []byte, d *Delta) error { return x.Whole(data, d) }

// Whole implements [Decoder].
func (x *llamacppDecoder) Whole(data []byte, d *Delta) error {
	x.beginEvent(data)
	s := &x.s
	tokens, index := int32(0), int32(0)
	prompt, cached, ended := int32(record.Unset), int32(record.Unset), false
	reason := ""
	ok := s.eachKey(func(key []byte) bool {
		switch string(key) {
		case "content":
			return x.readText(d, record.Answer)
		case "tokens":
			return x.countElements(&tokens)
		case "index":
			return s.countNumber(&index)
		case "stop":
			ended = s.peek() == 't'
		case "stop_type":
			ok := x.readReason(&reason)
			switch reason {
			case "limit":
				reason = "length"
			case "eos", "word":
				reason = "stop"
			}
			return ok
		case "tokens_predicted":
			return x.readCount(countedCompletion, &d.Usage.Completion)
		case "tokens_evaluated":
			return s.countNumber(&d.Usage.Prompt)
		case "timings":
			return x.eachField(func(key []byte) bool {
				switch string(key) {
				case "prompt_n": // those that were computed
					return s.countNumber(&prompt)
				case "cache_n":
					return s.countNumber(&cached)
				}
				return s.skipValue()
			})
		case "error":
			return s.null() || x.readFault(d)
		}
		return s.skipValue()
	})
	if ended {
		d.endChoice(0, reason)
	}
	if !d.Ended {
	} else if cached >= 0 {
		d.Usage.Cached = cached
	} else if p := d.Usage.Prompt; prompt >= 0 && p >= prompt { // older servers do not say it
		d.Usage.Cached = p - prompt
	}
	if index == Impossible {
		index = 0
	}
	x.assignChoice(d, 0, index, tokens)
	return x.endEvent(ok, d)
}
