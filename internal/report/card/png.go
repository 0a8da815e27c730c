package card

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/adler32"
	"hash/crc32"
	"io"
	"math"
)

// WritePNG writes a card as a PNG, in the light or the dark theme.
func (c *Card) WritePNG(w io.Writer, inDark bool) error {
	p := &picture{theme: &light, pixels: make([]byte, width*height*3)}
	if inDark {
		p.theme = &dark
	}
	c.draw(p)
	return p.encode(w)
}

// picture is a canvas of pixels, three bytes each.
type picture struct {
	theme  *theme
	pixels []byte
}

// encode writes the pixels as a PNG of 8 bits per channel. Package image/png would add a decoder.
func (p *picture) encode(w io.Writer) error {
	const row = width * 3
	raw := make([]byte, 0, height*(row+1))
	for y := range height {
		raw = append(raw, 1) // each byte less the one of the pixel before
		line := p.pixels[y*row : (y+1)*row]
		for i, b := range line {
			if i >= 3 {
				b -= line[i-3]
			}
			raw = append(raw, b)
		}
	}
	var data bytes.Buffer
	data.Write([]byte{0x78, 0x9c}) // of zlib
	squeeze, err := flate.NewWriter(&data, flate.DefaultCompression)
	if err == nil {
		_, err = squeeze.Write(raw)
	}
	if err == nil {
		err = squeeze.Close()
	}
	if err != nil {
		return err
	}
	data.Write(binary.BigEndian.AppendUint32(nil, adler32.Checksum(raw)))

	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	out := []byte("\x89PNG\r\n\x1a\n")
	chunk := func(kind string, data []byte) {
		body := append([]byte(kind), data...)
		out = binary.BigEndian.AppendUint32(out, uint32(len(data)))
		out = append(out, body...)
		out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(body))
	}
	chunk("IHDR", append(head, 8, 2, 0, 0, 0)) // 8 bits, red green blue
	chunk("IDAT", data.Bytes())
	chunk("IEND", nil)
	_, err = w.Write(out)
	return err
}

// fill fills a closed outline. Each pixel is covered by the exact area of the outline in it, by the
// sum of what its edges cover to their right.
func (p *picture) fill(paint paint, contours ...[]point) {
	left, top, right, bottom := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, c := range contours {
		for _, at := range c {
			left, right = min(left, at.x), max(right, at.x)
			top, bottom = min(top, at.y), max(bottom, at.y)
		}
	}
	x0, y0 := int(math.Floor(max(left, 0))), int(math.Floor(max(top, 0)))
	x1, y1 := int(math.Ceil(min(right, width))), int(math.Ceil(min(bottom, height)))
	if x0 >= x1 || y0 >= y1 {
		return
	}
	stride := x1 - x0 + 2
	area := make([]float64, stride*(y1-y0))
	for _, c := range contours {
		for i := range c {
			a, b := c[i], c[(i+1)%len(c)]
			a.x, a.y, b.x, b.y = a.x-float64(x0), a.y-float64(y0), b.x-float64(x0), b.y-float64(y0)
			addEdge(area, stride, y1-y0, a, b)
		}
	}
	colour := p.theme[paint]
	rgb := [3]float64{float64(colour >> 16), float64(colour >> 8 & 255), float64(colour & 255)}
	for y := y0; y < y1; y++ {
		sum := 0.
		for x := x0; x < x1; x++ {
			sum += area[(y-y0)*stride+x-x0]
			if cover := min(math.Abs(sum), 1); cover > 1e-3 {
				pixel := p.pixels[(y*width+x)*3:][:3]
				for i := range pixel {
					pixel[i] = byte(math.Round(float64(pixel[i])*(1-cover) + rgb[i]*cover))
				}
			}
		}
	}
}

