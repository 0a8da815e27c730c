package record

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
	codec "github.com/parquet-go/parquet-go/compress/zstd"
)

// pageCodec compresses the pages of a file as the codec of the Parquet library does,
// which keeps 8 MB for each of its encoders: one that looks back no further than a
// page is long takes a tenth of that.
type pageCodec struct {
	codec.Codec
	encoder *zstd.Encoder
}

// newPageCodec is for pages of about so many bytes, a power of two.
func newPageCodec(page int) *pageCodec {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(page), zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(fmt.Errorf("page of %d bytes: %w", page, err))
	}
	return &pageCodec{encoder: e}
}

// Encode implements the library's codec.
func (c *pageCodec) Encode(dst, src []byte) ([]byte, error) {
	return c.encoder.EncodeAll(src, dst[:0]), nil
}
