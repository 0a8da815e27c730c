package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/parquet-go/parquet-go/encoding/bytestreamsplit"
	"github.com/parquet-go/parquet-go/format"
)

// How values lie in a page: https://github.com/apache/parquet-format/blob/master/Encodings.md
// Nothing here takes more memory than there are values to be had and bytes to have them from.

var errShort = errors.New("a page has fewer values than it says")

// Values are those of a page or of its dictionary, in the slice of their kind.
type Values struct {
	Bools   []bool
	Ints    []int32
	Longs   []int64
	Floats  []float32
	Doubles []float64
	Texts   [][]byte // byte arrays of any and of fixed length, INT96
}

// decode sets v to n values.
func (v *Values) decode(of *Node, encoding format.Encoding, data []byte, n int) (err error) {
	kind := of.Kind()
	v.Bools, v.Ints, v.Longs, v.Floats, v.Doubles, v.Texts = v.Bools[:0], v.Ints[:0], v.Longs[:0], v.Floats[:0], v.Doubles[:0], v.Texts[:0]
	if n == 0 { // there may be no bytes at all
		return nil
	}
	width := of.valueWidth()
	switch encoding {
	case format.Plain:
		switch kind {
		case format.Boolean:
			if len(data) < (n+7)/8 {
				return errShort
			}
			v.Bools = resizeSlice(v.Bools, n)
			for i := range v.Bools {
				v.Bools[i] = data[i/8]>>(i%8)&1 == 1
			}
			return nil
		case format.ByteArray:
			return v.plainTexts(data, n)
		}
		return v.decodeFixed(kind, data, width, n)
	case format.ByteStreamSplit:
		if width == 0 || len(data) < width*n {
			return errShort
		}
		together, err := (&bytestreamsplit.Encoding{}).DecodeFixedLenByteArray(nil, data[:width*n], width)
		if err != nil {
			return err
		}
		return v.decodeFixed(kind, together, width, n)
	case format.RLE:
		if kind != format.Boolean || len(data) < 4 {
			break
		}
		var one []uint8
		if one, err = decodeHybrid(one, data[4:], 1, n); err != nil {
			return err
		}
		v.Bools = resizeSlice(v.Bools, n)
		for i := range v.Bools {
			v.Bools[i] = one[i] == 1
		}
		return nil
	case format.DeltaBinaryPacked:
		switch kind {
		case format.Int32:
			v.Ints, _, err = decodeDeltas(v.Ints, data, n)
			return err
		case format.Int64:
			v.Longs, _, err = decodeDeltas(v.Longs, data, n)
			return err
		}
	case format.DeltaLengthByteArray:
		if kind != format.ByteArray {
			break
		}
		lengths, data, err := decodeDeltas[int32](nil, data, n)
		if err != nil {
			return err
		}
		v.Texts = resizeSlice(v.Texts, n)
		for i, length := range lengths {
			if length < 0 || int(length) > len(data) {
				return errShort
			}
			v.Texts[i], data = data[:length:length], data[length:]
		}
		return nil
	case format.DeltaByteArray:
		switch kind {
		case format.ByteArray:
			return v.sharedTexts(data, n)
		case format.FixedLenByteArray:
			if err := v.sharedTexts(data, n); err != nil {
				return err
			}
			for _, text := range v.Texts {
				if len(text) != width {
					return fmt.Errorf("a value of %d bytes has %d", width, len(text))
				}
			}
			return nil
		}
	}
	return fmt.Errorf("encoding %s of %s is not known", encoding, kind)
}

// valueWidth returns the number of bytes of a value, 0 where that is not fixed.
func (n *Node) valueWidth() int {
	switch n.Kind() {
	case format.Int32, format.Float:
		return 4
	case format.Int64, format.Double:
		return 8
	case format.Int96:
		return 12
	case format.FixedLenByteArray:
		return int(n.element.TypeLength.V)
	}
	return 0
}

// decodeFixed reads values that take as many bytes each.
func (v *Values) decodeFixed(kind format.Type, data []byte, width, n int) error {
	if width <= 0 || n > len(data)/width {
		return errShort
	}
	var values any
	switch kind {
	case format.Int32:
		v.Ints = resizeSlice(v.Ints, n)
		values = v.Ints
	case format.Int64:
		v.Longs = resizeSlice(v.Longs, n)
		values = v.Longs
	case format.Float:
		v.Floats = resizeSlice(v.Floats, n)
		values = v.Floats
	case format.Double:
		v.Doubles = resizeSlice(v.Doubles, n)
		values = v.Doubles
	default:
		v.Texts = resizeSlice(v.Texts, n)
		for i := range v.Texts {
			v.Texts[i] = data[i*width : (i+1)*width : (i+1)*width]
		}
		return nil
	}
	_, err := binary.Decode(data, binary.LittleEndian, values)
	return err
}

// plainTexts reads byte arrays, each behind its length.
func (v *Values) plainTexts(data []byte, n int) error {
	if n > len(data)/4 {
		return errShort
	}
	v.Texts = resizeSlice(v.Texts, n)
	for i := range v.Texts {
		if len(data) < 4 {
			return errShort
		}
		length := int(binary.LittleEndian.Uint32(data))
		if data = data[4:]; length > len(data) {
			return errShort
		}
		v.Texts[i], data = data[:length:length], data[length:]
	}
	return nil
}

