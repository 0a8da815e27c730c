package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"pitot/internal/workload/field"
)

// object is a JSON object whose values are not yet read. Keys with the value
// null are left out.
type object map[string]json.RawMessage

func parseObject(raw []byte) (object, error) {
	var o object
	err := json.Unmarshal(raw, &o)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok || err == nil && o == nil {
		return nil, errors.New("want a JSON object")
	}
	if err != nil {
		return nil, fmt.Errorf("want a JSON object: %w", err)
	}
	o.dropNulls()
	return o, nil
}

func (o object) dropNulls() {
	for key, value := range o {
		if string(value) == "null" {
			delete(o, key)
		}
	}
}

// stringOf is the string under the first of these keys that is there.
func (o object) stringOf(keys ...string) (s string, err error) {
	key := o.firstKey(keys...)
	if key == "" {
		return "", fmt.Errorf("want the key %s with a string", strings.Join(keys, " or "))
	}
	if json.Unmarshal(o[key], &s) != nil {
		return "", fmt.Errorf("%s: want a string", key)
	}
	return s, nil
}

// firstKey is the first of these keys that is there, "" for none.
func (o object) firstKey(keys ...string) string {
	for _, key := range keys {
		if o[key] != nil {
			return key
		}
	}
	return ""
}

// stringAt is the string under a key, "" where there is none.
func (o object) stringAt(key string) (s string) {
	_ = json.Unmarshal(o[key], &s)
	return s
}

// tokensAt is the number under the first of these keys that is there, else
// Unknown. Numbers are whole, but may be written as 10.0. None at all is [skipNoOutput].
func (o object) tokensAt(keys ...string) (int, error) {
	key := o.firstKey(keys...)
	if key == "" {
		return Unknown, nil
	}
	var x float64
	if json.Unmarshal(o[key], &x) != nil || x != math.Trunc(x) || x < 0 || x > MaxLength {
		return 0, fmt.Errorf("%s: want a whole number of tokens, 0 to %d", key, MaxLength)
	}
	if x == 0 {
		return 0, skipNoOutput
	}
	return int(x), nil
}

// answerTokens returns the number of tokens that the answer is to have, else Unknown. The surest
// key that gives it counts.
func (o object) answerTokens() (int, error) {
	best, rank := "", math.MaxInt
	for key := range o {
		if is := field.ParseName(key); is.Field == field.Output && (is.Rank < rank || is.Rank == rank && key < best) {
			best, rank = key, is.Rank
		}
	}
	return o.tokensAt(best)
}

// remainingBody returns what remains of a recorded request for Request.Body: everything but the
// keys that the run sets itself. It returns nil if nothing remains.
func (o object) remainingBody() []byte {
	for _, key := range strings.Fields("model stream stream_options max_tokens max_completion_tokens") {
		delete(o, key)
	}
	if len(o) == 0 {
		return nil
	}
	b, _ := json.Marshal(o) // its values were read from JSON
	return b
}
