package tokenizer

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"

	"pitot/internal/say"
)

// A tiktoken file has a line for each token, its bytes in base64 and its rank,
// and does not say how text is taken apart: that goes by the vocabulary's size.

// tiktokenKind has the name of a known vocabulary and its way to take text apart.
type tiktokenKind struct {
	name string
	scan scanner
}

// tiktokenSizes are the known vocabularies by the number of their tokens.
func tiktokenSizes() map[int]tiktokenKind {
	return map[int]tiktokenKind{
		50256:  {"gpt2", matchGPT2},
		50280:  {"p50k_base", matchGPT2},
		100256: {"cl100k_base", scanCL100k},
		199998: {"o200k_base", cased{digits: 3, suffix: true}.scan},
		128000: {"Llama 3", lines{word: letter, digits: 3}.scan},
		151643: {"Qwen", lines{word: letter, digits: 1}.scan},
	}
}

func readTiktoken(data []byte) (*Tokenizer, error) {
	ranks := map[string]uint32{}
	at := 0
	for line := range bytes.Lines(data) {
		at++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		token, rank, ok := bytes.Cut(line, []byte(" "))
		raw := make([]byte, base64.StdEncoding.DecodedLen(len(token)))
		n, err := base64.StdEncoding.Decode(raw, token)
		id, bad := strconv.ParseUint(string(rank), 10, 32)
		if !ok || err != nil || bad != nil || id > mostIDs || n == 0 {
			return nil, say.Errorf("it is no tokenizer: line %d is no token in base64 and its rank", at).
				WithHint("it may be a tokenizer.json of Hugging Face, a tokenizer.model of SentencePiece, a tekken.json or a *.tiktoken")
		}
		ranks[string(raw[:n])] = uint32(id)
		if err := checkToken(string(raw[:n])); err != nil {
			return nil, err
		}
	}
	if len(ranks) == 0 {
		return nil, damagedError("it is empty")
	}
	known, ok := tiktokenSizes()[len(ranks)]
	if !ok {
		return nil, unsupportedError(fmt.Sprintf("a tiktoken file of %s tokens, whose expression is not known,", say.Count(len(ranks))))
	}
	return byRank("tiktoken "+known.name, ranks, known.scan, 0), nil
}

// byRank makes a tokenizer whose ids are the ranks of its merges, less an offset.
func byRank(kind string, ranks map[string]uint32, at finder, offset uint32) *Tokenizer {
	ids := ranks
	if offset > 0 {
		ids = make(map[string]uint32, len(ranks))
		for token, rank := range ranks {
			ids[token] = rank + offset
		}
	}
	p := mergesByRank(ids, func(id uint32) uint32 { return id }, false)
	p.whole, p.bytes = true, ownBytesOf(ids)
	b := &builder{t: &Tokenizer{model: p, lossless: true}, kind: kind}
	b.t.steps = []preTokenizer{split{at: at}}
	for token, id := range ids {
		b.setText(id, token)
	}
	return b.finish()
}

// tekkenFile is Mistral's tekken.json.
type tekkenFile struct {
	Config struct {
		Pattern string `json:"pattern"`
		Size    int    `json:"default_vocab_size"`
		Special int    `json:"default_num_special_tokens"`
	} `json:"config"`
	Vocab []struct {
		Rank  uint32 `json:"rank"`
		Bytes []byte `json:"token_bytes"`
	} `json:"vocab"`
}

// readTekken reads one: ids are ranks behind those of the special tokens, and of
// the vocabulary only as much is used as the configuration says.
func readTekken(data []byte) (*Tokenizer, error) {
	var f tekkenFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, damagedError("it is not a tekken.json: %v", err)
	}
	inner := f.Config.Size - f.Config.Special
	if f.Config.Special < 0 || f.Config.Special > mostIDs || inner <= 0 || inner > len(f.Vocab) {
		return nil, damagedError("its vocabulary has %s of %s tokens", say.Count(len(f.Vocab)), say.Count(inner))
	}
	at, err := expressionOf(f.Config.Pattern, true)
	if err != nil {
		return nil, err
	}
	ranks := make(map[string]uint32, inner)
	for _, v := range f.Vocab {
		if err := checkToken(string(v.Bytes)); err != nil {
			return nil, err
		}
		if int(v.Rank) < inner && len(v.Bytes) > 0 {
			ranks[string(v.Bytes)] = v.Rank
		}
	}
	return byRank("tekken", ranks, at, uint32(f.Config.Special)), nil
}
