package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strings"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// Rows reads a file row by row, as [encoding/json] writes values: groups and maps as
// map[string]any, lists as []any, text as string, other bytes as []byte, decimals as text.
type Rows struct {
	file    *File
	group   int // the next one
	left    int64
	cursors []cursor
}

// All begins at the first row.
func (f *File) All() *Rows { return &Rows{file: f} }

// cursor is where a column is read.
type cursor struct {
	pages *Pages
	page  *Page // nil behind the last one
	slot  int
	value int
}

// Next is the next row, [io.EOF] behind the last one.
func (r *Rows) Next() (map[string]any, error) {
	for r.left == 0 {
		if r.group == r.file.GroupCount() {
			return nil, io.EOF
		}
		r.cursors = make([]cursor, len(r.file.leaves))
		for i := range r.cursors {
			pages, err := r.file.ReadPages(r.group, i)
			if err != nil {
				return nil, r.wrapError(i, err)
			}
			r.cursors[i].pages = pages
			if err := r.cursors[i].turnPage(); err != nil {
				return nil, r.wrapError(i, err)
			}
		}
		r.left = r.file.Rows(r.group)
		r.group++
	}
	r.left--
	return r.readFields(r.file.Root)
}

func (r *Rows) wrapError(leaf int, err error) error {
	return fmt.Errorf("column %s: %w", r.file.leaves[leaf].Name, err)
}

// turnPage goes to the next page.
func (c *cursor) turnPage() error {
	page, err := c.pages.Next()
	if err == io.EOF {
		page, err = nil, nil
	}
	c.page, c.slot, c.value = page, 0, 0
	return err
}

// nextLevels are those of the slot that is next; false behind the last one.
func (c *cursor) nextLevels() (def, rep uint8, ok bool) {
	if c.page == nil {
		return 0, 0, false
	}
	def = c.pages.of.def
	if c.page.Def != nil {
		def = c.page.Def[c.slot]
	}
	if c.page.Rep != nil {
		rep = c.page.Rep[c.slot]
	}
	return def, rep, true
}

// takeValue passes over a slot, and gives its value where it has one.
func (c *cursor) takeValue() (x any, err error) {
	def, _, ok := c.nextLevels()
	if !ok {
		return nil, io.ErrUnexpectedEOF
	}
	if def == c.pages.of.def {
		i := c.value
		if c.page.Index != nil {
			i = int(c.page.Index[i])
		}
		x = c.pages.of.jsonValue(&c.page.Values, i)
		c.value++
	}
	if c.slot++; c.slot == c.page.Slots {
		err = c.turnPage()
	}
	return x, err
}

// readFields reads the columns of a group that is there.
func (r *Rows) readFields(n *Node) (map[string]any, error) {
	group := make(map[string]any, len(n.Children))
	for _, child := range n.Children {
		x, err := r.read(child)
		if err != nil {
			return nil, err
		}
		group[child.Name] = x
	}
	return group, nil
}

// read reads one column of a group that is there: a value, nil, or all that repeats.
func (r *Rows) read(n *Node) (any, error) {
	if n.leaves[0] == n.leaves[1] { // a group without columns
		return map[string]any{}, nil
	}
	first := &r.cursors[n.leaves[0]]
	if n.Optional || n.Repeated {
		if def, _, ok := first.nextLevels(); !ok {
			return nil, r.wrapError(n.leaves[0], io.ErrUnexpectedEOF)
		} else if def < n.def {
			for i := n.leaves[0]; i < n.leaves[1]; i++ {
				if _, err := r.cursors[i].takeValue(); err != nil {
					return nil, r.wrapError(i, err)
				}
			}
			if n.Repeated {
				return []any{}, nil
			}
			return nil, nil
		}
	}
	if !n.Repeated {
		return r.readValue(n)
	}
	list := []any{}
	for {
		x, err := r.readValue(n)
		if err != nil {
			return nil, err
		}
		list = append(list, x)
		if _, rep, ok := first.nextLevels(); !ok || rep != n.rep {
			return list, nil
		}
	}
}

// readValue reads a value that is there.
func (r *Rows) readValue(n *Node) (any, error) {
	if n.IsLeaf() {
		x, err := r.cursors[n.leaves[0]].takeValue()
		if err != nil {
			err = r.wrapError(n.leaves[0], err)
		}
		return x, err
	}
	group, err := r.readFields(n)
	if err != nil || len(n.Children) != 1 {
		return group, err
	}
	repeated := n.Children[0]
	if list, ok := group[repeated.Name].([]any); ok && repeated.Repeated {
		switch {
		case n.hasLogicalType(deprecated.List, (*format.ListType)(nil)):
			return listOf(n, repeated, list), nil
		case n.hasLogicalType(deprecated.Map, (*format.MapType)(nil)) || n.hasLogicalType(deprecated.MapKeyValue, nil):
			return mapOf(repeated, list)
		}
	}
	return group, nil
}

