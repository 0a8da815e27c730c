package parquet

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// largestPage bounds what a page may ask of memory.
const largestPage = 1 << 30

var errSize = errors.New("a page is not as long as it says")

// unpacker decompresses pages.
type unpacker struct{ zstd *zstd.Decoder }

// decompress decompresses src, which becomes size bytes, into the memory of dst where that has
// room. What a page says of its size is not believed before its bytes are there.
func (u *unpacker) decompress(codec format.CompressionCodec, dst, src []byte, size int) (out []byte, err error) {
	switch codec {
	case format.Uncompressed:
		out = src
	case format.Snappy:
		if n, err := snappy.DecodedLen(src); err != nil || n != size || n > 64*len(src) {
			return nil, errSize
		}
		out, err = snappy.Decode(resizeSlice(dst, size), src)
	case format.Zstd:
		if u.zstd == nil {
			if u.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(largestPage), zstd.WithDecodeAllCapLimit(true)); err != nil {
				return nil, err
			}
		}
		if size > len(src)/4*(128<<10) { // a block takes 4 bytes at least, and becomes 128 KiB at most
			return nil, errSize
		}
		out, err = u.zstd.DecodeAll(src, resizeSlice(dst, size)[:0:size])
		if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
			return nil, errSize
		}
	case format.Lz4Raw:
		if size > 256*len(src) {
			return nil, errSize
		}
		out = resizeSlice(dst, size)
		var n int
		n, err = lz4.UncompressBlock(src, out)
		out = out[:max(n, 0)]
	case format.Gzip:
		var r *gzip.Reader
		if r, err = gzip.NewReader(bytes.NewReader(src)); err == nil {
			out, err = readTo(dst, r, size)
		}
	case format.Brotli:
		out, err = readTo(dst, brotli.NewReader(bytes.NewReader(src)), size)
	default:
		return nil, fmt.Errorf("compression %s is not known", codec)
	}
	if err != nil {
		return nil, fmt.Errorf("decompress a page: %w", err)
	}
	if len(out) != size {
		return nil, errSize
	}
	return out, nil
}

// readTo reads one byte more than size at most.
func readTo(dst []byte, r io.Reader, size int) ([]byte, error) {
	b := bytes.NewBuffer(dst[:0])
	_, err := b.ReadFrom(io.LimitReader(r, int64(size)+1))
	return b.Bytes(), err
}
