package loadgen

// backlog holds the number of requests between due and end. It keeps time means over equal blocks
// of the load from a time on.
type backlog struct {
	from, width int64
	area        []float64 // by block: requests × nanoseconds
	n           float64
	at          int64
}

// changeBy takes in that so many more requests are under way from a time on.
func (b *backlog) changeBy(at int64, more float64) {
	b.passTime(at)
	b.n += more
}

// passTime lets time go by. A change that is reported late counts from when it is
// reported.
func (b *backlog) passTime(to int64) {
	for b.at < to {
		if b.at < b.from {
			b.at = min(to, b.from)
			continue
		}
		i := int((b.at - b.from) / b.width)
		for len(b.area) <= i {
			b.area = append(b.area, 0)
		}
		end := min(to, b.from+int64(i+1)*b.width)
		b.area[i] += b.n * float64(end-b.at)
		b.at = end
	}
}

// blockMeans are those of so many equal blocks of what has passed.
func (b *backlog) blockMeans(blocks int) []float64 {
	per := len(b.area) / blocks
	if per == 0 {
		return nil
	}
	out := make([]float64, blocks)
	for i := range out {
		for _, a := range b.area[i*per : (i+1)*per] {
			out[i] += a
		}
		out[i] /= float64(int64(per) * b.width)
	}
	return out
}
