package plan

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"pitot/internal/say"
	"pitot/internal/slo"
	"pitot/internal/workload"
	"pitot/internal/workload/arrival"
)

// Kinds of values: how each is read, strictly, and how it is written so that
// it is read back the same. An error says what is wrong with the value; which
// setting it was and where it stood is added by Decode.

// many bounds whole numbers of things.
const many = 1<<31 - 1

// longest bounds times, far from where nanoseconds would overflow.
const longest = 365 * 24 * time.Hour

func str(at func(*Plan) *string) func(*Plan, string) error {
	return func(p *Plan, v string) error {
		if strings.TrimSpace(v) == "" {
			return errors.New("empty") // mostly a variable that is not set
		}
		*at(p) = v
		return nil
	}
}

// setFaults takes one fault or several with commas between them, once or more
// often.
func setFaults(p *Plan, v string) error {
	if strings.TrimSpace(v) == "" {
		return errors.New("empty")
	}
	if p.Mock.Faults != "" {
		v = p.Mock.Faults + "," + v
	}
	p.Mock.Faults = v
	return nil
}

func toggle(at func(*Plan) *bool) func(*Plan, string) error {
	return func(p *Plan, v string) (err error) {
		if *at(p), err = strconv.ParseBool(v); err != nil {
			return fmt.Errorf("%q is neither true nor false", v)
		}
		return nil
	}
}

func oneOf(at func(*Plan) *string, what string, names []string) func(*Plan, string) error {
	return func(p *Plan, v string) error {
		for _, n := range names {
			if v == n {
				*at(p) = v
				return nil
			}
		}
		return say.Errorf("unknown %s %q", what, v).WithHint(say.Known(v, names))
	}
}

func count(at func(*Plan) *int, least, most int) func(*Plan, string) error {
	return func(p *Plan, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return fmt.Errorf("%q is not a whole number", v)
		}
		if n < least || n > most {
			return fmt.Errorf("%s is not between %s and %s", v, say.Count(least), say.Count(most))
		}
		*at(p) = n
		return nil
	}
}

func number(at func(*Plan) *float64, least, most float64) func(*Plan, string) error {
	return func(p *Plan, v string) error {
		x, err := strconv.ParseFloat(v, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(x) {
			return fmt.Errorf("%q is not a number", v)
		}
		if x < least || x > most {
			return fmt.Errorf("%s is not between %s and %s", v, bound(least), bound(most))
		}
		*at(p) = x + 0 // a plain zero of -0
		return nil
	}
}

// bound writes an end of a range of numbers.
func bound(x float64) string {
	if x == math.Trunc(x) {
		return say.Count(int64(x))
	}
	return decimal(x)
}

// setRate also knows the infinite rate by which other tools mean as much as
// the server takes. An open loop has none: its requests would all be due at
// once, and their wait would say nothing of the server.
func setRate(p *Plan, v string) error {
	if strings.EqualFold(strings.TrimPrefix(v, "+"), "inf") || strings.EqualFold(strings.TrimPrefix(v, "+"), "infinity") {
		return say.Errorf("an open loop has no infinite rate").WithHint("to saturate the server: --concurrency 256 in its place, users who each wait for their answer, or a rate above what it serves")
	}
	return number(func(p *Plan) *float64 { return &p.Rate }, 1e-6, 1e6)(p, v)
}

func duration(at func(*Plan) *time.Duration, least time.Duration) func(*Plan, string) error {
	return func(p *Plan, v string) error {
		d, err := parseDuration(v)
		if err != nil {
			return err
		}
		if d < least {
			return fmt.Errorf("%s is shorter than %s", v, say.Span(least))
		}
		if d > longest {
			return fmt.Errorf("%s is longer than a year", v)
		}
		*at(p) = d
		return nil
	}
}

func parseDuration(v string) (time.Duration, error) {
	if d, err := time.ParseDuration(v); err == nil {
		return d, nil
	}
	if x, err := strconv.ParseFloat(v, 64); err == nil && x >= 0 {
		return 0, say.Errorf("%q has no unit", v).WithHint("write " + v + "s or " + v + "ms")
	}
	return 0, fmt.Errorf("%q is not a time such as 500ms, 60s or 10m", v)
}

func lengths(at func(*Plan) *workload.Lengths) func(*Plan, string) error {
	return func(p *Plan, v string) (err error) {
		*at(p), err = workload.ParseLengths(v)
		return err
	}
}

func setArrival(p *Plan, v string) error {
	if _, err := arrival.Parse(v, 1, 0); err != nil {
		return err
	}
	p.Arrival = v
	return nil
}

func setRequests(p *Plan, v string) error {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is not a whole number of at least 1", v)
	}
	p.Requests = n
	return nil
}

