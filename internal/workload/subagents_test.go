package workload

import (
	"slices"
	"testing"
	"time"

	"pitot/internal/say"
)

func TestParseSubAgents(t *testing.T) {
	for text, want := range map[string]string{
		"share(5%), agents(uniform(1,3)), steps(uniform(2,10)), system(2000), input(500)": "",
		"steps(8), share(0.05)":             "share(5%), agents(1), steps(8)",
		" SHARE( 100% ) , steps(zipf(1,9))": "share(100%), agents(1), steps(zipf(1,9))",
	} {
		s, err := ParseSubAgents(text)
		if want == "" {
			want = text
		}
		if err != nil || s.String() != want {
			t.Errorf("%s: %s, %v", text, s, err)
		}
		if again, err := ParseSubAgents(s.String()); err != nil || again != s {
			t.Errorf("%s is not read back: %v, %v", s, again, err)
		}
	}
	for _, text := range []string{"", "share(5%)", "steps(3)", "share(0%), steps(3)", "share(200%), steps(3)", "share(5%), steps(3), steps(4)",
		"share(5%), steps(3), agents(65)", "share(5%), steps(1001)", "share(5%), steps(3), system(x)", "share(5%), steps(3), x(1)", "share(5%), steps()", "share(5%, steps(3)"} {
		if s, err := ParseSubAgents(text); err == nil {
			t.Errorf("%q is %s", text, s)
		}
	}
}

// What would have more requests in a conversation than are counted is refused.
func TestTooManySubAgents(t *testing.T) {
	for turns, refused := range map[int]bool{33_000: false, 40_000: true} {
		law, err := ParseSubAgents("share(100%), agents(64), steps(1000)")
		if err != nil {
			t.Fatal(err)
		}
		first, err := NewRandom(RandomConfig{Input: FixedLength(10), Output: FixedLength(1)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = NewConversations(ConversationConfig{First: first, Turns: FixedLength(turns), Input: FixedLength(1), Output: FixedLength(1), SubAgents: law})
		if (err != nil) != refused || refused && say.HintOf(err) == "" {
			t.Errorf("%d turns: %v", turns, err)
		}
	}
}

func FuzzParseSubAgents(f *testing.F) {
	f.Add("share(5%), agents(uniform(1,3)), steps(uniform(2,10)), system(2000), input(500)")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSubAgents(text)
		if err != nil {
			return
		}
		if again, err := ParseSubAgents(s.String()); err != nil || again.String() != s.String() {
			t.Fatalf("%q is %q, which is %q, %v", text, s, again, err)
		}
	})
}

// A conversation is gone through as a load does: each request comes once, when all that it
// waits for have ended; those of a sub-agent have nothing in common with the agent's, and the
// agent reads what each answered in the end.
func TestSubAgents(t *testing.T) {
	law, err := ParseSubAgents("share(40%), agents(uniform(1,3)), steps(uniform(1,4)), system(32), input(7)")
	if err != nil {
		t.Fatal(err)
	}
	v := conversations(t, func(c *ConversationConfig) { c.SubAgents = law })
	asked, squares, started, most, sessions := 0, 0, 0, 0, int64(4000)
	for s := range sessions {
		waits := map[int64]int{}
		todo, seen, total := []int64{s}, map[int64]bool{}, 0
		for len(todo) > 0 {
			item := todo[0]
			todo = todo[1:]
			if seen[item] {
				t.Fatalf("session %d: item %d comes twice", s, item)
			}
			seen[item] = true
			r, err := v.At(item)
			if err != nil {
				t.Fatal(err)
			}
			if r.Input != words(&r) || r.ID != item || r.History >= r.Input {
				t.Fatalf("item %d is %+v", item, r)
			}
			total = int(r.Turns)
			if system := r.Messages[0].Segments[0].Words; system != 64 && system != 32 {
				t.Fatalf("item %d begins with %d words", item, system)
			} else if system == 32 {
				started++
			}
			next := v.Follow(item, true)
			if len(next) > 1 {
				most = max(most, len(next))
			}
			for _, n := range next {
				if waits[n.Item]++; waits[n.Item] >= max(n.Join, 1) {
					todo = append(todo, n.Item)
					q, err := v.At(n.Item)
					if err != nil {
						t.Fatal(err)
					}
					if n.Join == 0 || n.After > 0 {
						continue
					}
					read := 0
					for _, seg := range q.Messages[len(q.Messages)-1].Segments {
						if seg.Served {
							read++
							if last, err := v.At(seg.Item); err != nil || last.Messages[0].Segments[0].Words != 32 || last.Output != seg.Words || !seen[seg.Item] {
								t.Fatalf("item %d reads %+v of %+v, %v", n.Item, seg, last, err)
							}
						}
					}
					if read != n.Join {
						t.Fatalf("item %d waits for %d and reads %d answers", n.Item, n.Join, read)
					}
				}
			}
			if v.Follow(item, false) != nil {
				t.Fatal("what is not answered goes on")
			}
		}
		if len(seen) != total {
			t.Fatalf("session %d has %d requests and says %d", s, len(seen), total)
		}
		asked, squares = asked+total, squares+total*total
	}
	mean, cluster := TurnMoments(v.config.Turns, law)
	near := func(what string, got, want float64) {
		if got < .97*want || got > 1.03*want {
			t.Errorf("%s is %.3f, want %.3f", what, got, want)
		}
	}
	near("requests of a conversation", float64(asked)/float64(sessions), mean)
	near("requests of the conversation of a request", float64(squares)/float64(asked), cluster)
	if most != 3 || started == 0 {
		t.Errorf("%d at once at most, %d requests of sub-agents", most, started)
	}
	if _, err := v.At(TurnItem(3, 9999)); err == nil {
		t.Error("a request that there is not")
	}
	// Without sub-agents nothing is otherwise than it was.
	plain := conversations(t, nil)
	for s := range int64(50) {
		for turn := range plain.turnCount(s) {
			r, err := plain.At(TurnItem(s, turn))
			if err != nil || r.Turns != plain.turnCount(s) || slices.ContainsFunc(plain.Follow(r.ID, true), func(n Next) bool { return n.After < time.Second || n.Join > 1 }) {
				t.Fatalf("%+v, %v", r, err)
			}
		}
	}
}
