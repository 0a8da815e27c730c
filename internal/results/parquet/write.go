package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// largestDictionary is the number of bytes of different words that a column keeps. Further words
// are written as they are.
const largestDictionary = 1 << 20

// Column is one of a file that is written.
type Column struct {
	Name     string
	Kind     Kind
	Optional bool // it may be null
}

// Writer writes a file of columns that do not lie in each other, compressed with Zstandard:
// numbers as differences, which suits stamps in order and constants alike, text through a
// dictionary. Equal values give equal bytes. A row group is in memory until it is flushed.
type Writer struct {
	out     io.Writer
	at      int64
	err     error
	columns []*ColumnWriter
	meta    format.FileMetaData
	indexes []chunkIndex // of all columns of all row groups so far
}

// chunkIndex holds the entries at the end of a file on the pages of a column of a row group.
type chunkIndex struct{ bounds, places []byte }

// NewWriter begins a file. page is how many bytes of a column, a power of two, are encoded at once:
// it keeps a buffer of about that size.
func NewWriter(out io.Writer, name, by string, columns []Column, page int) (*Writer, error) {
	// An encoder that looks back no further than a page is long takes a tenth of the usual memory.
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(page), zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("pages of %d bytes: %w", page, err)
	}
	w, shared := &Writer{out: out}, &scratch{encoder: encoder}
	w.meta.Version, w.meta.CreatedBy = 2, by
	w.meta.Schema = append(w.meta.Schema, format.SchemaElement{Name: name, NumChildren: thrift.New(int32(len(columns)))})
	for _, c := range columns {
		element := format.SchemaElement{Name: c.Name, Type: thrift.New(c.Kind), RepetitionType: thrift.New(format.Required)}
		if c.Optional {
			element.RepetitionType = thrift.New(format.Optional)
		}
		if c.Kind == Text {
			element.ConvertedType, element.LogicalType = thrift.New(deprecated.UTF8), format.LogicalType{Value: &format.StringType{}}
		}
		w.meta.Schema = append(w.meta.Schema, element)
		w.meta.ColumnOrders = append(w.meta.ColumnOrders, format.ColumnOrder{Value: &format.TypeDefinedOrder{}})
		width := map[Kind]int{Bool: 1, Int: 4, Long: 8, Double: 8, Text: 4}[c.Kind]
		w.columns = append(w.columns, &ColumnWriter{Column: c, page: page, most: page / width, words: map[string]int32{}, scratch: shared})
	}
	w.write([]byte(magic))
	return w, nil
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.out.Write(b)
	w.at, w.err = w.at+int64(n), err
}

// Column takes values of a column, as many of each as there are rows.
func (w *Writer) Column(i int) *ColumnWriter { return w.columns[i] }

// Flush ends a row group and writes it.
func (w *Writer) Flush() error {
	rows := int64(0)
	for i, c := range w.columns {
		c.seal()
		if i == 0 {
			rows = c.rows
		}
		if c.rows != rows {
			w.err = errors.Join(w.err, fmt.Errorf("column %s has %d values, others %d", c.Name, c.rows, rows))
		}
	}
	if rows == 0 || w.err != nil {
		return w.err
	}
	group := format.RowGroup{NumRows: rows, FileOffset: w.at, Ordinal: int16(len(w.meta.RowGroups))}
	for _, c := range w.columns {
		chunk, index := c.writeChunk(w)
		group.Columns = append(group.Columns, chunk)
		group.TotalByteSize += chunk.MetaData.TotalUncompressedSize
		group.TotalCompressedSize += chunk.MetaData.TotalCompressedSize
		w.indexes = append(w.indexes, index)
	}
	w.meta.RowGroups = append(w.meta.RowGroups, group)
	w.meta.NumRows += rows
	return w.err
}

// Close writes what is left and the end of the file.
func (w *Writer) Close() error {
	if err := w.Flush(); err != nil {
		return err
	}
	chunks := func(of func(*format.ColumnChunk, chunkIndex)) {
		at := 0
		for g := range w.meta.RowGroups {
			for c := range w.meta.RowGroups[g].Columns {
				of(&w.meta.RowGroups[g].Columns[c], w.indexes[at])
				at++
			}
		}
	}
	chunks(func(c *format.ColumnChunk, of chunkIndex) {
		if of.bounds != nil {
			c.ColumnIndexOffset, c.ColumnIndexLength = w.at, int32(len(of.bounds))
			w.write(of.bounds)
		}
	})
	chunks(func(c *format.ColumnChunk, of chunkIndex) {
		c.OffsetIndexOffset, c.OffsetIndexLength = w.at, int32(len(of.places))
		w.write(of.places)
	})
	footer := marshal(&w.meta)
	w.write(footer)
	w.write(binary.LittleEndian.AppendUint32(nil, uint32(len(footer))))
	w.write([]byte(magic))
	return w.err
}

