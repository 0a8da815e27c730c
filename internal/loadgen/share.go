package loadgen

import "pitot/internal/workload/seed"

// Share is the part of a load that one of several workers carries out. Every worker
// decides over the whole schedule and acts on its own part of it, so no request has to
// be handed out. The zero value is all of it.
//
// Whose a request is follows from a hash of the item it asks for, and what follows its
// answer stays with the same worker. Taking items in turn would be as fair, but makes
// each worker's part of a Poisson process too even, and their sum is then no Poisson
// process once the workers' clocks are apart. Parts that are chosen at random are Poisson
// processes themselves (thinning), and so is their sum, whatever the clocks.
type Share struct {
	Rank, Of int    // worker Rank, counted from 0, of so many
	Seed     uint64 // of the hash, the same for all
}

// shareStream is the stream of the seed that the workers are drawn from.
const shareStream = 0x7368617265

// isWhole says that there is but one worker.
func (s Share) isWhole() bool { return s.Of <= 1 }

// Includes says whether an item that comes by itself is of this share.
func (s Share) Includes(item int64) bool {
	return s.isWhole() || seed.At(s.Seed, shareStream, uint64(item))%uint64(s.Of) == uint64(s.Rank)
}

// AmountOf is this share of something that can be counted, such as users: those of all
// workers are n together.
func (s Share) AmountOf(n int64) int64 {
	if s.isWhole() {
		return n
	}
	own := n / int64(s.Of)
	if int64(s.Rank) < n%int64(s.Of) {
		own++
	}
	return own
}

// firstItem is the first item of this share from one on.
func (s Share) firstItem(item int64) int64 {
	for !s.Includes(item) {
		item++
	}
	return item
}

// ForShare is a worker's part of a load: its users, and its share of what is in flight at
// most. How many requests a window counts is known to each where they come by a schedule;
// where they follow answers it is divided too. A worker that has none of a total sends
// nothing; one that has none of what a window counts still needs an end, and has one, which
// comes behind the window of all.
func (c Config) ForShare(s Share) Config {
	if s.isWhole() {
		return c
	}
	c.Share = s
	c.Users, c.Cap = int(s.AmountOf(int64(c.Users))), int(s.AmountOf(int64(c.Cap)))
	if c.Arrivals == nil || c.Follow != nil {
		c.Requests = max(s.AmountOf(c.Requests), min(c.Requests, 1))
	}
	if c.Follow != nil && c.Total > 0 {
		if c.Total = s.AmountOf(c.Total); c.Total == 0 {
			c.Total = -1
		}
	}
	return c
}
