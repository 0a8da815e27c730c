package loadgen

import (
	"net/http"

	"pitot/internal/client"
	"pitot/internal/results/record"
)

// isRetriable says that clients send a request again whose attempt ended like this, as
// OpenAI's SDKs do: where no answer began (no connection, or it broke before), and
// after the statuses 408, 409, 429 and all from 500 on. What breaks in the course of a stream they
// hand to their user; a whole answer they read to its end before. hint is what the server
// says of it by X-Should-Retry, nil if nothing.
func isRetriable(r *record.Row, hint *bool) bool {
	switch {
	case r.Outcome != record.Failed || record.IsOwn(r.Error) || r.Chunks > 0:
		return false
	case r.Status < 0:
		return true
	case r.Status == http.StatusOK:
		return !r.Stream && (r.Error == record.ErrReset || r.Error == record.ErrClosed)
	case hint != nil:
		return *hint
	}
	switch r.Status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return r.Status >= 500
}

// failedEvent is the event of an attempt that waits for what is decided of it.
func failedEvent(r *record.Row, retryAfter int64, room *client.Room) Event {
	return Event{ID: r.ID, At: r.Done, Failed: true, Refused: r.Error == record.ErrConnect, Retriable: true, RetryAfter: retryAfter, Room: room}
}

// giveUp ends a request between two attempts.
func giveUp(r *record.Row, now int64, class string) {
	r.NextAttempt(max(now-r.Done, 0))
	r.Outcome, r.Error, r.Done = record.Cut, class, now
}
