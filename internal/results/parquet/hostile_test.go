package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// handmade is a file of one row group, of columns that have these pages each.
func handmade(rows int64, codec format.CompressionCodec, columns []format.SchemaElement, values int64, pages ...[]byte) []byte {
	column := bytes.Join(pages, nil)
	meta := format.FileMetaData{Version: 2, NumRows: rows}
	meta.Schema = append(meta.Schema, format.SchemaElement{Name: "x", NumChildren: thrift.New(int32(len(columns)))})
	meta.Schema = append(meta.Schema, columns...)
	group := format.RowGroup{NumRows: rows}
	file := []byte(magic)
	for _, c := range columns {
		group.Columns = append(group.Columns, format.ColumnChunk{MetaData: format.ColumnMetaData{
			Type: c.Type.V, PathInSchema: []string{c.Name}, Codec: codec, NumValues: values,
			DataPageOffset: int64(len(file)), TotalCompressedSize: int64(len(column)), TotalUncompressedSize: int64(len(column)),
		}})
		file = append(file, column...)
	}
	meta.RowGroups = append(meta.RowGroups, group)
	footer := marshal(&meta)
	file = append(file, footer...)
	return append(binary.LittleEndian.AppendUint32(file, uint32(len(footer))), magic...)
}

func leaf(kind Kind, repetition format.FieldRepetitionType) format.SchemaElement {
	return format.SchemaElement{Name: "a", Type: thrift.New(kind), RepetitionType: thrift.New(repetition)}
}

// fixed are values of so many bytes.
func fixed(width int32) format.SchemaElement {
	e := leaf(format.FixedLenByteArray, format.Required)
	e.TypeLength = thrift.New(width)
	return e
}

// dataPage is one of version 1, of values that say that they become size bytes.
func dataPage(encoding format.Encoding, values, size int, data []byte) []byte {
	return append(marshal(&format.PageHeader{
		Type: format.DataPage, UncompressedPageSize: int32(size), CompressedPageSize: int32(len(data)),
		DataPageHeader: thrift.New(format.DataPageHeader{NumValues: int32(values), Encoding: encoding, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE}),
	}), data...)
}

// lengthened are texts as DELTA_LENGTH_BYTE_ARRAY has them.
func lengthened(texts ...string) []byte {
	offsets := []uint32{0}
	for _, text := range texts {
		offsets = append(offsets, offsets[len(offsets)-1]+uint32(len(text)))
	}
	return mustEncode((&delta.LengthByteArrayEncoding{}).EncodeByteArray(nil, []byte(strings.Join(texts, "")), offsets))
}

// prefixed are texts as DELTA_BYTE_ARRAY has them.
func prefixed(texts ...string) []byte {
	var shared []int32
	for range texts {
		shared = append(shared, 0)
	}
	return append(mustEncode((&delta.BinaryPackedEncoding{}).EncodeInt32(nil, shared)), lengthened(texts...)...)
}

// zeros is a Zstandard frame of so many blocks of 128 KiB, of 4 bytes each. It may claim to become
// this long.
func zeros(blocks int, claim uint64) []byte {
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0x38} // a window of 128 KiB
	if claim > 0 {
		frame = binary.LittleEndian.AppendUint64([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xc0, 0x38}, claim)
	}
	for i := range blocks {
		head := uint32(128<<10<<3 | 1<<1)
		if i == blocks-1 {
			head |= 1
		}
		frame = append(frame, byte(head), byte(head>>8), byte(head>>16), 0)
	}
	return frame
}

type hostile struct {
	name string
	file []byte
}

// hostileFiles say of themselves what is not so, or what nobody has.
func hostileFiles() []hostile {
	ints := []format.SchemaElement{leaf(Int, format.Required)}
	bytesOf := func(x uint32) []byte { return binary.LittleEndian.AppendUint32(nil, x) }
	var wide []format.SchemaElement
	for range 100 {
		wide = append(wide, leaf(Int, format.Optional))
	}
	nulls := append(bytesOf(5), 0x80, 0x80, 0x80, 0x20, 0) // levels: a run of 2^25 times 0
	one := dataPage(format.Plain, 1, 4, bytesOf(7))
	twelve := []format.SchemaElement{leaf(format.Int96, format.Required)}
	return []hostile{
		{"rows without columns", handmade(1<<40, format.Uncompressed, nil, 0)},
		{"fewer rows than none", handmade(-1, format.Uncompressed, nil, 0)},
		{"fewer rows than none of a column", handmade(-1, format.Uncompressed, ints, 1, one)},
		{"a page of 4 bytes that becomes 1 GiB", handmade(1, format.Zstd, ints, 1, dataPage(format.Plain, 1, 4, zeros(8<<10, 0)))},
		{"a frame that claims 1 GiB", handmade(1, format.Zstd, ints, 1, dataPage(format.Plain, 1, 4, zeros(1, 1<<30)))},
		{"a page and a frame that claim 1 GiB", handmade(1, format.Zstd, ints, 1, dataPage(format.Plain, 1, 1<<30, zeros(1, 1<<30)))},
		{"nulls of many columns", handmade(1<<25, format.Uncompressed, wide, 1<<25, dataPage(format.Plain, 1<<25, len(nulls), nulls))},
		{"numbers as texts behind numbers", handmade(2, format.Uncompressed, ints, 2, one, dataPage(format.DeltaLengthByteArray, 1, 0, lengthened("")))},
		{"numbers as texts with prefixes", handmade(2, format.Uncompressed, ints, 2, one, dataPage(format.DeltaByteArray, 1, 0, prefixed("")))},
		{"12 bytes as texts of 1", handmade(1, format.Uncompressed, twelve, 1, dataPage(format.DeltaLengthByteArray, 1, 0, lengthened("a")))},
		{"12 bytes as texts with prefixes", handmade(1, format.Uncompressed, twelve, 1, dataPage(format.DeltaByteArray, 1, 0, prefixed("a")))},
		{"4 bytes as texts of 4", handmade(1, format.Uncompressed, []format.SchemaElement{fixed(4)}, 1, dataPage(format.DeltaLengthByteArray, 1, 0, lengthened("abcd")))},
		{"4 bytes of which one has 3", handmade(2, format.Uncompressed, []format.SchemaElement{fixed(4)}, 2, dataPage(format.DeltaByteArray, 2, 0, prefixed("abcd", "abc")))},
		{"values of a negative length", handmade(1, format.Uncompressed, []format.SchemaElement{fixed(-4)}, 1, dataPage(format.Plain, 1, 4, bytesOf(7)))},
	}
}

