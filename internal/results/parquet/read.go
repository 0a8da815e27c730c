// Package parquet reads and writes Parquet files: their pages, columns and rows. What a
// footer and a page's head hold, and how the writer's values are encoded, it leaves to packages
// of github.com/parquet-go/parquet-go; of that module's own root it has nothing, which brings much
// along. It has no clock and no file.
package parquet

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

// magic begins and ends a file.
const magic = "PAR1"

// mostSlots bounds how many values the largest pages of all columns may have together, nulls
// included: a few bytes can stand for any number of nulls.
const mostSlots = 1 << 26

// File is one that can be read.
type File struct {
	Root *Node

	at       io.ReaderAt
	end      int64 // of its pages
	meta     format.FileMetaData
	leaves   []*Node
	unpacker unpacker
	slots    int   // what the columns have memory for together
	most     []int // each of them: that of the largest page yet
}

// Open reads the footer of a file. Pages are read when they are asked for.
func Open(at io.ReaderAt, size int64) (*File, error) {
	var tail [8]byte
	if size < int64(len(magic)+len(tail)) {
		return nil, errors.New("too short for a Parquet file")
	}
	if _, err := at.ReadAt(tail[:], size-int64(len(tail))); err != nil {
		return nil, err
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	switch end := string(tail[4:]); {
	case end == "PARE":
		return nil, errors.New("the file is encrypted")
	case end != magic || length > size-int64(len(magic)+len(tail)):
		return nil, errors.New("the file does not end as a Parquet file does: it may be cut")
	}
	f := &File{at: at, end: size - int64(len(tail)) - length}
	footer := make([]byte, length)
	if _, err := at.ReadAt(footer, f.end); err != nil {
		return nil, err
	}
	if _, err := unmarshal(footer, &f.meta); err != nil {
		return nil, fmt.Errorf("read footer: %w", err)
	}
	var err error
	if f.Root, f.leaves, err = schemaOf(f.meta.Schema); err != nil {
		return nil, err
	}
	for i := range f.meta.RowGroups {
		group := &f.meta.RowGroups[i]
		if len(group.Columns) != len(f.leaves) {
			return nil, errors.New("a row group has not the columns of the schema")
		}
		if group.NumRows < 0 || group.NumRows > 0 && len(f.leaves) == 0 {
			return nil, fmt.Errorf("a row group of %d columns has %d rows", len(f.leaves), group.NumRows)
		}
	}
	f.most = make([]int, len(f.leaves))
	return f, nil
}

// Column is the column of that name in the root, nil where there is none, and its place among
// those of a row group.
func (f *File) Column(name string) (n *Node, at int) {
	for _, n := range f.Root.Children {
		if n.Name == name {
			return n, n.leaves[0]
		}
	}
	return nil, 0
}

// GroupCount returns the number of row groups.
func (f *File) GroupCount() int { return len(f.meta.RowGroups) }

// Rows returns the number of rows of a row group.
func (f *File) Rows(group int) int64 { return f.meta.RowGroups[group].NumRows }

// Page is a part of a column of a row group. A slot is a value or a null, or a list without
// values.
type Page struct {
	Slots int
	Def   []uint8 // levels, nil where each slot has a value
	Rep   []uint8 // nil where nothing repeats
	Index []int32 // of each value in the dictionary, nil where Values are in their order
	Values
}

// Pages reads a column of a row group, page after page.
type Pages struct {
	file   *File
	column int
	of     *Node
	codec  format.CompressionCodec
	left   int64 // slots
	in     *bufio.Reader

	packed, plain []byte // of the page that was read last
	dictionary    Values
	words         int // in the dictionary, -1 before there is one
	page          Page
	own           Values // memory of pages that use no dictionary
	index         []int32
	def, rep      []uint8
}

// ReadPages begins to read a column, by its place among all that have values.
func (f *File) ReadPages(group, column int) (*Pages, error) {
	chunk := &f.meta.RowGroups[group].Columns[column]
	m := &chunk.MetaData
	begin := m.DataPageOffset
	if m.DictionaryPageOffset > 0 && m.DictionaryPageOffset < begin {
		begin = m.DictionaryPageOffset
	}
	of := f.leaves[column]
	if chunk.FilePath != "" || m.Type != of.Kind() || begin < 0 || m.TotalCompressedSize < 0 || m.TotalCompressedSize > f.end-begin {
		return nil, errors.New("its pages are not in the file")
	}
	p := &Pages{file: f, column: column, of: of, codec: m.Codec, left: m.NumValues, words: -1}
	p.in = bufio.NewReaderSize(io.NewSectionReader(f.at, begin, m.TotalCompressedSize), headBytes)
	return p, nil
}

// Next is the next page, [io.EOF] behind the last one. It stands until the next is asked for.
func (p *Pages) Next() (*Page, error) {
	for p.left > 0 {
		head, err := p.readHeader()
		if err != nil {
			return nil, err
		}
		size, packed := int(head.UncompressedPageSize), int(head.CompressedPageSize)
		if size < 0 || packed < 0 || size > largestPage || packed > largestPage {
			return nil, errSize
		}
		if p.packed, err = readExactly(p.packed, p.in, packed); err != nil {
			return nil, err
		}
		if head.CRC != 0 && uint32(head.CRC) != crc32.ChecksumIEEE(p.packed) { // many writers have none, which reads as 0
			return nil, errors.New("a page is damaged: it has not the checksum that was written with it")
		}
		switch {
		case head.Type == format.DictionaryPage && head.DictionaryPageHeader.Valid:
			err = p.readDictionary(&head.DictionaryPageHeader.V, size)
		case head.Type == format.DataPage && head.DataPageHeader.Valid:
			err = p.readV1(&head.DataPageHeader.V, size)
		case head.Type == format.DataPageV2 && head.DataPageHeaderV2.Valid:
			err = p.readV2(&head.DataPageHeaderV2.V, size)
		default: // an index of no use, or what is not known yet
			continue
		}
		if err != nil {
			return nil, err
		}
		if head.Type != format.DictionaryPage && p.page.Slots > 0 {
			p.left -= int64(p.page.Slots)
			return &p.page, nil
		}
	}
	return nil, io.EOF
}

// Most heads of pages are far shorter; those that have the least and the largest of its texts may
// be longer.
const headBytes, longHeadBytes = 1 << 12, 1 << 24

// readHeader reads that of the next page.
func (p *Pages) readHeader() (head format.PageHeader, err error) {
	b, end := p.in.Peek(p.in.Size())
	n, err := unmarshal(b, &head)
	for err == errShort && end == nil && p.in.Size() < longHeadBytes {
		p.in = bufio.NewReaderSize(p.in, 16*p.in.Size())
		b, end = p.in.Peek(p.in.Size())
		n, err = unmarshal(b, &head)
	}
	if err == errShort {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return head, err
	}
	_, err = p.in.Discard(n)
	return head, err
}

// readExactly reads n bytes in the memory of b, and takes no more before they are there.
func readExactly(b []byte, r io.Reader, n int) ([]byte, error) {
	const step = 1 << 20
	for b = b[:0]; len(b) < n; {
		more := min(n-len(b), max(step, len(b)))
		from := len(b)
		if cap(b) < from+more {
			b = append(make([]byte, 0, from+more), b...)
		}
		b = b[:from+more]
		if _, err := io.ReadFull(r, b[from:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return b[:0], err
		}
	}
	return b, nil
}

func (p *Pages) readDictionary(head *format.DictionaryPageHeader, size int) error {
	data, err := p.file.unpacker.decompress(p.codec, nil, p.packed, size)
	if err != nil {
		return err
	}
	if p.codec == format.Uncompressed {
		data = append([]byte(nil), data...) // its texts outlive the page
	}
	if head.NumValues < 0 || head.NumValues > mostSlots || p.words >= 0 {
		return errShort
	}
	p.words = int(head.NumValues)
	return p.dictionary.decode(p.of, format.Plain, data, p.words)
}

// readV1 reads a page whose levels are compressed with its values.
func (p *Pages) readV1(head *format.DataPageHeader, size int) (err error) {
	if p.plain, err = p.unpackPage(p.packed, size); err != nil {
		return err
	}
	data, n := p.plain, int(head.NumValues)
	if err := p.beginPage(n); err != nil {
		return err
	}
	levels := func(dst *[]uint8, encoding format.Encoding, most uint8) ([]uint8, error) {
		if most == 0 {
			return nil, nil
		}
		if encoding != format.RLE || len(data) < 4 {
			return nil, fmt.Errorf("levels in %s are not known", encoding)
		}
		length := int(binary.LittleEndian.Uint32(data))
		if data = data[4:]; length > len(data) {
			return nil, errShort
		}
		of := data[:length]
		data = data[length:]
		return levelsOf(dst, of, most, n)
	}
	if p.page.Rep, err = levels(&p.rep, head.RepetitionLevelEncoding, p.of.rep); err != nil {
		return err
	}
	if p.page.Def, err = levels(&p.def, head.DefinitionLevelEncoding, p.of.def); err != nil {
		return err
	}
	return p.readValues(head.Encoding, data)
}

// readV2 reads a page whose levels are not compressed.
func (p *Pages) readV2(head *format.DataPageHeaderV2, size int) (err error) {
	n, rep, def := int(head.NumValues), int(head.RepetitionLevelsByteLength), int(head.DefinitionLevelsByteLength)
	if err := p.beginPage(n); err != nil {
		return err
	}
	if rep < 0 || def < 0 || rep > len(p.packed) || def > len(p.packed)-rep || rep+def > size {
		return errShort
	}
	if p.page.Rep, err = levelsOf(&p.rep, p.packed[:rep], p.of.rep, n); err != nil {
		return err
	}
	if p.page.Def, err = levelsOf(&p.def, p.packed[rep:rep+def], p.of.def, n); err != nil {
		return err
	}
	data := p.packed[rep+def:]
	if (!head.IsCompressed.Valid || head.IsCompressed.V) && len(data) > 0 {
		if p.plain, err = p.unpackPage(data, size-rep-def); err != nil {
			return err
		}
		data = p.plain
	}
	return p.readValues(head.Encoding, data)
}

func (p *Pages) unpackPage(packed []byte, size int) ([]byte, error) {
	if p.codec == format.Uncompressed { // no memory is shared with what is read next
		return append(p.plain[:0], packed...), nil
	}
	return p.file.unpacker.decompress(p.codec, p.plain, packed, size)
}

func (p *Pages) beginPage(n int) error {
	if n < 0 || n > mostSlots || int64(n) > p.left {
		return errShort
	}
	if most := &p.file.most[p.column]; n > *most {
		if p.file.slots += n - *most; p.file.slots > mostSlots {
			return fmt.Errorf("pages of over %d values at once", mostSlots)
		}
		*most = n
	}
	p.page.Slots = n
	return nil
}

// levelsOf reads levels up to most; none are written where that is 0.
func levelsOf(memory *[]uint8, data []byte, most uint8, n int) ([]uint8, error) {
	if most == 0 {
		return nil, nil
	}
	dst, err := decodeHybrid(*memory, data, bits.Len8(most), n)
	if err != nil {
		return nil, err
	}
	*memory = dst
	if slices.ContainsFunc(dst, func(level uint8) bool { return level > most }) {
		return nil, errors.New("a level is too high")
	}
	return dst, nil
}

// readValues reads those of the slots that have one.
func (p *Pages) readValues(encoding format.Encoding, data []byte) (err error) {
	n := p.page.Slots
	if p.page.Def != nil {
		n = 0
		for _, level := range p.page.Def {
			if level == p.of.def {
				n++
			}
		}
		if n == p.page.Slots {
			p.page.Def = nil
		}
	}
	const plainDictionary = 2 // as old files call it
	if encoding != format.RLEDictionary && encoding != plainDictionary {
		p.page.Index = nil
		err = p.own.decode(p.of, encoding, data, n)
		p.page.Values = p.own
		return err
	}
	p.page.Values = p.dictionary
	if n == 0 {
		p.page.Index = p.index[:0]
		return nil
	}
	if p.words < 0 || len(data) == 0 {
		return errShort
	}
	if p.index, err = decodeHybrid(p.index, data[1:], int(data[0]), n); err != nil {
		return err
	}
	if slices.ContainsFunc(p.index, func(i int32) bool { return i < 0 || int(i) >= p.words }) {
		return errors.New("a page has a word that is not in its dictionary")
	}
	p.page.Index = p.index
	return nil
}
