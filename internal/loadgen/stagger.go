package loadgen

// stagger lets the users of a closed loop begin one after the other.
//
// Users who begin together stay together where answers take equally long: they
// then queue for each other's prompts, and TTFT is that of a crowd. Spread over
// the time of one request they are as if they had always been there. But that is
// a request under their own load, which takes longer the more have begun, and
// it is not known beforehand. So they begin slowly at first, as many more in the
// time of one request as have begun before, and from the middle on over the time
// of spread requests: as the latest answer took, or as the oldest request has waited for its own.
type stagger struct {
	users, left int   // left: how many have not begun
	next        int64 // when the next of them begins
	took        int64 // what a request takes, as far as is known; at first what is expected
	by          int64 // all have begun by then, 0 for whenever
	rank, of    int64 // see newStagger
}

const (
	// spread is over how many requests' time users begin. With 2 they are as far
	// apart on the twin as users of random lengths become by themselves, with 1 in
	// bunches still where a request takes many times as long as alone.
	spread = 2
	// together is the number of users that begin at first in the time of one request.
	together = 4
)

// newStagger is that of a worker's users. Those of several workers begin one after the
// other too, and no two of them in the same nanosecond: where a window counts requests, it
// ends between two.
func newStagger(cfg Config) stagger {
	s := stagger{users: cfg.Users, left: cfg.Users, took: cfg.Stagger, by: cfg.Begun}
	if w := cfg.Share; !w.isWhole() && s.users > 0 {
		s.rank, s.of = int64(w.Rank), int64(w.Of)
		s.next = s.separateStart(int64(s.gapShare() * float64(s.took) * float64(w.Rank) / float64(w.Of)))
	}
	return s
}

// gapShare returns the share of a request's time between the starts of the last user and the next.
func (s *stagger) gapShare() float64 {
	return max(1/float64(max(together, s.users-s.left)), spread/float64(s.users))
}

// begin takes the next user out and sets when the one behind begins.
func (s *stagger) begin() {
	s.left--
	gap := int64(s.gapShare() * float64(s.took))
	if s.left > 0 && s.by > 0 {
		gap = min(gap, max(0, s.by-s.next)/int64(s.left))
	}
	if s.of > 0 {
		s.next = s.separateStart(s.next + max(gap, s.of))
		return
	}
	s.next += gap
}

// separateStart is about a time: that of them at which no other worker's user begins.
func (s *stagger) separateStart(at int64) int64 { return at - at%s.of + s.rank }
