package api

import "bytes"

// repeats are the texts of a stream, each of which may repeat the ones before it. Which it is
// shows with the second.
type repeats struct {
	decided  bool   // whether they do is known
	separate bool   // they do not
	last     []byte // text, as it stood between its quotes
}

// Reset prepares for the next stream.
func (t *repeats) Reset() { *t = repeats{last: t.last[:0]} }

// Held implements [Holder].
func (t *repeats) Held() int { return cap(t.last) }

// Trim implements [Holder].
func (t *repeats) Trim() {
	if cap(t.last) > MaxKept {
		t.last = nil
	}
}

// compare decides by a text and the one before it, unless that is known or cannot be told
// from them.
func (t *repeats) compare(raw []byte) {
	// Its end may have been an unfinished character.
	before := t.last
	for _, unfinished := range []string{"\uFFFD", `\ufffd`, `\uFFFD`} {
		before = bytes.TrimSuffix(before, []byte(unfinished))
	}
	if !t.decided && len(before) > 0 && len(raw) > 0 {
		t.decided, t.separate = true, !bytes.HasPrefix(raw, before)
	}
}

// news gives what is new of a text.
func (t *repeats) news(raw []byte) []byte {
	if t.separate || len(raw) == 0 {
		return raw
	}
	// What has come stays as it was; only its end may have been an unfinished
	// character.
	same, before := 0, t.last
	if bytes.HasPrefix(raw, before) {
		same = len(before)
	} else {
		for same < min(len(raw), len(before)) && raw[same] == before[same] {
			same++
		}
	}
	t.last = append(before[:0], raw...)
	return wholeEscape(raw, same)
}

// wholeEscape is the rest of a raw JSON string from a place on that no escape spans.
func wholeEscape(raw []byte, at int) []byte {
	back := max(at-6, 0)
	for i := back; i < at; i++ {
		if raw[i] != '\\' {
			continue
		}
		n := 2
		if i+1 < len(raw) && raw[i+1] == 'u' {
			n = 6
		}
		if i+n > at {
			at = i
			break
		}
		i += n - 1
	}
	return raw[at:]
}
