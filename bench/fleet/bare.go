package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// bareServer is the least that answers what is asked of a completion server: a goroutine for each
// connection, whose answers' events are the same bytes again and again, one write each, as soon as
// the one before is out (or every pace), or batch of them in one write. It knows no fault, no
// queue and no engine.
func bareServer(pace time.Duration, batch int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("serving on http://%s\n", l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with that
		os.Exit(0)
	}()
	var load asked
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go answer(c, pace, batch, &load)
	}
}

const (
	streamHead = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
	streamEnd  = `{"id":"c","object":"text_completion","created":1,"model":"bare","choices":[{"index":0,"text":"","finish_reason":"length"}]}`
)

// event is one as a chunk of the answer.
func event(data string) []byte {
	data = "data: " + data + "\n\n"
	return fmt.Appendf(nil, "%x\r\n%s\r\n", len(data), data)
}

// loaded is said when so many requests have come, none a second after the one before, that a load
// has begun.
const loaded, loadedBy = "loaded", 32

// asked counts the requests of a load.
type asked struct {
	mu   sync.Mutex
	n    int
	last time.Time
}

func (a *asked) count() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if now.Sub(a.last) > time.Second {
		a.n = 0
	}
	if a.n++; a.n == loadedBy {
		fmt.Println(loaded)
	}
	a.last = now
}

func answer(c net.Conn, pace time.Duration, batch int, load *asked) {
	defer c.Close()
	token := event(`{"id":"c","object":"text_completion","created":1,"model":"bare","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null}]}`)
	tokens := bytes.Repeat(token, batch)
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if !strings.HasSuffix(r.URL.Path, "/completions") {
			text := `{"object":"list","data":[{"id":"bare","object":"model","max_model_len":100000}]}`
			if !strings.HasSuffix(r.URL.Path, "/models") {
				fmt.Fprint(c, "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
				continue
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s", len(text), text)
			continue
		}
		load.count()
		n := number(string(body), `"max_tokens":`)
		if _, err := io.WriteString(c, streamHead); err != nil {
			return
		}
		for due := time.Now(); n > 0; n -= batch {
			if pace > 0 {
				due = due.Add(pace)
				time.Sleep(time.Until(due))
			}
			if _, err := c.Write(tokens[:min(n, batch)*len(token)]); err != nil {
				return
			}
		}
		usage := fmt.Sprintf(`{"id":"c","object":"text_completion","created":1,"model":"bare","choices":[],"usage":{"prompt_tokens":16,"completion_tokens":%d,"total_tokens":%d}}`,
			number(string(body), `"max_tokens":`), 16+number(string(body), `"max_tokens":`))
		end := append(event(streamEnd), event(usage)...)
		end = append(end, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"...)
		if _, err := c.Write(end); err != nil {
			return
		}
	}
}

// number is the one behind a key of a JSON object, 16 where there is none.
func number(body, key string) int {
	_, rest, ok := strings.Cut(body, key)
	if !ok {
		return 16
	}
	rest = strings.TrimSpace(rest)
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	n, err := strconv.Atoi(rest[:end])
	if err != nil {
		return 16
	}
	return n
}
