package workload

import (
	"fmt"
	"strings"
	"testing"
)

// said is what a turn of one asks, and what follows it.
func said(t testing.TB, v *RecordedConversations, item int64) string {
	t.Helper()
	q, err := v.At(item)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, m := range q.Messages {
		s := m.Segments[0]
		text := s.Text
		if s.Words > 0 {
			text = fmt.Sprintf("[%d words for item %d, served %v]", s.Words, s.Item, s.Served)
		}
		fmt.Fprintf(&b, "%s: %s; ", m.Role, text)
	}
	fmt.Fprintf(&b, "%d tokens, turn %d of %d", q.Output, q.Turn, q.Turns)
	for _, n := range v.Follow(item, true) {
		_, turn := SplitItem(n.Item)
		fmt.Fprintf(&b, ", then %d after %v", turn, n.After)
	}
	return b.String()
}

// Conversations of a file are asked turn after turn, behind the answers of the server or the
// recorded ones.
func TestRecordedConversations(t *testing.T) {
	share := `[{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"x y z"},{"from":"human","value":"b"},{"from":"gpt","value":"v w"},{"from":"human","value":"c"},{"from":"gpt","value":"u"},{"from":"human","value":"unanswered"}]}]`
	guide := `{"prompt_0":"a","prompt_1":"b","output_tokens_count":5}`
	aiperf := `{"session_id":"s","turns":[{"role":"system","text":"s"},{"text":"a"},{"text":"b","delay":2000,"output_length":9}]}`
	first, second, third := TurnItem(0, 0), TurnItem(0, 1), TurnItem(0, 2)
	for _, c := range []struct {
		text     string
		turns    int
		recorded bool
		item     int64
		want     string
	}{
		{share, 9, false, first, "user: a; 4 tokens, turn 0 of 3, then 1 after 3s"},
		{share, 9, false, second, "user: a; assistant: [4 words for item 0, served true]; user: b; 3 tokens, turn 1 of 3, then 2 after 3s"},
		{share, 9, true, third, "user: a; assistant: x y z; user: b; assistant: v w; user: c; 2 tokens, turn 2 of 3"},
		{share, 2, true, second, "user: a; assistant: x y z; user: b; 3 tokens, turn 1 of 2"},
		{guide, 9, false, second, "user: a; assistant: [5 words for item 0, served true]; user: b; 5 tokens, turn 1 of 2"},
		{aiperf, 9, false, first, "system: s; user: a; -1 tokens, turn 0 of 2, then 1 after 2s"},
		{aiperf, 9, true, second, "system: s; user: a; assistant: [128 words for item 0, served false]; user: b; 9 tokens, turn 1 of 2"},
	} {
		pause, err := ParsePause("3s")
		if err != nil {
			t.Fatal(err)
		}
		v, err := open(t, written(t, c.text), FileOptions{}).NewConversations(RecordedConfig{Turns: FixedLength(c.turns), Recorded: c.recorded, Think: pause})
		if err != nil {
			t.Fatal(err)
		}
		if got := said(t, v, c.item); got != c.want {
			t.Errorf("%.20s: %s\nwant %s", c.text, got, c.want)
		}
		if n := v.Follow(first, false); n != nil {
			t.Error("a turn that is not answered is followed")
		}
		if _, err := v.At(TurnItem(0, 3)); err == nil {
			t.Error("a turn that is not there is asked")
		}
	}
	if _, err := open(t, written(t, `{"prompt":"a"}`), FileOptions{}).NewConversations(RecordedConfig{Turns: FixedLength(2)}); err == nil || !strings.Contains(err.Error(), "no conversations") {
		t.Errorf("prompts as conversations: %v", err)
	}
}
