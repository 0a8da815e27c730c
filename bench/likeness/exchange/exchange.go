// Package exchange has requests, what a server answered them with, and in what
// the answers of two servers differ that should not.
package exchange

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
)

// File is exchanges with one server, and which server that was.
type File struct {
	Origin    string     `json:"origin"`
	Exchanges []Exchange `json:"exchanges"`
}

// Exchange is a request and its answer.
type Exchange struct {
	Request
	Answer
}

// Request is what a server is asked. Long prompts are written short: a prompt or
// messages of {"ids": n}, {"words": n} or {"letters": n}.
type Request struct {
	Name    string            `json:"name"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Body    map[string]any    `json:"body,omitempty"`
	Raw     *string           `json:"raw,omitempty"`     // the body as it is, in place of Body
	Headers map[string]string `json:"headers,omitempty"` // Content-Type is JSON unless it is here, "" is none
}

// Answer is what a server sent.
type Answer struct {
	Status int               `json:"status"`
	Allow  string            `json:"allow,omitempty"`
	Type   string            `json:"type,omitempty"`
	Sent   map[string]string `json:"sent,omitzero"` // other header lines, but for those of every answer; nil where they were not recorded
	Body   string            `json:"answer"`
}

// Read reads a file of exchanges.
func Read(name string) (f File, err error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return f, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&f); err != nil {
		return f, fmt.Errorf("read %s: %w", name, err)
	}
	if f.Origin == "" || len(f.Exchanges) == 0 {
		return f, fmt.Errorf("read %s: it has no origin, or no exchanges", name)
	}
	return f, nil
}

// Write writes the file.
func (f *File) Write(name string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(f); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

// httpRequest is the request as it goes to a server.
func (x *Request) httpRequest(url string) (*http.Request, error) {
	body := ""
	switch {
	case x.Raw != nil:
		body = *x.Raw
	case x.Body != nil:
		full := maps.Clone(x.Body)
		for _, field := range []string{"prompt", "messages", "input"} {
			if v, ok := full[field].(map[string]any); ok {
				full[field] = long(field, v)
			}
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(full); err != nil {
			return nil, err
		}
		body = strings.TrimSuffix(b.String(), "\n")
	}
	r, err := http.NewRequest(x.Method, url+x.Path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if x.Method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range x.Headers {
		if r.Header.Set(name, value); value == "" {
			r.Header.Del(name)
		}
	}
	return r, nil
}

// long is the prompt, or the messages, that a short form stands for.
func long(field string, of map[string]any) any {
	length := func(name string) int {
		n, _ := of[name].(json.Number)
		i, _ := n.Int64()
		return int(i)
	}
	if n := length("ids"); n > 0 {
		return slices.Repeat([]int{5}, n)
	}
	text := strings.Repeat("hello ", length("words")) + strings.Repeat("e", length("letters"))
	if field != "messages" {
		return text
	}
	return []any{map[string]any{"role": "user", "content": text}}
}

// usual are the header lines that every answer has, or that the transport
// decides.
var usual = []string{"Date", "Server", "Content-Length", "Content-Type", "Allow", "Connection", "Transfer-Encoding"}

// Ask sends the request to a server.
func (x *Request) Ask(c *http.Client, url string) (a Answer, err error) {
	r, err := x.httpRequest(url)
	if err != nil {
		return a, err
	}
	resp, err := c.Do(r)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	a = Answer{
		Status: resp.StatusCode, Allow: resp.Header.Get("Allow"), Type: resp.Header.Get("Content-Type"),
		Sent: map[string]string{}, Body: string(body),
	}
	for name, values := range resp.Header {
		if !slices.Contains(usual, name) {
			a.Sent[name] = strings.ReplaceAll(strings.Join(values, ", "), url, "")
		}
	}
	return a, err
}