func setWarmup(p *Plan, v string) error {
	if v == "auto" {
		p.Warmup = AutoWarmup
		return nil
	}
	return duration(func(p *Plan) *time.Duration { return &p.Warmup }, 0)(p, v)
}

func setSeed(p *Plan, v string) (err error) {
	p.Seed, err = strconv.ParseUint(v, 10, 64)
	if err != nil {
		return fmt.Errorf("%q is not a whole number", v)
	}
	p.SeedSet = true
	return nil
}

func setSLO(p *Plan, v string) (err error) {
	p.SLO, err = slo.Parse(v)
	return err
}

func setBody(p *Plan, v string) error {
	p.Body = v
	return checkJSONObject(v)
}

func setTokenPrice(p *Plan, v string) error {
	in, out, ok := strings.Cut(v, "/")
	a, err1 := strconv.ParseFloat(in, 64)
	b, err2 := strconv.ParseFloat(out, 64)
	if !ok || err1 != nil || err2 != nil || !(a >= 0) || !(b >= 0) || a > 1e6 || b > 1e6 {
		return say.Errorf("%q is not IN/OUT", v).WithHint("for example 0.15/0.60")
	}
	p.TokenPrice = TokenPrice{a, b}
	return nil
}

func setStreams(p *Plan, v string) error {
	p.Streams = nil
	for text := range strings.SplitSeq(v, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > 100_000 {
			return say.Errorf("%q is not a number of streams", text).WithHint("for example --streams 1,10,100")
		}
		p.Streams = append(p.Streams, n)
	}
	return nil
}

func setLoads(p *Plan, v string) error {
	p.Loads = nil
	for text := range strings.SplitSeq(v, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(x > 0 && x <= 1e6) {
			return say.Errorf("%q is not a load", text).WithHint("for example --loads 1,2,4,8")
		}
		p.Loads = append(p.Loads, x)
	}
	return nil
}

// nonEmpty is a stored value, none for the empty one.
func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func setProxy(p *Plan, v string) error {
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" {
		return say.Errorf("not the URL of an HTTP proxy").WithHint("for example http://proxy.example:3128")
	}
	p.Proxy = v
	return nil
}

func setKeyEnv(p *Plan, v string) error {
	for i, c := range []byte(v) {
		if letter := c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'; !letter && (i == 0 || c < '0' || c > '9') {
			v = ""
			break
		}
	}
	if v == "" { // it may be the key itself: do not repeat it
		return say.Errorf("not the name of an environment variable").WithHint("for example export OPENAI_API_KEY=… and --key-env OPENAI_API_KEY")
	}
	p.KeyEnv = v
	return nil
}

func setNote(p *Plan, v string) error {
	if k, _, ok := strings.Cut(v, "="); !ok || k == "" {
		return fmt.Errorf("%q is not KEY=VALUE", v)
	}
	p.Notes = append(p.Notes, v)
	return nil
}

func setHeader(p *Plan, v string) error {
	name, value, ok := strings.Cut(v, "=")
	if !ok || !isToken(name) {
		return errors.New("not NAME=VALUE") // it may be a secret: do not repeat it
	}
	if strings.ContainsAny(value, "\r\n\x00") {
		return fmt.Errorf("the value of header %s holds a line break", name)
	}
	switch strings.ToLower(name) {
	case "host", "content-length", "transfer-encoding", "connection":
		return fmt.Errorf("header %s is Pitot's own to set", name)
	}
	p.Headers = append(p.Headers, v)
	return nil
}

// isToken follows RFC 9110 5.6.2.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`()<>@,;:\"/[]?={}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// getters

func text(of func(*Plan) string) func(*Plan) []string { return unless("", of) }

func unless(usual string, of func(*Plan) string) func(*Plan) []string {
	return func(p *Plan) []string {
		if v := of(p); v != usual {
			return []string{v}
		}
		return nil
	}
}

func on(of func(*Plan) bool) func(*Plan) []string {
	return func(p *Plan) []string {
		if of(p) {
			return []string{"true"}
		}
		return nil
	}
}

func ifSet(of func(*Plan) time.Duration) func(*Plan) []string {
	return func(p *Plan) []string {
		if d := of(p); d >= 0 {
			return []string{d.String()}
		}
		return nil
	}
}

// storedShare is the share of the prefix: 1 by default where there is one.
func storedShare(p *Plan) []string {
	usual := 0.
	if p.Prefix > 0 {
		usual = 1
	}
	if p.PrefixShare == usual {
		return nil
	}
	return []string{decimal(p.PrefixShare)}
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
