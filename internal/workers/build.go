package workers

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"pitot/internal/results/result"
	"pitot/internal/say"
)

// BuildID returns the build that a worker and its coordinator must have in common. A commit
// identifies it. Where there is none, or files were changed since, the linker's own name of the
// program does.
func BuildID(v result.Version) string {
	build := fmt.Sprintf("%s %s %s", v.Version, v.Commit, v.Go)
	if v.Commit == "" || v.Commit == "unknown" || strings.HasSuffix(v.Commit, "-dirty") {
		build += " " + linked()
	}
	return build
}

// linked is the name that Go's linker gave this program: a hash of what it was made of, "" where
// it cannot be read.
var linked = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	head := make([]byte, 64<<10) // it stands in front, see cmd/internal/buildid
	n, _ := io.ReadFull(file, head)
	return linkedIn(head[:n])
})

// linkedIn finds that name at the beginning of a program: in a note of its own where that is of
// Linux, else before its first instruction.
func linkedIn(head []byte) string {
	const note = "\x04\x00\x00\x00Go\x00\x00" // kind 4, of Go; the length of its text stands before
	if at := bytes.Index(head, []byte(note)); at >= 4 {
		text := head[at+len(note):]
		return contentID(text[:min(uint64(binary.LittleEndian.Uint32(head[at-4:])), uint64(len(text)))])
	}
	_, rest, found := bytes.Cut(head, []byte("\xff Go build ID: \""))
	name, _, ended := bytes.Cut(rest, []byte("\""))
	if !found || !ended {
		return ""
	}
	return contentID(name)
}

// contentID is the part of a name that is of what the program holds; others are of how it was made.
func contentID(name []byte) string { return string(name[bytes.LastIndexByte(name, '/')+1:]) }

// otherBuild refuses a worker.
func otherBuild(theirs, ours string) error {
	return say.Errorf("the worker is pitot %s, the coordinator pitot %s", theirs, ours).WithHint("run the same build everywhere: numbers of two programs are not those of one")
}
