package result

import "fmt"

// What a run.json may hold at most: an element of a list takes many times the memory of the few
// bytes that it can be written in. A point of a run has some 120 objects.
const (
	mostElements = 10_000    // of a list at the top, as points
	mostObjects  = 2_000_000 // in all
)

// checkBounds reports whether a JSON document keeps to these bounds, before it is decoded.
func checkBounds(data []byte) error {
	depth, objects, elements := 0, 0, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '[':
			if depth++; depth == 2 {
				elements = 0
			}
		case '{':
			depth++
			if objects++; objects > mostObjects {
				return fmt.Errorf("over %d objects", mostObjects)
			}
			if depth == 3 {
				if elements++; elements > mostElements {
					return fmt.Errorf("a list of over %d elements", mostElements)
				}
			}
		case '}', ']':
			depth--
		}
	}
	return nil
}
