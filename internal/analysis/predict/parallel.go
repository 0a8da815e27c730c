package predict

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// InParallel calls do for 0 to n−1, each once, on all processors. What do writes must be
// of its number alone: which call comes first is open.
func InParallel(n int, do func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
}
