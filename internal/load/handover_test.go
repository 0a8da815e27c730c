package load

import (
	"context"
	"slices"
	"testing"
	"time"

	"pitot/internal/twin"
)

// A load that another takes over from has its window's requests and those before it, ends its window
// where the next would come due, and is told of that before.
func TestHandsOver(t *testing.T) {
	carry := func(hand func(t1 int64) bool) (*Core, []int64) {
		s, dues := newShelf(), []int64(nil)
		c := NewCore(Config{Arrivals: &every{gap: 7e6}, Warmup: 100e6, Requests: 50, HandOver: hand})
		Run(context.Background(), c, NewVirtual(VirtualConfig{Engine: twin.NewFixed(twin.FixedConfig{TTFT: 50 * time.Millisecond, ITL: 10 * time.Millisecond}), Source: asks{8}, Sink: s}))
		for _, r := range s.rows {
			dues = append(dues, r.Due)
		}
		return c, dues
	}
	alone, all := carry(nil)
	_, want := alone.Window()
	told := int64(0)
	c, dues := carry(func(t1 int64) bool { told = t1; return true })
	if _, t1 := c.Window(); t1 != want || told != want || !c.Handed() || alone.Handed() {
		t.Errorf("the window ends at %d, told %d, alone %d", t1, told, want)
	}
	slices.Sort(dues)
	slices.Sort(all)
	n, _ := slices.BinarySearch(all, want)
	if !slices.Equal(dues, all[:n]) || len(all) <= n {
		t.Errorf("%d requests came due, %d of the same load alone, %d of them before the end of its window", len(dues), len(all), n)
	}
	if c, dues := carry(func(int64) bool { return false }); c.Handed() || len(dues) != len(all) {
		t.Errorf("a load that nothing takes over from: %d requests, alone %d", len(dues), len(all))
	}
}