// marshal writes a structure of a file's; these always can be.
func marshal(v any) []byte {
	b, err := thrift.Marshal(&thrift.CompactProtocol{}, v)
	if err != nil {
		panic(err)
	}
	return b
}

// ColumnWriter takes the values of a column one by one.
type ColumnWriter struct {
	Column
	page int // bytes
	most int // slots

	rows int64 // of the row group, those of sealed pages
	// of the page that is filled
	slots   int
	def     []uint8 // of each slot, of an optional column
	bools   []bool
	ints    []int32
	longs   []int64
	doubles []float64
	index   []int32     // of texts in the dictionary
	texts   []byte      // those that it has no room for, each behind its length
	bounds  valueBounds // of these
	// of the row group
	dictionary []byte
	list       [][]byte
	words      map[string]int32
	last       int32 // the word before
	full       bool  // the dictionary takes no more
	pages      bytes.Buffer
	sealed     []sealed
	plainSize  int64 // of the pages, if they were not compressed

	*scratch
}

// scratch is memory for the page that is encoded, of one column at a time.
type scratch struct {
	encoder             *zstd.Encoder
	levels, raw, packed []byte
}

// sealed holds the description of a page.
type sealed struct {
	at, size int
	row      int64
	nulls    int
	values   int
	encoding format.Encoding
	valueBounds
}

// valueBounds are the least and the largest of some values, as they are written.
type valueBounds struct {
	known     bool
	low, high []byte
}

// widen takes in others.
func (b *valueBounds) widen(o valueBounds, less func(a, b []byte) bool) {
	if !b.known || less(o.low, b.low) {
		b.low = o.low
	}
	if !b.known || less(b.high, o.high) {
		b.high = o.high
	}
	b.known = true
}

// addSlot counts a row.
func (c *ColumnWriter) addSlot(defined uint8) {
	if c.Optional {
		c.def = append(c.def, defined)
	}
	if c.slots++; c.slots >= c.most || len(c.texts) >= c.page {
		c.seal()
	}
}

// Null takes a row without a value.
func (c *ColumnWriter) Null() { c.addSlot(0) }

// Bool takes a value.
func (c *ColumnWriter) Bool(x bool) { c.bools = append(c.bools, x); c.addSlot(1) }

// Int takes a value.
func (c *ColumnWriter) Int(x int32) { c.ints = append(c.ints, x); c.addSlot(1) }

// Long takes a value.
func (c *ColumnWriter) Long(x int64) { c.longs = append(c.longs, x); c.addSlot(1) }

// Double takes a value.
func (c *ColumnWriter) Double(x float64) { c.doubles = append(c.doubles, x); c.addSlot(1) }

// Text takes a value, which must be UTF-8.
func (c *ColumnWriter) Text(x []byte) {
	if !c.full {
		if len(c.list) > 0 && bytes.Equal(c.list[c.last], x) { // as most are
			c.index = append(c.index, c.last)
			c.addSlot(1)
			return
		}
		at, known := c.words[string(x)]
		if !known && len(c.dictionary)+4+len(x) <= largestDictionary {
			at, known = int32(len(c.list)), true
			word := string(x)
			c.words[word] = at
			c.list = append(c.list, []byte(word))
			c.dictionary = append(binary.LittleEndian.AppendUint32(c.dictionary, uint32(len(x))), x...)
		}
		if known {
			c.last = at
			c.index = append(c.index, at)
			c.addSlot(1)
			return
		}
		c.seal()
		c.full = true
	}
	c.texts = append(binary.LittleEndian.AppendUint32(c.texts, uint32(len(x))), x...)
	if !c.bounds.known || bytes.Compare(x, c.bounds.low) < 0 || bytes.Compare(x, c.bounds.high) > 0 {
		own := append([]byte{}, x...)
		c.bounds.widen(valueBounds{true, own, own}, c.lessBound)
	}
	c.addSlot(1)
}

