package tokenizer

import (
	"cmp"
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed unicode.txt
var unicodeText string

// characterRange is characters from one to another, both included.
type characterRange struct{ low, high rune }

// characterRanges are the characters in unicode.txt by the kind of their difference.
var characterRanges = sync.OnceValue(func() map[string][]characterRange {
	of := map[string][]characterRange{}
	for line := range strings.Lines(unicodeText) {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			for _, text := range words[1:] {
				low, high, _ := strings.Cut(text, "-")
				of[words[0]] = append(of[words[0]], characterRange{parseHex(low), parseHex(cmp.Or(high, low))})
			}
		}
	}
	return of
})

// parseHex reads a character of unicode.txt, which a test reads too.
func parseHex(text string) rune {
	x, err := strconv.ParseUint(text, 16, 21)
	if err != nil {
		panic("unicode.txt: " + err.Error())
	}
	return rune(x)
}

// isAmong reports whether a character is in ranges that are in order.
func isAmong(ranges []characterRange, r rune) bool {
	i, ok := slices.BinarySearchFunc(ranges, r, func(x characterRange, r rune) int {
		return cmp.Compare(x.high, r)
	})
	return ok || i < len(ranges) && ranges[i].low <= r
}
