package card

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"encoding/binary"
	"io"
	"strings"
	"sync"
)

// face is a font of a card.
type face int

const (
	regular face = iota
	bold
	mono
	faces
)

var (
	//go:embed fonts/fonts.bin
	fontData []byte
	//go:embed fonts/characters.txt
	characters string
)

// em is the size of a font's square, in the units of outlines.
const em = 512

// vertex is a point of an outline. One that is not on the curve is the control point of a quadratic
// Bézier curve.
type vertex struct {
	x, y float64
	on   bool
}

// glyph is the outline of a character.
type glyph struct {
	advance  float64
	contours [][]vertex
}

// fonts returns the outlines that fonts/make.py wrote.
var fonts = sync.OnceValue(func() (all [faces]map[rune]glyph) {
	r := bytes.NewReader(nil)
	if data, err := io.ReadAll(flate.NewReader(bytes.NewReader(fontData))); err == nil {
		r.Reset(data)
	}
	next := func() int {
		n, _ := binary.ReadUvarint(r) // the file is of this package: it is whole
		return int(n)
	}
	signed := func(n int) float64 { return float64(n>>1 ^ -(n & 1)) }
	for f := range all {
		all[f] = map[rune]glyph{}
		for _, c := range strings.TrimSuffix(characters, "\n") {
			g := glyph{advance: float64(next())}
			x, y := 0., 0.
			for range next() {
				contour := make([]vertex, next())
				for i := range contour {
					dx := next()
					x, y = x+signed(dx>>1), y+signed(next())
					contour[i] = vertex{x, y, dx&1 == 1}
				}
				g.contours = append(g.contours, contour)
			}
			if g.advance > 0 {
				all[f][c] = g
			}
		}
	}
	return all
})

// glyphOf returns the outline of a character, a box for one that a font lacks.
func glyphOf(f face, c rune) glyph {
	if g, ok := fonts()[f][c]; ok {
		return g
	}
	box := func(in float64) []vertex {
		l, r, t, b := 40+in, 440-in, in-360, -in
		return []vertex{{l, t, true}, {r, t, true}, {r, b, true}, {l, b, true}}
	}
	hole := box(28)
	hole[1], hole[3] = hole[3], hole[1]
	return glyph{em * .94, [][]vertex{box(0), hole}}
}

// textWidth returns the width of a text.
func textWidth(f face, size float64, text string) (width float64) {
	for _, c := range text {
		width += glyphOf(f, c).advance
	}
	return width * size / em
}

// fitText shortens a text to a width. A text that is shortened ends in an ellipsis.
func fitText(f face, size, width float64, text string) string {
	if textWidth(f, size, text) <= width {
		return text
	}
	left := width - textWidth(f, size, "…")
	for i, c := range text {
		if left -= glyphOf(f, c).advance * size / em; left < 0 {
			return strings.TrimRight(text[:i], " ") + "…"
		}
	}
	return text
}

// wrapText breaks a text into at most so many lines of a width, of which the last is shortened.
func wrapText(f face, size, width float64, most int, text string) (lines []string) {
	words := strings.Fields(text)
	for len(words) > 0 && len(lines) < most-1 {
		n := 1
		for n < len(words) && textWidth(f, size, strings.Join(words[:n+1], " ")) <= width {
			n++
		}
		if textWidth(f, size, words[0]) > width { // a word by itself
			break
		}
		lines, words = append(lines, strings.Join(words[:n], " ")), words[n:]
	}
	if len(words) > 0 {
		lines = append(lines, fitText(f, size, width, strings.Join(words, " ")))
	}
	return lines
}
