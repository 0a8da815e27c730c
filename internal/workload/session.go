package workload

import "time"

// Sessions is a Source in which items follow others: the turns of conversations, the
// steps of agents. An item that comes by itself begins a session. What is asked may
// contain what was answered before: a [Segment] that is Served stands for it.
type Sessions interface {
	Source
	// Follow says what follows an item that has ended: nothing where the session is
	// over, several where it goes on in several ways at once. answered says whether the
	// answer came to its end; where it did not, a client that gives up asks nothing
	// more. It is pure in its arguments, and each item is named in a session by as many
	// others as it waits for.
	Follow(item int64, answered bool) []Next
}

// Next is an item that follows another.
type Next struct {
	Item int64
	// After is the pause between the end of the item before and this one: the time that
	// a user reads and types, or a tool runs.
	After time.Duration
	// Join is the number of items of the session that must name this one before it comes. It is due
	// when the last of their pauses has passed. 0 and 1 both mean one.
	Join int
}

// turns is the distance of a session's items.
const turns = int64(1) << 32

// TurnItem is the item of a session's turn, where sessions are numbered from 0 as they
// come by themselves: turn 0 of session s is item s. There is room for 2³² sessions of
// 2³¹ turns.
func TurnItem(session int64, turn int32) int64 { return session + int64(turn)*turns }

// SplitItem is the session and the turn of an item that [TurnItem] gave.
func SplitItem(item int64) (session int64, turn int32) {
	return item % turns, int32(item / turns)
}
