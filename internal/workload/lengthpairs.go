package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"pitot/internal/say"
	"pitot/internal/workload/token"
)

// pairColumns holds the names of the two columns of a pair.
var pairColumns = [2]string{"input", "output"}

// column is one length of all pairs, in order.
type column []int

func (c column) mean() float64 {
	sum := 0.0
	for _, x := range c {
		sum += float64(x)
	}
	return sum / float64(len(c))
}

// Pairs says that l are the prompts and o the answers of the same requests of a file: both
// are then drawn together, whole requests with replacement, so that they depend on each other
// in whatever way they do there.
func (l Lengths) Pairs(o Lengths) bool {
	return l.kind == pairs && o.kind == pairs && l.shape == o.shape && l.a == 0 && o.a == 1
}

// drawPair is the request that a draw stands for.
func (s *lengthShape) drawPair(u uint64) [2]int {
	i, _ := bits.Mul64(u, uint64(len(s.rows)))
	return s.rows[i]
}

// pairsOf are the lengths of the requests of a trace, of a file of prompts or of a CSV file
// with the columns input_tokens and output_tokens, of those that tell both. The file is read once
// and its lengths are kept.
func pairsOf(name, which string) (Lengths, error) {
	t, err := SummarizeRequests(name, token.Universal().Count)
	if err != nil {
		return Lengths{}, err
	}
	s, hash, lacking := &lengthShape{written: name}, sha256.New(), 0
	for i := range t.Input {
		if i >= len(t.Output) || t.Input[i] < 0 || t.Output[i] < 0 {
			lacking++
			continue
		}
		row := [2]int{clampTokens(float64(t.Input[i])), clampTokens(float64(t.Output[i]))}
		hash.Write(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(row[0])), uint64(row[1])))
		s.rows = append(s.rows, row)
	}
	if len(s.rows) == 0 || lacking > len(s.rows) {
		return Lengths{}, say.Errorf("%s has both lengths for %s of %s", name, say.Count(len(s.rows)), say.Plural(len(s.rows)+lacking, "request")).
			WithHint("pairs need a prompt and an answer each; give the lengths apart with quantiles(FILE,input)")
	}
	for k := range s.sorted {
		for _, row := range s.rows {
			s.sorted[k] = append(s.sorted[k], row[k])
		}
		slices.Sort(s.sorted[k])
	}
	l := Lengths{kind: pairs, shape: sharedShape(fmt.Sprintf("pairs(%s,%x)", name, hash.Sum(nil)), func() *lengthShape { return s })}
	if which == pairColumns[1] {
		l.a = 1
	}
	return l, nil
}
