// Command tokenizer holds Pitot's tokenizers against what another library made of the same texts,
// and measures their speed:
//
//	python3 bench/tokenizer/corpus.py texts 1000000
//	python3 bench/tokenizer/reference.py tokenizer.json texts ids
//	go run ./bench/tokenizer tokenizer.json texts ids
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"pitot/internal/tokenizer"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("tokenizer FILE TEXTS [IDS]")
	}
	began := processor()
	t, err := tokenizer.Open(args[0])
	if err != nil {
		return err
	}
	fmt.Printf("%s, read in %v of processor\n", t.Name(), (processor() - began).Round(time.Millisecond))
	data, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	var texts [][]byte
	size := 0
	for len(data) >= 4 {
		n := binary.LittleEndian.Uint32(data)
		texts = append(texts, data[4:4+n])
		data = data[4+n:]
		size += int(n)
	}
	e := t.NewEncoder()
	var ids []uint32
	tokens := 0
	used := processor()
	for _, text := range texts {
		if ids, err = e.Append(ids[:0], text); err != nil {
			return err
		}
		tokens += len(ids)
	}
	took := processor() - used
	fmt.Printf("pitot: %d texts, %.1f MB, %d tokens in %.2f s of processor, %.1f MB/s\n", len(texts), float64(size)/1e6, tokens, took.Seconds(), float64(size)/1e6/took.Seconds())
	if len(args) < 3 {
		return nil
	}
	want, err := os.ReadFile(args[2])
	if err != nil {
		return err
	}
	wrong := 0
	for i, text := range texts {
		n := int(binary.LittleEndian.Uint32(want))
		reference := make([]uint32, n)
		for k := range reference {
			reference[k] = binary.LittleEndian.Uint32(want[4+4*k:])
		}
		want = want[4+4*n:]
		if ids, err = e.Append(ids[:0], text); err != nil {
			return err
		}
		if !slices.Equal(ids, reference) {
			if wrong++; wrong <= 20 {
				at := 0
				for at < min(len(ids), len(reference)) && ids[at] == reference[at] {
					at++
				}
				fmt.Printf("text %d %.200q differs at token %d:\n  ids       %v\n  reference %v\n", i, text, at, cut(t, ids, at), cut(t, reference, at))
			}
		}
	}
	fmt.Printf("%d of %d texts differ\n", wrong, len(texts))
	return nil
}

// processor is the time that this process had of the processor: others may be busy beside it.
func processor() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func cut(t *tokenizer.Tokenizer, ids []uint32, at int) (list []string) {
	for _, id := range ids[min(len(ids), max(0, at-1)):min(len(ids), at+6)] {
		list = append(list, fmt.Sprintf("%d %q", id, t.Text(id)))
	}
	return list
}
