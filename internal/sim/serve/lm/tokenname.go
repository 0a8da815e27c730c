package lm

// tokenName is a token as tokenizers that work on bytes write it: each byte as
// a character that can be seen, the space as Ġ (bytes_to_unicode of GPT-2).
func tokenName(text []byte) string {
	name := make([]rune, len(text))
	for i, c := range text {
		name[i] = byteNames[c]
	}
	return string(name)
}

// byteNames are the characters of the bytes: those that can be seen stand for
// themselves, the others for the next from U+0100 on.
var byteNames = func() (names [256]rune) {
	next := rune(0x100)
	for c := range rune(256) {
		names[c] = c
		if c <= ' ' || c >= 0x7f && c <= 0xa0 || c == 0xad {
			names[c] = next
			next++
		}
	}
	return names
}()
