package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// keeping lets a table of hours be made in pieces: what a piece came to is kept in a
// directory, and after some time no new piece is begun. The same command goes on.
type keeping struct {
	dir        string    // "" keeps nothing
	until      time.Time // zero for as long as it takes
	unfinished atomic.Bool
}

var keep keeping

// piece gives what make does, or what it did when the same was asked before. The key
// says all that it follows from but for the program itself.
func piece[T any](key string, make func() T) (out T) {
	h := fnv.New64a()
	h.Write([]byte(key))
	file := filepath.Join(keep.dir, fmt.Sprintf("%016x.json", h.Sum64()))
	if keep.dir != "" {
		if data, err := os.ReadFile(file); err == nil && json.Unmarshal(data, &out) == nil {
			return out
		}
	}
	if !keep.until.IsZero() && time.Now().After(keep.until) {
		keep.unfinished.Store(true)
		return out
	}
	out = make()
	if keep.dir != "" {
		data, err := json.Marshal(out)
		if err == nil {
			err = os.MkdirAll(keep.dir, 0o755)
		}
		if err == nil {
			err = os.WriteFile(file, data, 0o644)
		}
		if err != nil {
			log.Fatalf("keep a piece: %v", err)
		}
	}
	return out
}
