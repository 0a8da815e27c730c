package lm

import "fmt"

// stock are the words of all answers, one token each: a common English word
// with the space before it.
var stock = [...]string{
	" the", " air", " of", " and", " flow", " to", " in", " a", " speed", " is", " was", " for", " with", " as",
	" on", " by", " at", " from", " this", " that", " it", " are", " be", " an", " or", " not", " have", " one",
	" time", " first", " new", " water",
}

// stockAt is which word token i is of an answer whose words begin at first.
func stockAt(first int64, i int) int {
	return int(uint64(first*7+int64(i)) % uint64(len(stock)))
}

// StockWord is a word of the stock, and its bytes as a JSON list; i may be any
// number from 0 on.
func StockWord(i int) (text, bytes string) { return stock[i%len(stock)], stockBytes[i%len(stock)] }

// StockID is the id of a word of the stock.
func (m *Model) StockID(i int) uint32 { return m.stock[i%len(stock)].id }

var stockBytes = func() (lists [len(stock)]string) {
	for i, w := range stock {
		l := "["
		for j := range len(w) {
			if j > 0 {
				l += ","
			}
			l += fmt.Sprint(w[j])
		}
		lists[i] = l + "]"
	}
	return lists
}()