// addEdge adds to each pixel of some rows the change of the area that an edge covers to its right.
func addEdge(area []float64, stride, rows int, a, b point) {
	sign := 1.
	if a.y > b.y {
		a, b, sign = b, a, -1
	}
	if a.y == b.y {
		return
	}
	slope := (b.x - a.x) / (b.y - a.y)
	for y := max(int(math.Floor(a.y)), 0); y < rows && float64(y) < b.y; y++ {
		from, to := max(a.y, float64(y)), min(b.y, float64(y+1))
		if to <= from {
			continue
		}
		most := float64(stride - 2)
		xa := min(max(a.x+(from-a.y)*slope, 0), most)
		xb := min(max(a.x+(to-a.y)*slope, 0), most)
		if xa > xb {
			xa, xb = xb, xa
		}
		line, high := area[y*stride:], sign*(to-from)
		crossed := 0. // share of the height that the edge crosses further left
		before := 0.  // cover of the pixel before
		last := int(xb)
		for x := int(xa); x <= last; x++ {
			share, middle := 1., xa
			if xb > xa {
				l, r := max(xa, float64(x)), min(xb, float64(x+1))
				share, middle = (r-l)/(xb-xa), (l+r)/2
			}
			cover := crossed + share*(float64(x+1)-middle)
			line[x] += high * (cover - before)
			crossed, before = crossed+share, cover
		}
		line[last+1] += high * (1 - before)
	}
}

func (p *picture) rect(x, y, w, h, radius float64, paint paint) {
	var c []point
	left, right, top, bottom := x+radius, x+w-radius, y+radius, y+h-radius
	corners := []point{{right, top}, {right, bottom}, {left, bottom}, {left, top}}
	for corner, centre := range corners {
		const steps = 8
		for i := range steps + 1 {
			sin, cos := math.Sincos((float64(corner-1) + float64(i)/steps) * math.Pi / 2)
			c = append(c, point{centre.x + radius*cos, centre.y + radius*sin})
		}
	}
	p.fill(paint, c)
}

func (p *picture) dot(at point, radius float64, paint paint) {
	p.rect(at.x-radius, at.y-radius, 2*radius, 2*radius, radius, paint)
}

func (p *picture) line(points []point, width float64, paint paint) {
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		length := math.Hypot(b.x-a.x, b.y-a.y)
		if length == 0 {
			continue
		}
		nx, ny := (b.y-a.y)/length*width/2, -(b.x-a.x)/length*width/2
		p.fill(paint, []point{
			{a.x + nx, a.y + ny}, {b.x + nx, b.y + ny}, {b.x - nx, b.y - ny}, {a.x - nx, a.y - ny},
		})
		if i > 1 {
			p.dot(a, width/2, paint)
		}
	}
}

func (p *picture) text(at point, f face, size float64, paint paint, text string) {
	scale := size / em
	for _, c := range text {
		g := glyphOf(f, c)
		var contours [][]point
		for _, outline := range g.contours {
			contours = append(contours, flatten(outline, at, scale))
		}
		p.fill(paint, contours...)
		at.x += g.advance * scale
	}
}

// flatten makes straight edges of an outline at a place.
func flatten(outline []vertex, at point, scale float64) (edges []point) {
	n := len(outline)
	middle := func(a, b vertex) vertex { return vertex{(a.x + b.x) / 2, (a.y + b.y) / 2, true} }
	for i, v := range outline {
		if v.on {
			edges = append(edges, point{at.x + v.x*scale, at.y + v.y*scale})
			continue
		}
		from, to := outline[(i+n-1)%n], outline[(i+1)%n]
		if !from.on {
			from = middle(from, v)
		}
		if !to.on {
			to = middle(v, to)
		}
		const steps = 6
		for k := range steps + 1 {
			t := float64(k) / steps
			x := (1-t)*(1-t)*from.x + 2*t*(1-t)*v.x + t*t*to.x
			y := (1-t)*(1-t)*from.y + 2*t*(1-t)*v.y + t*t*to.y
			edges = append(edges, point{at.x + x*scale, at.y + y*scale})
		}
	}
	return edges
}
