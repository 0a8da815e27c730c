// Package serve is the HTTP face of a [sim.Engine]: a server over real sockets
// that answers like a real engine's API server, in real time, and writes down
// what it really did. It is the reference against which the client is audited,
// so it shares no parsing code with the client: requests are read by the
// standard library, and what they say and how they are answered is a dialect's
// affair (rooms dialect and vllmapi).
//
// One goroutine runs the engine and writes every event itself, with one
// non-blocking write each. A socket that is full gets a goroutine of its own
// for what it did not take, so that one slow client never delays the others.
package serve

import (
	"io"
	"strconv"
	"time"

	"pitot/internal/clock"
	"pitot/internal/sim"
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/lm"
)

// Config says what a [Server] serves and how. The zero value works.
type Config struct {
	// Engine decides when which tokens come. The server becomes its only
	// caller. nil is a [sim.Fixed] of 50 ms TTFT and 10 ms ITL.
	Engine sim.Engine
	// Dialect is the name of the server's API dialect, one of [engines.FaceNames]. Any other name
	// selects the first of them.
	Dialect string
	// Model is the one model that is served, "mock" if empty. A request that
	// names none gets it too.
	Model string
	// MaxModelLen bounds prompt and output tokens together, in addition to what the
	// engine takes; 0 is 131072.
	MaxModelLen int
	// APIKey, if set, is asked for on every route under /v1; any of APIKeys
	// does as well.
	APIKey  string
	APIKeys []string
	// Startup is the time that the server takes to load its model first. Until then it answers 503.
	Startup time.Duration
	// Speed is the speed of the engine's clock as a multiple of the real clock; 0 is 1.
	Speed float64
	// RateLimit bounds how many requests are answered in a time.
	RateLimit RateLimit
	// Tokenize takes a text apart: it calls token with the bytes of each
	// token in turn. Requests share a prefix in the engine's cache as far as
	// their tokens are equal. nil, with Count nil as well, is words.
	Tokenize func(text []byte, token func([]byte))
	// Vocab is the size of the model's vocabulary: all token ids are below it.
	// 0 is 131072, less than 1024 is 1024.
	Vocab int
	// Words are words that Tokenize makes one token of; their ids are the same
	// on every server. nil: none are known.
	Words lm.Words
	// Count counts the tokens of a text. It is for want of Tokenize: prompts
	// of text then share nothing.
	Count func(text []byte) int
	// PromptOverhead is the number of tokens that the chat template adds to a chat.
	PromptOverhead int
	// Ends tells after how many tokens the model ends the answer to request n
	// by itself, if the client does not ignore it (ignore_eos). n is the
	// request's number, or a number made from its prompt and seed where these
	// decide what the answer says. nil: never, every answer is as long as it
	// may be.
	Ends func(n int64) int
	// ToolCalls is the share of the chats with tools, 0 to 1, in which the
	// model calls one where it may choose (tool_choice auto). A chat that ends
	// with a tool's result is always answered in words.
	ToolCalls float64
	// Reasoning is the share of a chat's answer, 0 to 1, that comes as
	// reasoning before the rest.
	Reasoning float64
	// PromptTokensDetails tells in the usage how many tokens of the prompt
	// were cached (vLLM's --enable-prompt-tokens-details).
	PromptTokensDetails bool
	// Cache are labels of vllm:cache_config_info; block_size and
	// num_gpu_blocks are worth telling.
	Cache map[string]string
	// Settings are the engine's, under its own names, for dialects that tell them.
	Settings map[string]string
	// Faults lists the faults to inject, with their frequencies; Seed decides which requests they
	// hit.
	Faults Faults
	Seed   uint64
	// Truth, if set, gets one JSON line per request: see [Truth].
	Truth io.Writer
	// Grain is the least time between two wake-ups of an engine that emits all
	// the time: what falls due within one is written together, so late by less
	// than that. It has no effect on an emission that is alone. 0 is 200 µs,
	// negative is none.
	Grain time.Duration
	// Alarm paces the engine; nil is the most precise one of this platform.
	// Virtual time needs a clock.TimerAlarm without spin.
	Alarm clock.Alarm
}

const (
	defaultModel       = "mock"
	defaultMaxModelLen = 131072
	defaultTTFT        = 50 * time.Millisecond
	defaultITL         = 10 * time.Millisecond
	defaultGrain       = 200 * time.Microsecond
)

// withDefaults fills in the defaults.
func (c Config) withDefaults() Config {
	if c.Engine == nil {
		c.Engine = sim.NewFixed(sim.FixedConfig{TTFT: defaultTTFT, ITL: defaultITL})
	}
	if c.Model == "" {
		c.Model = defaultModel
	}
	if c.MaxModelLen <= 0 {
		c.MaxModelLen = defaultMaxModelLen
	}
	if l, ok := c.Engine.(sim.Limited); ok {
		c.MaxModelLen = min(c.MaxModelLen, l.MaxModelLen())
	}
	if !(c.Speed > 0) {
		c.Speed = 1
	}
	if c.Grain == 0 {
		c.Grain = defaultGrain
	}
	return c
}

// dialectConfig returns the server's description for the dialect; cached says that the engine may
// have a prefix cache.
func (c *Config) dialectConfig(cached bool, began time.Time, stats func() Stats) dialect.Served {
	s := dialect.Served{
		Model: lm.New(lm.Config{
			Tokenize: c.Tokenize, Count: c.Count, Vocab: c.Vocab, Words: c.Words, Template: c.PromptOverhead, Cached: cached,
			Ends: c.Ends, ToolCalls: c.ToolCalls, Reasoning: c.Reasoning, Seed: c.Seed,
		}),
		Name: c.Model, MaxModelLen: c.MaxModelLen, PromptTokensDetails: c.PromptTokensDetails, Cache: c.Cache, Settings: c.Settings,
		Began: float64(began.UnixNano()) / 1e9, Active: func() int64 { return stats().Active },
		Aborted: func() int64 { return stats().Aborted },
	}
	s.BlockSize, _ = strconv.Atoi(c.Cache["block_size"])
	return s
}
