package serve

import "strconv"

// frameSpace is the number of bytes left free before an event, for the size line of its chunk.
const frameSpace = 10

// frameChunk returns an HTTP chunk of b, which is frameSpace free bytes, the data and a final CRLF.
// It writes the size into the free bytes.
func frameChunk(b []byte) []byte {
	var size [16]byte
	line := strconv.AppendInt(size[:0], int64(len(b)-frameSpace-2), 16)
	line = append(line, "\r\n"...)
	at := frameSpace - len(line)
	copy(b[at:], line)
	return b[at:]
}
