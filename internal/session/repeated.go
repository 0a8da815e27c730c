package session

import (
	"encoding/binary"
	"hash/fnv"

	"pitot/internal/workload"
)

// How much of a workload is looked through for what its prompts share.
const (
	mostShared      = 4000     // requests
	mostSharedBytes = 64 << 20 // of their prompts
	stretch         = 64       // bytes: a prefix cache has whole blocks, of some 16 tokens
)

// repeatedShare is the share of the prompts of the first n requests that stood at the begin of
// an earlier one: what an unlimited prefix cache would have of them. nil where that is not
// known.
func repeatedShare(src workload.Source, n int64) *float64 {
	seen := map[uint64]bool{}
	all, again := 0, 0
	for i := range min(n, mostShared) {
		r, err := src.At(i)
		if err != nil {
			return nil // the file is gone or another one
		}
		h := fnv.New64a()
		text := make([]byte, 0, 4096)
		for _, m := range r.Messages {
			text = append(append(text, m.Role...), 0)
			for _, s := range m.Segments {
				text = append(text, s.Text...)
				for k := range s.Words { // equal words are equal text, of about five bytes each
					text = binary.LittleEndian.AppendUint64(text, s.Seed+uint64(k))[:len(text)+5]
				}
			}
		}
		begins := true
		for from := 0; from < len(text); from += stretch {
			part := text[from:min(from+stretch, len(text))]
			_, _ = h.Write(part)
			key := h.Sum64() // of all up to here
			begins = begins && len(part) == stretch && seen[key]
			if begins {
				again += len(part)
			}
			seen[key] = true
		}
		if all += len(text); all > mostSharedBytes {
			break
		}
	}
	if all == 0 {
		return nil
	}
	share := float64(again) / float64(all)
	return &share
}