// sharedTexts reads byte arrays that begin as the one before does.
func (v *Values) sharedTexts(data []byte, n int) error {
	shared, data, err := decodeDeltas[int32](nil, data, n)
	if err != nil {
		return err
	}
	lengths, data, err := decodeDeltas[int32](nil, data, n)
	if err != nil {
		return err
	}
	v.Texts = resizeSlice(v.Texts, n)
	var last []byte
	total := 0
	for i, length := range lengths {
		if length < 0 || int(length) > len(data) || shared[i] < 0 || int(shared[i]) > len(last) {
			return errShort
		}
		if total += int(shared[i]) + int(length); total > largestPage {
			return errSize
		}
		last = append(last[:shared[i]:shared[i]], data[:length]...)
		v.Texts[i], data = last, data[length:]
	}
	return nil
}

// decodeHybrid reads n small numbers: runs of one number, and numbers packed into bits.
func decodeHybrid[T uint8 | int32](dst []T, data []byte, width, n int) ([]T, error) {
	if width > 32 {
		return nil, fmt.Errorf("numbers of %d bits", width)
	}
	dst = resizeSlice(dst, n)
	size := (width + 7) / 8
	for i := 0; i < n; {
		head, k := binary.Uvarint(data)
		if k <= 0 {
			return nil, errShort
		}
		data = data[k:]
		if head&1 == 0 {
			var word [4]byte
			if copy(word[:size], data) < size {
				return nil, errShort
			}
			data = data[size:]
			run := int(min(head>>1, uint64(n-i)))
			value := T(binary.LittleEndian.Uint32(word[:]))
			for j := range run {
				dst[i+j] = value
			}
			if i += run; run == 0 {
				return nil, errShort
			}
			continue
		}
		count := int(min(head>>1, uint64(n))) * 8 // the last ones may be padding
		packed := data[:min(len(data), count/8*width)]
		data = data[len(packed):]
		if count = min(count, n-i); count == 0 || len(packed)*8 < count*width {
			return nil, errShort
		}
		unpackBits(dst[i:i+count], packed, uint(width))
		i += count
	}
	return dst, nil
}

// unpackBits reads numbers of some bits each, the lowest first.
func unpackBits[T uint8 | int32 | int64](dst []T, data []byte, width uint) {
	mask := uint64(1)<<width - 1
	var at uint
	for i := range dst {
		rest := data[at/8:]
		var word uint64
		if len(rest) >= 8 {
			word = binary.LittleEndian.Uint64(rest)
		} else {
			var last [8]byte
			copy(last[:], rest)
			word = binary.LittleEndian.Uint64(last[:])
		}
		shift := at % 8
		word >>= shift
		if shift+width > 64 && len(rest) > 8 {
			word |= uint64(rest[8]) << (64 - shift)
		}
		dst[i] = T(word & mask)
		at += width
	}
}

// decodeDeltas reads n numbers, each the one before and a difference, and gives what lies behind
// them.
func decodeDeltas[T int32 | int64](dst []T, data []byte, n int) ([]T, []byte, error) {
	var head [3]uint64 // numbers of a block, its parts, numbers in all
	for i := range head {
		x, k := binary.Uvarint(data)
		if k <= 0 {
			return nil, nil, errShort
		}
		head[i], data = x, data[k:]
	}
	first, k := binary.Varint(data)
	block, parts := head[0], head[1]
	if k <= 0 || head[2] != uint64(n) || block == 0 || block > 1<<20 || parts == 0 || parts > block || block%parts != 0 || block/parts%8 != 0 {
		return nil, nil, errShort
	}
	data = data[k:]
	each := int(block / parts)
	if n > (len(data)/(int(parts)+1)+1)*int(block)+1 { // a block takes a byte for each part at least
		return nil, nil, errShort
	}
	dst = resizeSlice(dst, n)
	if n == 0 {
		return dst, data, nil
	}
	dst[0] = T(first)
	last := T(first)
	for i := 1; i < n; {
		least, k := binary.Varint(data)
		if k <= 0 || len(data)-k < int(parts) {
			return nil, nil, errShort
		}
		widths := data[k : k+int(parts)]
		data = data[k+int(parts):]
		for _, width := range widths {
			if i == n { // parts that are not needed have no bytes
				break
			}
			part := dst[i:min(i+each, n)]
			size := each / 8 * int(width)
			if width > bits.UintSize || len(part)*int(width) > 8*len(data) {
				return nil, nil, errShort
			}
			size = min(size, len(data)) // the last part may be cut
			if width == 0 {
				clear(part)
			} else {
				unpackBits(part, data[:size], uint(width))
			}
			data = data[size:]
			for j := range part {
				last += part[j] + T(least)
				part[j] = last
			}
			i += len(part)
		}
	}
	return dst, data, nil
}

// resizeSlice is a slice of n, in the memory of s where that has room.
func resizeSlice[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
