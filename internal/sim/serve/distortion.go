package serve

import (
	"bytes"
	"compress/gzip"
)

// distortion is a fault's change to the bytes of a stream that keeps the meaning of the stream.
type distortion struct {
	crlf     bool
	comment  string // before every event
	split    bool
	coalesce int // events per write, if over 1
	bare     bool
	gz       *gzip.Writer
	zipped   bytes.Buffer

	waiting []byte // events that wait for others to be written with
	events  int
}

// writesForEvent gives the writes that one more event leads to, each of them a chunk.
func (d *distortion) writesForEvent(ev []byte) [][]byte {
	if d.comment != "" && string(ev) != d.comment {
		ev = append([]byte(d.comment), ev...)
	}
	if d.crlf {
		ev = bytes.ReplaceAll(ev, []byte("\n"), []byte("\r\n"))
	}
	if d.coalesce > 1 {
		d.waiting = append(d.waiting, ev...)
		if d.events++; d.events < d.coalesce {
			return nil
		}
		ev = d.waiting
		d.waiting, d.events = nil, 0
	}
	if d.gz != nil {
		ev = d.compress(ev)
	}
	if d.split && len(ev) > 1 {
		return [][]byte{ev[:len(ev)/2], ev[len(ev)/2:]}
	}
	return [][]byte{ev}
}

// flush gives what is left at the end of the body.
func (d *distortion) flush() []byte {
	rest := d.waiting
	d.waiting, d.events = nil, 0
	if d.gz == nil {
		return rest
	}
	d.zipped.Reset()
	_, _ = d.gz.Write(rest) // a bytes.Buffer takes everything
	_ = d.gz.Close()
	return d.zipped.Bytes()
}

// compress gives p as far as a reader can unpack it at once. The result is
// valid until the next call.
func (d *distortion) compress(p []byte) []byte {
	d.zipped.Reset()
	_, _ = d.gz.Write(p)
	_ = d.gz.Flush()
	return d.zipped.Bytes()
}

// useGzip turns compression on.
func (d *distortion) useGzip() { d.gz = gzip.NewWriter(&d.zipped) }
