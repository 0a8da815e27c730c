package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// RateLimit is the number of requests that a server takes in each period; zero is any number.
type RateLimit struct {
	Requests int64
	Every    time.Duration
}

// rateLimits are written 60/1m.
func rateLimits() kind[RateLimit] {
	write := func(r RateLimit) string {
		if r == (RateLimit{}) {
			return ""
		}
		return strconv.FormatInt(r.Requests, 10) + "/" + r.Every.String()
	}
	return kind[RateLimit]{write: write, parse: func(v string) (r RateLimit, err error) {
		if v == "" {
			return r, nil
		}
		n, every, _ := strings.Cut(v, "/")
		r.Requests, err = strconv.ParseInt(strings.TrimSpace(n), 10, 64)
		if err == nil {
			r.Every, err = time.ParseDuration(strings.TrimSpace(every))
		}
		if err != nil || r.Requests < 1 || r.Every < time.Millisecond {
			return RateLimit{}, fmt.Errorf("%q is no number of requests in a time, as 60/1m", v)
		}
		return r, nil
	}}
}