// listOf takes away the group that stands around each element, where one does: see
// https://github.com/apache/parquet-format/blob/master/LogicalTypes.md#lists
func listOf(n, repeated *Node, list []any) any {
	if repeated.IsLeaf() || len(repeated.Children) != 1 || repeated.Name == "array" || repeated.Name == n.Name+"_tuple" {
		return list
	}
	for i, x := range list {
		list[i] = x.(map[string]any)[repeated.Children[0].Name]
	}
	return list
}

// mapOf makes a map of pairs.
func mapOf(repeated *Node, list []any) (any, error) {
	if len(repeated.Children) == 0 || len(repeated.Children) > 2 {
		return nil, errors.New("a map has no keys with values")
	}
	pairs := make(map[string]any, len(list))
	for _, x := range list {
		pair := x.(map[string]any)
		var value any
		if len(repeated.Children) == 2 {
			value = pair[repeated.Children[1].Name]
		}
		pairs[fmt.Sprint(pair[repeated.Children[0].Name])] = value
	}
	return pairs, nil
}

// hasLogicalType says whether a column is of a logical type, by its new or its old name.
func (n *Node) hasLogicalType(old deprecated.ConvertedType, of format.LogicalTypeValue) bool {
	if v := n.element.LogicalType.Value; v != nil && of != nil {
		return v.FieldID() == of.FieldID()
	}
	return n.element.ConvertedType.Valid && n.element.ConvertedType.V == old
}

func (n *Node) isDecimal() bool {
	return n.hasLogicalType(deprecated.Decimal, (*format.DecimalType)(nil))
}

// jsonValue is value i of a column, as JSON can have it.
func (n *Node) jsonValue(v *Values, i int) any {
	switch n.Kind() {
	case format.Boolean:
		return v.Bools[i]
	case format.Int32:
		if n.isDecimal() {
			return n.formatDecimal(big.NewInt(int64(v.Ints[i])))
		}
		if n.isUnsigned(32) {
			return uint32(v.Ints[i])
		}
		return v.Ints[i]
	case format.Int64:
		if n.isDecimal() {
			return n.formatDecimal(big.NewInt(v.Longs[i]))
		}
		if n.isUnsigned(64) {
			return uint64(v.Longs[i])
		}
		return v.Longs[i]
	case format.Float:
		return finiteOrNil(float64(v.Floats[i]), v.Floats[i])
	case format.Double:
		return finiteOrNil(v.Doubles[i], v.Doubles[i])
	}
	text := v.Texts[i]
	switch {
	case n.Kind() == format.Int96: // nanoseconds of a day, and the day of the Julian calendar
		const epoch = 2440588
		return (int64(binary.LittleEndian.Uint32(text[8:]))-epoch)*86400e9 + int64(binary.LittleEndian.Uint64(text))
	case n.isDecimal():
		x := new(big.Int).SetBytes(text)
		if len(text) > 0 && text[0]&0x80 != 0 {
			x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(text))))
		}
		return n.formatDecimal(x)
	case n.Kind() == format.ByteArray:
		return string(text)
	case len(text) == 2 && n.hasLogicalType(-1, (*format.Float16Type)(nil)):
		x := halfPrecision(binary.LittleEndian.Uint16(text))
		return finiteOrNil(x, x)
	case len(text) == 16 && n.hasLogicalType(-1, (*format.UUIDType)(nil)):
		return fmt.Sprintf("%x-%x-%x-%x-%x", text[:4], text[4:6], text[6:8], text[8:10], text[10:])
	}
	return append([]byte(nil), text...)
}

// finiteOrNil is x as it is, null where JSON has no such number.
func finiteOrNil[T any](value float64, x T) any {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	return x
}

// isUnsigned says whether integers of so many bits have no sign.
func (n *Node) isUnsigned(bits int8) bool {
	if t, ok := n.element.LogicalType.Value.(*format.IntType); ok {
		return !t.IsSigned && t.BitWidth == bits
	}
	return bits == 32 && n.hasLogicalType(deprecated.Uint32, nil) || bits == 64 && n.hasLogicalType(deprecated.Uint64, nil)
}

// formatDecimal writes a number of hundredths, thousandths, ….
func (n *Node) formatDecimal(x *big.Int) string {
	scale := int(n.element.Scale.V)
	if t, ok := n.element.LogicalType.Value.(*format.DecimalType); ok {
		scale = int(t.Scale)
	}
	if scale <= 0 || scale > mostLevels {
		return x.String()
	}
	digits := new(big.Int).Abs(x).String()
	if len(digits) <= scale {
		digits = strings.Repeat("0", scale+1-len(digits)) + digits
	}
	out := strings.TrimSuffix(strings.TrimRight(digits[:len(digits)-scale]+"."+digits[len(digits)-scale:], "0"), ".")
	if x.Sign() < 0 {
		out = "-" + out
	}
	return out
}

// halfPrecision is a number of 16 bits:
// https://en.wikipedia.org/wiki/Half-precision_floating-point_format
func halfPrecision(b uint16) float64 {
	sign, exponent, fraction := 1-2*float64(b>>15), int(b>>10&0x1f), float64(b&0x3ff)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 0x1f:
		return math.Inf(1) // or no number
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}
