package api

import (
	"strconv"

	"pitot/internal/data/result"
	"pitot/internal/workload"
)

// Triton is Triton's generate extension, as its backends for TensorRT-LLM and vLLM have
// it: a bare prompt, and events with text.
//
// It tells no usage, no finish reason and no end: a stream ends with the body of the
// answer, and how many tokens it had is not known. It cannot be held to a length.
type Triton struct{}

// Name implements [API].
func (Triton) Name() string          { return "triton" }
func (Triton) Messages(Options) bool { return false }
func (Triton) Models() string        { return "" }
func (Triton) KeyVariable() string   { return "TRITON_API_KEY" }
func (Triton) Framing() Framing      { return EventStream }
func (Triton) Decoder() Decoder      { return newTritonDecoder() }
func (Triton) Alias(string) string   { return "" }
func (Triton) Routes() []string {
	return []string{"/v2/models/{model}/generate_stream", "/v2/models/{model}/generate"}
}

// Sign implements [API].
func (Triton) Sign() Sign { return Sign{Path: "/v2", Field: "extensions", Of: "Triton"} }

// List implements [API]: it has no list.
func (Triton) List([]byte) []Model { return nil }

// Headers implements [API].
func (Triton) Headers(key string) []Header { return Chat{}.Headers(key) }

// Prepare implements [API].
func (a Triton) Prepare(_ string, o *Options) error {
	o.MaxField = "max_tokens"
	if o.Route = a.Routes()[0]; !o.Stream {
		o.Route = a.Routes()[1]
	}
	return nil
}

// Fault implements [API].
func (Triton) Fault(body []byte) string { return faultOf(newTritonDecoder(), body) }

// Concede implements [API].
func (Triton) Concede(refusal string, o *Options) result.Adaptation {
	return concedeSampling(refusal, o)
}

// Asked implements [API].
func (Triton) Asked(r *workload.Request, o Options) Asked {
	return Asked{Tokens: overlays(r, o, "").number(int64(r.Output), "max_tokens")}
}

// Body implements [API].
func (Triton) Body(dst []byte, r *workload.Request, o Options) ([]byte, error) {
	start := len(dst)
	dst = append(appendPrompt(append(dst, `{"text_input":`...), r, o), ',')
	at := len(dst)
	dst = o.appendLimit(dst, r, "max_tokens", "")
	dst = appendIf(dst, len(dst) > at, ",")
	dst = strconv.AppendBool(append(dst, `"stream":`...), o.Stream)
	return withExtras(append(dst, '}'), start, r, o)
}

// tritonDecoder reads events and whole answers. Whether the texts of a stream repeat
// those before them, as some models are set up to, shows with the second.
type tritonDecoder struct{ repeating }

func newTritonDecoder() *tritonDecoder {
	x := &tritonDecoder{}
	x.fill, x.read = x.fillHoles, x.readEvent
	return x
}

// Ended implements [Decoder].
func (x *tritonDecoder) Ended() bool { return x.soFar > 0 }

// Unmarked implements [Unmarked].
func (x *tritonDecoder) Unmarked() {}

// fillHoles reads an event that is like others but for what is in its holes.
func (x *tritonDecoder) fillHoles(in *filling, d *Delta) {
	x.soFar++
	x.compare(in.text)
	x.takeText(x.newText(in.text, in.known), in.text, true, d)
}

func (x *tritonDecoder) readEvent(d *Delta, stream bool) error {
	s := &x.s
	var raw []byte
	ok := s.eachKey(func(key []byte) (ok bool) {
		switch string(key) {
		case "text_output":
			if ok = x.readWord(&raw); ok && raw != nil {
				x.noteText(&x.reading, raw)
			}
			return ok
		case "error":
			return s.null() || x.readFault(d)
		}
		return s.skipValue()
	})
	if ok && d.Fault == nil {
		x.soFar++
		d.Ended = !stream
	}
	all := raw
	if ok && stream {
		x.compare(raw)
		raw = x.newText(raw, 0)
	}
	if ok {
		x.takeText(raw, all, stream, d)
	}
	return x.endEvent(ok, d)
}
