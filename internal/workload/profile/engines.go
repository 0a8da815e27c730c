package profile

import (
	"bufio"
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Logs that engines print. vLLM names a request when it comes in; what it took, and how long
// the prompt was, stands there with --enable-log-requests at the level DEBUG or in versions
// that print prompt_token_ids. SGLang says all of it when a request ends.

// engineOf tells whose log it is, "" for nobody's that is known.
func engineOf(head []byte) string {
	head = bytes.TrimLeft(head, " \t\r\n")
	if len(head) > 0 && head[0] == '{' {
		return ""
	}
	for line := range bytes.Lines(head) {
		switch {
		case bytes.Contains(line, []byte("Finish: obj=")), bytes.Contains(line, []byte("Receive: obj=")):
			return "sglang"
		case vllmReceived.Match(line), vllmEnded.Match(line):
			return "vllm"
		}
	}
	return ""
}

var (
	vllmReceived = regexp.MustCompile(`Received request ([^\s:]+): `)
	vllmEnded    = regexp.MustCompile(`Generated response ([^\s:]+?)(?: \(([a-z ]+)\))?: `)
	tokenIDs     = regexp.MustCompile(`\bprompt_token_ids: \[([0-9, ]*)\]`)
	outputIDs    = regexp.MustCompile(`\boutput_token_ids: (?:array\('[a-zA-Z]', )?\[([0-9, ]*)\]`)
	finished     = regexp.MustCompile(`\bfinish_reason: '?([a-z_]+)'?`)
	lineTime     = regexp.MustCompile(`(?:^|[\s\[(])(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?|\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,9})?)`)
	sgCount      = regexp.MustCompile(`'(prompt_tokens|completion_tokens|cached_tokens)': (\d+)`)
	sgLatency    = regexp.MustCompile(`'e2e_latency': ([0-9.]+)`)
	sgFinish     = regexp.MustCompile(`'finish_reason': \{'type': '([a-z_]+)'`)
	sgInput      = regexp.MustCompile(`\binput_ids=\[([0-9, ]*)\]`)
	sgSession    = regexp.MustCompile(`\bsession_id='([^']+)'`)
)

// mostAwaited bounds the requests of vLLM under way at a time, whose end may come.
const mostAwaited = 1 << 15

func (l *Log) readEngine(engine string, in *bufio.Reader, hand func(*Request)) error {
	l.Format = engine
	awaits := map[string]*Request{}
	var order []string
	flush := func(id string) {
		if q := awaits[id]; q != nil {
			delete(awaits, id)
			hand(q)
		}
	}
	lengths := false
	err := eachLine(in, "leave the prompts out: a lower level of the log", func(line int, text []byte) {
		if engine == "sglang" {
			l.addSGLangLine(line, text, hand)
			return
		}
		if m := vllmReceived.FindSubmatch(text); m != nil {
			at, ok := lineStamp(text)
			if !ok {
				l.reject(line, "no time at its beginning")
				return
			}
			q := newRequest(at)
			if ids := tokenIDs.FindSubmatch(text); ids != nil && len(ids[1]) > 0 {
				q.Prompt = bytes.Clone(ids[1])
				q.Input = bytes.Count(ids[1], []byte(",")) + 1
				lengths = true
			}
			id := string(m[1])
			awaits[id] = q
			if order = append(order, id); len(order) > mostAwaited {
				flush(order[0])
				order = order[1:]
			}
			return
		}
		m := vllmEnded.FindSubmatch(text)
		if m == nil {
			return
		}
		q := awaits[string(m[1])]
		if q == nil || string(m[2]) == "streaming delta" {
			return
		}
		if at, ok := lineStamp(text); ok {
			q.End = at
		}
		if ids := outputIDs.FindSubmatch(text); ids != nil && len(ids[1]) > 0 {
			q.Output = bytes.Count(ids[1], []byte(",")) + 1
		}
		if f := finished.FindSubmatch(text); f != nil && string(f[1]) != "streaming_complete" {
			q.Finish = string(f[1])
		}
		flush(string(m[1]))
	})
	for _, id := range order {
		flush(id)
	}
	if engine == "vllm" && !lengths {
		l.Says = "vLLM at the level INFO logs when requests came, not their lengths: VLLM_LOGGING_LEVEL=DEBUG prints prompt_token_ids; LiteLLM's log or spans have lengths too"
	}
	return err
}

// addSGLangLine takes a line of SGLang's log.
func (l *Log) addSGLangLine(line int, text []byte, hand func(*Request)) {
	_, rest, ok := bytes.Cut(text, []byte("Finish: obj="))
	if !ok {
		return
	}
	// What follows the texts counts: they may hold anything.
	meta := rest
	if i := bytes.LastIndex(rest, []byte("'meta_info': {")); i >= 0 {
		meta = rest[i:]
	}
	end, ok := lineStamp(text)
	if !ok {
		l.reject(line, "no time at its beginning")
		return
	}
	q := newRequest(end)
	for _, m := range sgCount.FindAllSubmatch(meta, -1) {
		n, err := strconv.Atoi(string(m[2]))
		if err != nil {
			continue
		}
		switch string(m[1]) {
		case "prompt_tokens":
			q.Input = tokensOf(float64(n))
		case "completion_tokens":
			q.Output = tokensOf(float64(n))
		}
	}
	if m := sgLatency.FindSubmatch(meta); m != nil {
		if x, err := strconv.ParseFloat(string(m[1]), 64); err == nil && x >= 0 && x < 1e6 {
			q.At, q.End = end-int64(x*1e9), end
		}
	}
	if m := sgFinish.FindSubmatch(meta); m != nil {
		q.Finish = string(m[1])
	}
	if m := sgInput.FindSubmatch(rest); m != nil {
		q.Prompt = m[1]
	}
	if m := sgSession.FindSubmatch(rest); m != nil {
		q.Session = string(m[1])
	}
	if q.Input == unknown && q.Output == unknown {
		l.reject(line, "no prompt_tokens and completion_tokens in meta_info")
		return
	}
	hand(q)
}

// lineStamp is the time that a line begins with. Where it has no year, that is any.
func lineStamp(text []byte) (int64, bool) {
	m := lineTime.FindSubmatch(text[:min(len(text), 200)])
	if m == nil {
		return unknown, false
	}
	s := strings.Replace(string(m[1]), ",", ".", 1)
	if s[2] == '-' && s[5] == ' ' {
		s = "2000-" + s // a leap year
	}
	if at, ok := stampText(s); ok {
		return at, true
	}
	if t, err := time.Parse("2006-01-02 15:04:05.999999999-0700", s); err == nil {
		return t.UnixNano(), true
	}
	return unknown, false
}
