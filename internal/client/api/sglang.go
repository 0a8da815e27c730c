package api

import (
	"pitot/internal/say"
	"pitot/internal/workload"
)

// SGLang is SGLang's own /generate: a bare prompt, and with each event the usage so
// far. Its texts and token ids go on from event to event, each event repeating those
// before it, unless the server is started to send what is new alone.
var SGLang API = &dialect{
	name: "sglang", routes: []string{"/generate"}, bare: true, models: "/v1/models",
	key: "SGLANG_API_KEY", maxField: "max_new_tokens",
	alias:   map[string]string{"sglang": "sglang"},
	sign:    Sign{Path: "/get_model_info", Field: "model_path", Of: "SGLang"},
	decoder: func() Decoder { return newSGLangDecoder() },
	prepare: prepareSGLang, concede: concedeSampling, asked: sglangAsked, body: sglangBody,
}

func prepareSGLang(_ string, o *Options) error {
	o.IgnoreEOS = true
	return oneAnswer(o.Body)
}

// oneAnswer refuses a body that asks for several answers: their texts come in turn,
// each repeating those before it of its own answer.
func oneAnswer(body []byte) error {
	if n := (overlay{innerObject(body, "sampling_params")}).number(1, "n"); n > 1 {
		return say.Errorf("a request of SGLang's /generate is measured with one answer").WithHint("leave n out of sampling_params, or ask by --api openai-chat or openai-completions with --n")
	}
	return nil
}

func sglangAsked(r *workload.Request, o Options) Asked {
	return Asked{Tokens: overlays(r, o, "sampling_params").number(int64(r.Output), "max_new_tokens")}
}

func sglangBody(dst []byte, r *workload.Request, o Options) ([]byte, error) {
	if err := oneAnswer(r.Body); err != nil {
		return nil, err
	}
	start := len(dst)
	if o.IDs {
		var err error
		if dst, err = appendIDs(append(dst, `{"input_ids":`...), r, o); err != nil {
			return nil, err
		}
	} else {
		dst = appendPrompt(append(dst, `{"text":`...), r, o)
	}
	dst = append(dst, `,"sampling_params":{`...)
	dst = o.appendLimit(dst, r, "max_new_tokens", `"ignore_eos":true`)
	dst = append(dst, '}')
	dst = appendIf(dst, o.Stream, `,"stream":true`)
	return withExtras(append(dst, '}'), start, r, o)
}

// appendLimit writes the temperature, the limit of tokens under a name and what holds
// the engine to it, with commas between them.
func (o *Options) appendLimit(dst []byte, r *workload.Request, name, forced string) []byte {
	start := len(dst)
	dst = appendIf(dst, !o.NoTemperature, `"temperature":0`)
	if r.Output > 0 {
		dst = appendIf(dst, len(dst) > start, ",")
		dst = appendNumber(append(append(dst, '"'), name...), `":`, r.Output)
		if r.Exact && o.IgnoreEOS && forced != "" {
			dst = append(append(dst, ','), forced...)
		}
	}
	return dst
}

// sglangDecoder reads events and whole answers.
type sglangDecoder struct{ repeating }

func newSGLangDecoder() *sglangDecoder {
	x := &sglangDecoder{}
	x.fill, x.read = x.fillHoles, x.readEvent
	return x
}

// fillHoles reads an event that is like others but for what is in its holes.
func (x *sglangDecoder) fillHoles(in *filling, d *Delta) {
	d.Usage = in.usage
	x.takeText(x.newsOf(in.text, in.known, in.items, d), in.text, true, d)
	x.withoutChoice(d)
}

// withoutChoice takes back that an event had an empty choice, where it had none: one that
// has neither text nor usage.
func (x *sglangDecoder) withoutChoice(d *Delta) {
	d.Empty = d.Empty && d.Usage != Unsaid
}

func (x *sglangDecoder) readEvent(d *Delta, stream bool) error {
	s := &x.s
	var raw []byte
	ids := int32(0)
	ok := s.eachKey(func(key []byte) (ok bool) {
		switch string(key) {
		case "text":
			if ok = x.readWord(&raw); ok && raw != nil {
				x.noteText(&x.reading, raw)
			}
			return ok
		case "output_ids":
			return x.readList(&x.reading, &ids)
		case "meta_info":
			return x.eachField(func(key []byte) bool { return x.readMetaField(key, d) })
		case "error":
			return s.null() || x.readFault(d)
		}
		return s.skipValue()
	})
	all := raw
	if ok && stream && d.Fault == nil {
		raw = x.newsOf(raw, 0, ids, d)
	}
	if ok {
		x.takeText(raw, all, stream, d)
		x.withoutChoice(d)
	}
	return x.endEvent(ok, d)
}

// newsOf gives what is new of an event's text. That texts repeat those before them shows
// where the event has as many ids as tokens have come in all, or, without ids, in the
// texts. same is how many bytes are known to be the last text's.
func (x *sglangDecoder) newsOf(raw []byte, same int, ids int32, d *Delta) []byte {
	done := d.Usage.Completion
	switch {
	case x.decided || len(x.last) == 0:
	case ids > 0 && done > x.soFar:
		x.decided, x.separate = true, ids < done
	case ids == 0:
		x.compare(raw)
	}
	if done > 0 {
		x.soFar = done
	}
	return x.newText(raw, same)
}

// readMetaField reads a field of meta_info.
func (x *sglangDecoder) readMetaField(key []byte, d *Delta) bool {
	s := &x.s
	switch string(key) {
	case "prompt_tokens":
		return s.countNumber(&d.Usage.Prompt)
	case "completion_tokens":
		return x.readCount(countedCompletion, &d.Usage.Completion)
	case "cached_tokens":
		return s.countNumber(&d.Usage.Cached)
	case "reasoning_tokens":
		return s.countNumber(&d.Usage.Reasoning)
	case "finish_reason":
		if s.null() {
			return true
		}
		if s.peek() == '"' {
			reason := ""
			ok := x.readReason(&reason)
			if reason != "" {
				d.endChoice(0, reason)
			}
			return ok
		}
		var kind, message []byte
		ok := x.eachField(func(key []byte) bool {
			switch string(key) {
			case "type":
				return x.readWord(&kind)
			case "message":
				return x.readWord(&message)
			}
			return s.skipValue()
		})
		d.endChoice(0, finishReason(kind))
		if d.Broken != "" && len(message) > 0 {
			d.Fault = &Fault{Message: unquote(message), Type: d.Broken}
		}
		return ok
	}
	return s.skipValue()
}
