package session

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// Many of these tests wait for real time, and for little else: four run at once, or more.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0))))
	os.Exit(m.Run())
}
