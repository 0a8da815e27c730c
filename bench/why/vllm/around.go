package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// What stands around a server.

// prefixes asks chats that begin with one of more system prompts than the cache holds.
func prefixes(b *bench) (string, func()) {
	const many, words, chats = 8, 2400, 60
	file := filepath.Join(b.dir, "prefixes.jsonl")
	f, err := os.Create(file)
	must(err)
	defer f.Close()
	dice := rand.New(rand.NewPCG(1, 1))
	some := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = []string{"the", "king", "and", "queen", "of", "a", "night", "to", "love", "my"}[dice.IntN(10)]
		}
		return strings.Join(list, " ")
	}
	var systems []string
	for range many {
		systems = append(systems, some(words))
	}
	write := json.NewEncoder(f)
	for range chats {
		for _, system := range systems {
			must(write.Encode(map[string]any{"messages": []map[string]string{{"role": "system", "content": system}, {"role": "user", "content": some(20)}}}))
		}
	}
	b.extra = []string{"--workload", file}
	return b.url, func() {}
}

// others are clients that Pitot does not know of: each asks again as soon as it has its
// answer.
func others(b *bench) (string, func()) {
	model := modelOf(b.url)
	done := make(chan struct{})
	var wait sync.WaitGroup
	for range 6 {
		wait.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				body, err := json.Marshal(map[string]any{"model": model, "max_tokens": 100, "ignore_eos": true, "messages": []map[string]string{{"role": "user", "content": strings.Repeat("the king ", 100)}}})
				must(err)
				r, err := http.Post(b.url+"/v1/chat/completions", "application/json", bytes.NewReader(body))
				if err != nil {
					time.Sleep(100 * time.Millisecond)
					continue
				}
				_, _ = io.Copy(io.Discard, r.Body)
				r.Body.Close()
			}
		})
	}
	time.Sleep(2 * time.Second)
	return b.url, func() { close(done); wait.Wait() }
}

// modelOf is the server's first.
func modelOf(at string) string {
	r, err := http.Get(at + "/v1/models")
	must(err)
	defer r.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	must(json.NewDecoder(r.Body).Decode(&list))
	if len(list.Data) == 0 {
		must(fmt.Errorf("%s has no model", at))
	}
	return list.Data[0].ID
}

// buffering is a proxy that lets what it holds go by the clock.
func buffering(b *bench) (string, func()) {
	to, err := url.Parse(b.url)
	must(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	server := &http.Server{Handler: &held{httputil.NewSingleHostReverseProxy(to), 200 * time.Millisecond}}
	go func() { _ = server.Serve(l) }()
	return "http://" + l.Addr().String(), func() { _ = server.Close() }
}

// held holds what a handler writes.
type held struct {
	http.Handler
	every time.Duration
}

// ServeHTTP implements [http.Handler].
func (h *held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := &parcel{ResponseWriter: w}
	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(h.every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.let()
			case <-done:
				return
			}
		}
	})
	defer func() { // also where the proxy gives up an answer by a panic
		close(done)
		wait.Wait()
		p.let()
	}()
	h.Handler.ServeHTTP(p, r)
}

// parcel is what is held of one answer.
type parcel struct {
	http.ResponseWriter
	mu   sync.Mutex
	kept bytes.Buffer
}

// Write implements [io.Writer].
func (p *parcel) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept.Write(b)
}

// WriteHeader implements [http.ResponseWriter].
func (p *parcel) WriteHeader(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ResponseWriter.WriteHeader(status)
}

// let lets it go.
func (p *parcel) let() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept.Len() == 0 {
		return
	}
	_, _ = p.kept.WriteTo(p.ResponseWriter)
	if f, ok := p.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// starvedClient lets Pitot run only where something else leaves its core.
func starvedClient(b *bench) (string, func()) {
	b.run = []string{"taskset", "-c", fmt.Sprint(b.client), "nice", "-n", "15"}
	return b.url, hog(b.client, 0)
}

// starvedServer lets the API server run only where something else leaves a core that is
// not the engine's.
func starvedServer(b *bench) (string, func()) {
	place(b.front(), b.client, 5, false)
	stop := hog(b.client, 0)
	return b.url, func() {
		stop()
		place(b.front(), b.client, 0, b.lift)
	}
}
