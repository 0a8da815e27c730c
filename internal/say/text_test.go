package say

import "testing"

func TestCut(t *testing.T) {
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"äöü€", 3, "äö…"}, {"ab cd", 4, "ab…"}, {"", 1, ""}} {
		if got := Truncate(c.s, c.n); got != c.want {
			t.Errorf("cut(%q, %d) = %q, want %q", c.s, c.n, got, c.want)
		}
	}
}

// What a server says is one printable line, whatever it says.
func TestPlain(t *testing.T) {
	if got := PlainLine(" a\x1b[31m\tb\r\nc\x00\xff\u202e  d "); got != "a [31m b c � d" {
		t.Errorf("%q", got)
	}
}

func TestList(t *testing.T) {
	for _, c := range []struct {
		of   []string
		want string
	}{{nil, ""}, {[]string{"a"}, "a"}, {[]string{"a", "b"}, "a and b"}, {[]string{"a", "b", "c"}, "a, b and c"}} {
		if got := List(c.of...); got != c.want {
			t.Errorf("%q: %q, want %q", c.of, got, c.want)
		}
	}
}
