package loadgen

import "pitot/internal/workload"

// FollowOf is the Follow of a source: nil where nothing in it follows anything.
func FollowOf(src workload.Source) func(item int64, e Event) []Ask {
	s, ok := src.(workload.Sessions)
	if !ok {
		return nil
	}
	return func(item int64, e Event) []Ask {
		var asks []Ask
		for _, n := range s.Follow(item, !e.Failed && !e.Cut) {
			asks = append(asks, Ask{Due: e.At + int64(n.After), Item: n.Item, Join: n.Join})
		}
		return asks
	}
}
