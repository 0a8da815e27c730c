package metrics

import (
	"testing"

	"pitot/internal/results/record"
	"pitot/internal/slo"
)

// ofClasses are n answers: every third of class batch, which takes a second, the others of
// class chat, of which the first few take as long.
func ofClasses(n, slowChats int) (frames []record.Frame) {
	for i := range n {
		took := int64(100)
		class := "chat"
		if i%3 == 2 {
			class, took = "batch", 1000
		} else if slowChats > 0 {
			slowChats--
			took = 1000
		}
		due := int64(i)
		f := answer{id: int64(i), due: due, stamps: []int64{due + took, due + took + 10}, usage: 2, first: 1}.frame()
		f.Rows[0].Class = class
		frames = append(frames, f)
	}
	return frames
}

// Every class is held against its own limits, and the whole against all of them.
func TestObjectiveOfClasses(t *testing.T) {
	s := window(10)
	s.SLO = spec(t, "errors<1%; chat: p95 ttft<500ms; batch: p95 ttft<2s")
	p := fold(s, ofClasses(3000, 0)...).Point()
	if p.SLO.Met != yes || *p.SLO.Attained != 1 || len(p.SLO.Limits) != 3 || p.SLO.Limits[1].Class != "chat" || p.SLO.Limits[1].Spec != "chat: p95 ttft<500ms" {
		t.Errorf("%+v", p.SLO)
	}
	if c := p.Classes["batch"].SLO; c == nil || c.Met != yes || *c.Attained != 1 {
		t.Errorf("%+v", c)
	}
	p = fold(s, ofClasses(3000, 200)...).Point() // 10 % of the chats, 6.7 % of all
	if p.SLO.Met != no || p.SLO.Deciding != "chat: p95 ttft<500ms" || *p.SLO.Attained != 2800./3000 {
		t.Errorf("%+v", p.SLO)
	}
	if c := p.Classes["chat"].SLO; c.Met != no || *c.Attained != .9 {
		t.Errorf("%+v", c)
	}
	if c := p.Classes["batch"].SLO; c.Met != yes {
		t.Errorf("%+v", c)
	}
	if good := p.Goodput.RequestsPerS; good != 280 {
		t.Errorf("goodput of %g/s", good)
	}
	s.SLO = spec(t, "chat: p95 ttft<500ms; nobody: p95 ttft<2s")
	if p = fold(s, ofClasses(3000, 0)...).Point(); p.SLO.Met != undecided {
		t.Errorf("a class without a request: %+v", p.SLO)
	}
	lost := ofClasses(3000, 0)
	lost[0].Rows[0].Class = ""
	s.SLO = spec(t, "chat: p95 ttft<500ms")
	if p = fold(s, lost...).Point(); p.SLO.Met != undecided {
		t.Errorf("a request of no known class: %+v", p.SLO)
	}
}

// Violations of a claim about a class are counted among its requests, in blocks of these.
func TestViolationsOfClasses(t *testing.T) {
	s := window(10)
	s.SLO = spec(t, "p99 e2e<5s; chat: p95 ttft<500ms; batch: p95 ttft<500ms")
	claims, err := s.SLO.SplitClaims()
	if err != nil {
		t.Fatal(err)
	}
	v := fold(s, ofClasses(300, 20)...).CountViolations(claims, 10)
	if v.N != 300 || v.Any != 120 {
		t.Errorf("%+v", v)
	}
	for i, want := range []struct {
		spec           string
		due, of, first int
	}{{"p99 e2e<5s", 300, 0, 0}, {"chat: p95 ttft<500ms", 200, 20, 20}, {"batch: p95 ttft<500ms", 100, 100, 10}} {
		if claims[i].Spec != want.spec || v.Due[i] != want.due || v.Of[i] != want.of || v.Blocks[i][0] != want.first || len(v.Blocks[i]) != 10 {
			t.Errorf("%s: %+v", claims[i].Spec, v)
		}
	}
	if none := fold(s, ofClasses(2, 0)...).CountViolations([]slo.Claim{claims[2]}, 10); none.Due[0] != 0 || len(none.Blocks[0]) != 0 {
		t.Errorf("%+v", none)
	}
}