// What is made by hand is otherwise as files are.
func TestHandmade(t *testing.T) {
	for want, file := range map[string][]byte{
		`{"a":7}`:                       handmade(1, format.Uncompressed, []format.SchemaElement{leaf(Int, format.Required)}, 1, dataPage(format.Plain, 1, 4, []byte{7, 0, 0, 0})),
		`{"a":0}`:                       handmade(1, format.Zstd, []format.SchemaElement{leaf(Int, format.Required)}, 1, dataPage(format.Plain, 1, 128<<10, zeros(1, 0))),
		`{"a":"abc"}`:                   handmade(1, format.Uncompressed, []format.SchemaElement{leaf(Text, format.Required)}, 1, dataPage(format.DeltaLengthByteArray, 1, 0, lengthened("abc"))),
		`{"a":"YWJjZA=="}`:              handmade(1, format.Uncompressed, []format.SchemaElement{fixed(4)}, 1, dataPage(format.DeltaByteArray, 1, 0, prefixed("abcd"))),
		"{\"a\":\"b\"}\n{\"a\":\"cd\"}": handmade(2, format.Uncompressed, []format.SchemaElement{leaf(Text, format.Required)}, 2, dataPage(format.DeltaByteArray, 2, 0, prefixed("b", "cd"))),
	} {
		if got := rowsOf(t, file); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

// Hostile files are refused, before they have taken time or memory.
func TestHostile(t *testing.T) {
	for _, h := range hostileFiles() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n, err := readAll(h.file)
		runtime.ReadMemStats(&after)
		if err == nil || errors.Is(err, io.EOF) || n > 1 {
			t.Errorf("%s: %d rows, %v", h.name, n, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 128<<20 {
			t.Errorf("%s: %d MiB", h.name, took>>20)
		}
	}
}

// A bit that was flipped in a page with a checksum is an error, in files of ours and of others.
func TestChecksums(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, "x", "pitot test", []Column{{Name: "a", Kind: Text, Optional: true}, {Name: "b", Kind: Long}, {Name: "c", Kind: Double}}, 1<<10)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		if i%3 == 0 {
			w.Column(0).Null()
		} else {
			w.Column(0).Text([]byte(strings.Repeat("w", i%5)))
		}
		w.Column(1).Long(int64(i * i))
		w.Column(2).Double(float64(i) / 7)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files := testFiles(t)
	for name, file := range map[string][]byte{"ours": out.Bytes(), "v1": files["checksums.parquet"], "v2": files["checksums2.parquet"]} {
		pages := bodies(t, file)
		if len(pages) < 4 {
			t.Fatalf("%s: %d pages", name, len(pages))
		}
		for _, page := range pages {
			for i := page[0]; i < page[1]; i++ {
				bad := bytes.Clone(file)
				bad[i] ^= 1 << (i % 8)
				if _, err := readAll(bad); err == nil || !strings.Contains(err.Error(), "checksum") {
					t.Errorf("%s, a bit at %d: %v", name, i, err)
				}
			}
		}
	}
}

// bodies are where the bytes of pages lie behind their heads: from, to.
func bodies(t *testing.T, file []byte) (list [][2]int) {
	t.Helper()
	f, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for group := range f.GroupCount() {
		for _, column := range f.meta.RowGroups[group].Columns {
			m := &column.MetaData
			at := int(m.DataPageOffset)
			if m.DictionaryPageOffset > 0 {
				at = int(m.DictionaryPageOffset)
			}
			for end := at + int(m.TotalCompressedSize); at < end; {
				var head format.PageHeader
				n, err := unmarshal(file[at:end], &head)
				if err != nil {
					t.Fatal(err)
				}
				if head.CRC == 0 {
					t.Error("a page without a checksum")
				}
				list = append(list, [2]int{at + n, at + n + int(head.CompressedPageSize)})
				at = list[len(list)-1][1]
			}
		}
	}
	return list
}

// A head that is longer than what is read of one at first is read whole.
func TestLongHead(t *testing.T) {
	text := slices.Repeat([]byte("x"), 100_000)
	head := format.PageHeader{
		Type: format.DataPage, UncompressedPageSize: 4, CompressedPageSize: 4,
		DataPageHeader: thrift.New(format.DataPageHeader{NumValues: 1, Encoding: format.Plain, Statistics: format.Statistics{MaxValue: text}}),
	}
	page := append(marshal(&head), 7, 0, 0, 0)
	file := handmade(2, format.Uncompressed, []format.SchemaElement{leaf(Int, format.Required)}, 2, page, page)
	if got, want := rowsOf(t, file), "{\"a\":7}\n{\"a\":7}"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}