// seal encodes the page that is filled.
func (c *ColumnWriter) seal() {
	if c.slots == 0 {
		return
	}
	page := sealed{at: c.pages.Len(), row: c.rows}
	c.levels = c.levels[:0]
	if c.Optional {
		c.levels = mustEncode((&rle.Encoding{BitWidth: 1}).EncodeLevels(c.levels, c.def))
	}
	c.encode(&page)
	page.nulls = c.slots - page.values
	c.packed = c.encoder.EncodeAll(c.raw, c.packed[:0])
	c.appendPage(&page, format.PageHeader{
		Type: format.DataPageV2, UncompressedPageSize: int32(len(c.levels) + len(c.raw)), CompressedPageSize: int32(len(c.levels) + len(c.packed)),
		DataPageHeaderV2: thrift.New(format.DataPageHeaderV2{
			NumValues: int32(c.slots), NumNulls: int32(page.nulls), NumRows: int32(c.slots), Encoding: page.encoding,
			DefinitionLevelsByteLength: int32(len(c.levels)), IsCompressed: thrift.New(true),
		}),
	})
	c.sealed = append(c.sealed, page)
	c.rows += int64(c.slots)
	c.slots, c.def = 0, c.def[:0]
	c.bools, c.ints, c.longs, c.doubles, c.index, c.texts = c.bools[:0], c.ints[:0], c.longs[:0], c.doubles[:0], c.index[:0], c.texts[:0]
	c.bounds = valueBounds{}
}

// appendPage adds a page to the column's.
func (c *ColumnWriter) appendPage(page *sealed, head format.PageHeader) {
	head.CRC = int32(crc32.Update(crc32.ChecksumIEEE(c.levels), crc32.IEEETable, c.packed))
	b := marshal(&head)
	c.pages.Write(b)
	c.pages.Write(c.levels)
	c.pages.Write(c.packed)
	page.size = c.pages.Len() - page.at
	c.plainSize += int64(len(b)) + int64(head.UncompressedPageSize)
}

// encode sets raw to the values of the page, and says of it how they lie and within what bounds.
func (c *ColumnWriter) encode(page *sealed) {
	page.encoding = format.Plain
	switch c.Kind {
	case Bool:
		page.values = len(c.bools)
		c.raw = resizeSlice(c.raw, (len(c.bools)+7)/8)
		clear(c.raw)
		for i, x := range c.bools {
			if x {
				c.raw[i/8] |= 1 << (i % 8)
			}
		}
		if page.known = page.values > 0; page.known {
			page.low, page.high = []byte{1}, []byte{0}
			if slices.Contains(c.bools, false) {
				page.low = []byte{0}
			}
			if slices.Contains(c.bools, true) {
				page.high = []byte{1}
			}
		}
	case Int:
		page.values, page.encoding = len(c.ints), format.DeltaBinaryPacked
		c.raw = mustEncode((&delta.BinaryPackedEncoding{}).EncodeInt32(c.raw, c.ints))
		page.valueBounds = boundsOf(c.ints)
	case Long:
		page.values, page.encoding = len(c.longs), format.DeltaBinaryPacked
		c.raw = mustEncode((&delta.BinaryPackedEncoding{}).EncodeInt64(c.raw, c.longs))
		page.valueBounds = boundsOf(c.longs)
	case Double:
		page.values = len(c.doubles)
		c.raw = mustEncode(binary.Append(c.raw[:0], binary.LittleEndian, c.doubles))
		page.valueBounds = boundsOf(c.doubles)
		for _, x := range c.doubles {
			if math.IsNaN(x) || x == 0 { // no order has the one, and two are equal to the other
				page.known = page.known && x == 0
				page.low, page.high = widenZeros(page.low, page.high)
			}
		}
	default:
		if c.full {
			page.values = c.slots - countNulls(c.def)
			c.raw = append(c.raw[:0], c.texts...)
			page.valueBounds = c.bounds
			return
		}
		if c.raw = c.raw[:0]; len(c.index) == 0 { // there may be no dictionary
			return
		}
		page.values, page.encoding = len(c.index), format.RLEDictionary
		c.raw = mustEncode((&rle.DictionaryEncoding{}).EncodeInt32(c.raw, c.index))
		seen := make([]bool, len(c.list))
		for _, i := range c.index {
			if !seen[i] {
				seen[i] = true
				page.widen(valueBounds{true, c.list[i], c.list[i]}, c.lessBound)
			}
		}
	}
}

// widenZeros makes zeros the lowest and the highest of the two that there are.
func widenZeros(low, high []byte) ([]byte, []byte) {
	const negative = 1 << 63
	if len(low) == 8 && binary.LittleEndian.Uint64(low)&^negative == 0 {
		low = binary.LittleEndian.AppendUint64(nil, negative)
	}
	if len(high) == 8 && binary.LittleEndian.Uint64(high)&^negative == 0 {
		high = make([]byte, 8)
	}
	return low, high
}

