package target

import (
	"strings"
	"testing"
	"time"

	"pitot/internal/clock"
)

// Times of engines that come and go count from the start of the load, or of the server,
// which was before it.
func TestChanging(t *testing.T) {
	x := Target{changes: "engine 0 died at 4 s", firstChange: 4 * time.Second}
	if told, first := x.EngineChanges(); first != 4*time.Second || !strings.HasSuffix(told, "(from the start of the load and its warm-up)") {
		t.Errorf("%s, first in %v", told, first)
	}
	x.began = clock.Now() - int64(time.Second)
	if told, first := x.EngineChanges(); first > 3*time.Second || first < 2*time.Second || !strings.Contains(told, "(from the start of the server, 1") {
		t.Errorf("%s, first in %v", told, first)
	}
	x.began -= int64(time.Minute)
	if _, first := x.EngineChanges(); first != 0 {
		t.Errorf("what was comes in %v", first)
	}
	if told, first := new(Target).EngineChanges(); told != "" || first != 0 {
		t.Errorf("of no change %q, %v", told, first)
	}
}
