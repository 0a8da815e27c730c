package tokenizer

import (
	"strings"
	"testing"
)

// unicode.txt has the kinds that are used, each with ranges in order.
func TestUnicodeText(t *testing.T) {
	for kind, ranges := range characterRanges() {
		how, names, _ := strings.Cut(kind, ":")
		switch how {
		case "new", "differ":
			for name := range strings.SplitSeq(names, ",") {
				if classNames[name] == 0 {
					t.Errorf("%s: no class %q", kind, name)
				}
			}
		case "decomposed", "alone":
		default:
			t.Errorf("unknown kind %q", kind)
		}
		for i, x := range ranges {
			if x.high < x.low || i > 0 && x.low <= ranges[i-1].high {
				t.Errorf("%s: %X-%X is out of order", kind, x.low, x.high)
			}
		}
	}
	for _, kind := range []string{"decomposed", "alone"} {
		if ranges := characterRanges()[kind]; len(ranges) == 0 || !isAmong(ranges, ranges[0].low) || !isAmong(ranges, ranges[0].high) || isAmong(ranges, ranges[0].low-1) {
			t.Errorf("%s: %v", kind, ranges)
		}
	}
}