func countNulls(def []uint8) (n int) {
	for _, defined := range def {
		n += 1 - int(defined)
	}
	return n
}

// boundsOf finds the least and the largest of some values.
func boundsOf[T int32 | int64 | float64](values []T) (b valueBounds) {
	if len(values) > 0 {
		b.known = true
		b.low = mustEncode(binary.Append(nil, binary.LittleEndian, slices.Min(values)))
		b.high = mustEncode(binary.Append(nil, binary.LittleEndian, slices.Max(values)))
	}
	return b
}

// mustEncode gives what was encoded: what is of a column's type always can be.
func mustEncode(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// writeChunk writes the column's pages, and says of them what the end of the file holds.
func (c *ColumnWriter) writeChunk(w *Writer) (format.ColumnChunk, chunkIndex) {
	begin := w.at
	m := format.ColumnMetaData{Type: c.Kind, PathInSchema: []string{c.Name}, Codec: format.Zstd, NumValues: c.rows}
	pages := c.pages.Bytes()
	stats := map[format.Encoding]int32{}
	for _, page := range c.sealed {
		stats[page.encoding]++
	}
	if c.Optional {
		m.Encoding = append(m.Encoding, format.RLE)
	}
	encodings := []format.Encoding{format.Plain, format.DeltaBinaryPacked, format.RLEDictionary}
	for _, encoding := range encodings {
		if stats[encoding] > 0 || encoding == format.Plain && len(c.list) > 0 {
			m.Encoding = append(m.Encoding, encoding)
		}
	}
	if len(c.list) > 0 {
		m.DictionaryPageOffset = begin
		m.EncodingStats = append(m.EncodingStats, format.PageEncodingStats{PageType: format.DictionaryPage, Encoding: format.Plain, Count: 1})
		var own sealed
		c.levels, c.packed = c.levels[:0], c.encoder.EncodeAll(c.dictionary, c.packed[:0])
		from := c.pages.Len()
		own.at = from
		c.appendPage(&own, format.PageHeader{Type: format.DictionaryPage, UncompressedPageSize: int32(len(c.dictionary)), CompressedPageSize: int32(len(c.packed)),
			DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: int32(len(c.list)), Encoding: format.Plain})})
		w.write(c.pages.Bytes()[from:]) // it stands before the pages that need it
		pages = c.pages.Bytes()[:from]
	}
	for _, encoding := range encodings {
		if n := stats[encoding]; n > 0 {
			m.EncodingStats = append(m.EncodingStats, format.PageEncodingStats{PageType: format.DataPageV2, Encoding: encoding, Count: n})
		}
	}
	m.DataPageOffset = w.at
	w.write(pages)
	m.TotalCompressedSize, m.TotalUncompressedSize = w.at-begin, c.plainSize

	var index format.ColumnIndex
	var places format.OffsetIndex
	var bounds valueBounds
	whole := true // all pages with values have bounds
	for _, page := range c.sealed {
		places.PageLocations = append(places.PageLocations, format.PageLocation{Offset: m.DataPageOffset + int64(page.at), CompressedPageSize: int32(page.size), FirstRowIndex: page.row})
		index.NullPages = append(index.NullPages, page.values == 0)
		index.NullCounts = append(index.NullCounts, int64(page.nulls))
		index.MinValues, index.MaxValues = append(index.MinValues, page.low), append(index.MaxValues, page.high)
		m.Statistics.NullCount += int64(page.nulls)
		whole = whole && (page.known || page.values == 0)
		if page.known {
			bounds.widen(page.valueBounds, c.lessBound)
		}
	}
	of := chunkIndex{places: marshal(&places)}
	if whole {
		of.bounds = marshal(&index)
		m.Statistics.MinValue, m.Statistics.MaxValue = bounds.low, bounds.high
	}
	c.rows, c.plainSize, c.full, c.last = 0, 0, false, 0
	c.pages.Reset()
	c.sealed, c.dictionary, c.list = c.sealed[:0], c.dictionary[:0], nil
	clear(c.words)
	return format.ColumnChunk{FileOffset: begin, MetaData: m}, of
}

// lessBound compares bounds.
func (c *ColumnWriter) lessBound(a, b []byte) bool {
	switch c.Kind {
	case Int:
		return int32(binary.LittleEndian.Uint32(a)) < int32(binary.LittleEndian.Uint32(b))
	case Long:
		return int64(binary.LittleEndian.Uint64(a)) < int64(binary.LittleEndian.Uint64(b))
	case Double:
		return math.Float64frombits(binary.LittleEndian.Uint64(a)) < math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return bytes.Compare(a, b) < 0
}
