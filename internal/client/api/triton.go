package api

import (
	"strconv"

	"pitot/internal/workload"
)

// Triton is Triton's generate extension, as its backends for TensorRT-LLM and vLLM have
// it: a bare prompt, and events with text.
//
// It tells no usage, no finish reason and no end: a stream ends with the body of the
// answer, and how many tokens it had is not known. It cannot be held to a length.
var Triton API = &dialect{
	name: "triton", routes: tritonRoutes, bare: true, key: "TRITON_API_KEY", maxField: "max_tokens",
	sign:    Sign{Path: "/v2", Field: "extensions", Of: "Triton"},
	decoder: func() Decoder { return newTritonDecoder() },
	list:    func([]byte) []Model { return nil }, // it has none
	prepare: prepareTriton, concede: concedeSampling, asked: tritonAsked, body: tritonBody,
}

var tritonRoutes = []string{"/v2/models/{model}/generate_stream", "/v2/models/{model}/generate"}

func prepareTriton(_ string, o *Options) error {
	if o.Route = tritonRoutes[0]; !o.Stream {
		o.Route = tritonRoutes[1]
	}
	return nil
}

func tritonAsked(r *workload.Request, o Options) Asked {
	return Asked{Tokens: overlays(r, o, "").number(int64(r.Output), "max_tokens")}
}

func tritonBody(dst []byte, r *workload.Request, o Options) ([]byte, error) {
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
