package api

import (
	"pitot/internal/results/record"
	"pitot/internal/workload"
)

// TGI is Text Generation Inference's own /generate_stream: a bare prompt, and an event
// for each token.
//
// Not known from it: tokens of the prompt that were cached. It cannot be held to a
// length: answers may end early.
var TGI API = &dialect{
	name: "tgi", routes: []string{"/generate_stream"}, bare: true, models: "/info", key: "HF_TOKEN",
	maxField: "max_new_tokens",
	alias:    map[string]string{"aiperf": "huggingface_generate"},
	sign:     Sign{Path: "/info", Field: "model_id", Of: "Text Generation Inference"},
	decoder:  func() Decoder { return newFast(new(tgiDecoder)) },
	list:     func(body []byte) []Model { return infoModel(body, "tgi", "max_total_tokens") },
	prepare:  prepareTGI, asked: tgiAsked, body: tgiBody,
}

func prepareTGI(_ string, o *Options) error {
	if !o.Stream {
		o.Route = "/generate" // which SGLang has too, so no URL means it
	}
	return nil
}

func tgiAsked(r *workload.Request, o Options) Asked {
	over := overlays(r, o, "parameters")
	return Asked{
		Tokens:     over.number(int64(r.Output), "max_new_tokens"),
		Candidates: over.number(0, "top_n_tokens"),
	}
}

// tgiBody writes a request. Without sampling it takes the likeliest token; a temperature
// of 0 it refuses.
func tgiBody(dst []byte, r *workload.Request, o Options) ([]byte, error) {
	start := len(dst)
	dst = appendPrompt(append(dst, `{"inputs":`...), r, o)
	o.NoTemperature = true
	dst = append(dst, `,"parameters":{`...)
	at := len(dst)
	if dst = o.appendLimit(dst, r, "max_new_tokens", ""); len(dst) > at {
		dst = append(dst, ',')
	}
	dst = append(dst, `"do_sample":false,"details":true}`...)
	return withExtras(append(dst, '}'), start, r, o)
}

// tgiDecoder reads events and whole answers.
type tgiDecoder struct {
	reading
	silent int32 // tokens whose text is part of the next one's
}

// Reset implements [Decoder].
func (x *tgiDecoder) Reset() {
	x.reading.Reset()
	x.silent = 0
}

// readEvent implements [holeReader].
func (x *tgiDecoder) readEvent(data []byte, d *Delta) error {
	return x.readAnswer(d, false)
}

// Whole implements [Decoder]: an object, or a list with one in it.
func (x *tgiDecoder) Whole(data []byte, d *Delta) error {
	x.Reset()
	x.beginEvent(data)
	return x.readAnswer(d, true)
}

func (x *tgiDecoder) readAnswer(d *Delta, whole bool) error {
	s := &x.s
	read := func() bool {
		return s.eachKey(func(key []byte) bool {
			switch string(key) {
			case "index":
				return x.skipVarying()
			case "token":
				return s.null() || x.readToken(d)
			case "generated_text":
				if s.null() {
					return true
				}
				d.Ended = true
				if whole {
					return x.readText(d, record.Answer)
				}
				return s.skipValue()
			case "details":
				return x.readDetails(d)
			case "error":
				return s.null() || x.readFault(d)
			}
			return s.skipValue()
		})
	}
	ok := false
	if s.peek() == '[' {
		ok = s.eachElement(read)
	} else {
		ok = read()
	}
	tokens := int32(0)
	if len(d.Parts) > 0 && !whole {
		tokens, x.silent = 1+x.silent, 0
	}
	x.assignChoice(d, 0, 0, tokens)
	return x.endEvent(ok, d)
}

// readToken reads a token; a special one, such as the end of the answer, is no text.
func (x *tgiDecoder) readToken(d *Delta) bool {
	s := &x.s
	special := false
	parts, kept, spelt := len(d.Parts), len(d.Text), len(d.Spelt)
	ok := x.eachField(func(key []byte) bool {
		switch string(key) {
		case "text":
			return x.readText(d, record.Answer)
		case "id", "logprob":
			return x.skipVarying()
		case "special":
			special = s.peek() == 't'
		}
		return s.skipValue()
	})
	if special {
		d.Parts, d.Text, d.Spelt = d.Parts[:parts], d.Text[:kept], d.Spelt[:spelt]
	} else if len(d.Parts) == parts {
		x.silent++
	}
	return ok
}

// readDetails reads how an answer ended, and its counts.
func (x *tgiDecoder) readDetails(d *Delta) bool {
	s := &x.s
	return x.eachField(func(key []byte) bool {
		switch string(key) {
		case "finish_reason":
			reason := ""
			ok := x.readReason(&reason)
			if reason == "eos_token" || reason == "stop_sequence" {
				reason = "stop"
			}
			if reason != "" {
				d.endChoice(0, reason)
			}
			return ok
		case "generated_tokens":
			return s.countNumber(&d.Usage.Completion)
		case "input_length":
			return s.countNumber(&d.Usage.Prompt)
		case "prefill":
			// It is a list of the prompt's tokens where they were asked for.
			n := int32(0)
			ok := x.countElements(&n)
			if n > 0 && d.Usage.Prompt == record.Unset {
				d.Usage.Prompt = n
			}
			return ok
		}
		return s.skipValue()
	})
}

// innerObject is an object that stands in another under a name, nil where there is none.
func innerObject(body []byte, name string) []byte {
	if body == nil {
		return nil
	}
	r, found := reading{s: scanner{b: body}}, []byte(nil)
	r.fieldIn(name, func() bool {
		value, ok := r.s.rawValue()
		if ok && isObject(value) {
			found = value
		}
		return ok
	})
	return found
}
