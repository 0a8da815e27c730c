package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
)

// object writes one JSON object field by field, so that long arrays need not
// be in memory as text. The first error is kept and returned at the end.
type object struct {
	w     io.Writer
	begun bool
	text  []byte // of a number, used again
	err   error
}

func (o *object) writeText(text string) {
	if o.err == nil {
		_, o.err = io.WriteString(o.w, text)
	}
}

// writeKey begins a field.
func (o *object) writeKey(name string) {
	text := `{`
	if o.begun {
		text = `, `
	}
	o.begun = true
	quoted, err := json.Marshal(name)
	if err != nil && o.err == nil {
		o.err = err
	}
	o.writeText(text + string(quoted) + ": ")
}

// writeField writes a field of any value.
func (o *object) writeField(name string, v any) {
	o.writeKey(name)
	o.writeValue(v)
}

// writeFields writes fields of any values, by pairs of a name and a value.
func (o *object) writeFields(pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		o.writeField(pairs[i].(string), pairs[i+1])
	}
}

// writeValue writes a value. A float64 has a point, as Python writes one.
func (o *object) writeValue(v any) {
	if x, is := v.(float64); is && x-x == 0 { // finite
		o.writeFloat(x)
		return
	}
	text, err := json.Marshal(v)
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("encode %v: %w", v, err)
	}
	o.writeText(string(text))
}

// writeFloat is most of what there is to write.
func (o *object) writeFloat(x float64) {
	if o.err != nil {
		return
	}
	format := byte('f')
	if a := math.Abs(x); a > 0 && a < 1e-4 || a >= 1e16 {
		format = 'e'
	}
	o.text = strconv.AppendFloat(o.text[:0], x, format, -1, 64)
	if format == 'f' && !bytes.Contains(o.text, []byte(".")) {
		o.text = append(o.text, ".0"...)
	}
	_, o.err = o.w.Write(o.text)
}

// writeList writes a field that is an array.
func writeList[T any](o *object, name string, values iter.Seq[T]) {
	o.writeKey(name)
	writeArray(o, values)
}

// writeArray writes an array value by value.
func writeArray[T any](o *object, values iter.Seq[T]) {
	between := "["
	for v := range values {
		o.writeText(between)
		o.writeValue(v)
		between = ", "
	}
	if between == "[" {
		o.writeText(between)
	}
	o.writeText("]")
}

// end closes the object.
func (o *object) end() error {
	if !o.begun {
		o.writeText("{")
	}
	o.writeText("}")
	return o.err
}
