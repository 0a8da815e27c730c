package parquet

import (
	"encoding/binary"
	"errors"

	"github.com/parquet-go/parquet-go/encoding/thrift"
)

var errStructure = errors.New("a damaged head of a page, or end of the file")

// unmarshal reads a structure from the beginning of b, and says how long it is. The library would
// believe how long a list says that it is, also one that it passes over.
func unmarshal(b []byte, v any) (int, error) {
	n, err := structureLength(b, 0)
	if err != nil {
		return 0, err
	}
	return n, thrift.Unmarshal(&thrift.CompactProtocol{}, b[:n], v)
}

// structureLength returns the number of bytes of a structure: one field after the other, until
// there is none. https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
func structureLength(b []byte, depth int) (int, error) {
	for at := 0; at < len(b); {
		head := b[at]
		at++
		if head == 0 {
			return at, nil
		}
		if head>>4 == 0 { // its number is written out
			_, k := binary.Uvarint(b[at:])
			if k <= 0 {
				return 0, lengthError(k)
			}
			at += k
		}
		n := 0
		if kind := head & 15; kind > 2 { // a boolean is its own value
			var err error
			if n, err = elementLength(b[at:], kind, depth); err != nil {
				return 0, err
			}
		}
		at += n
	}
	return 0, errShort
}

// lengthError tells a number that is cut from one that is too long.
func lengthError(k int) error {
	if k == 0 {
		return errShort
	}
	return errStructure
}

// elementLength returns the number of bytes of a value of a kind.
func elementLength(b []byte, kind byte, depth int) (int, error) {
	if depth > mostLevels {
		return 0, errStructure
	}
	n := 0
	switch kind {
	case 1, 2, 3:
		n = 1
	case 4, 5, 6:
		_, k := binary.Uvarint(b)
		if k <= 0 {
			return 0, lengthError(k)
		}
		n = k
	case 7:
		n = 8
	case 8:
		length, k := binary.Uvarint(b)
		if k <= 0 {
			return 0, lengthError(k)
		}
		if length > largestPage {
			return 0, errStructure
		}
		n = k + int(length)
	case 9, 10:
		if len(b) == 0 {
			return 0, errShort
		}
		count, of := uint64(b[0]>>4), b[0]&15
		if n = 1; count == 15 {
			var k int
			if count, k = binary.Uvarint(b[1:]); k <= 0 {
				return 0, lengthError(k)
			}
			n += k
		}
		if count > uint64(len(b)) { // each takes a byte at least
			return 0, errShort
		}
		for range count {
			k, err := elementLength(b[n:], of, depth+1)
			if err != nil {
				return 0, err
			}
			n += k
		}
	case 12:
		return structureLength(b, depth+1)
	default: // maps: no structure of Parquet's has one
		return 0, errStructure
	}
	if n > len(b) {
		return 0, errShort
	}
	return n, nil
}
