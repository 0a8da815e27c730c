package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/cost"
	"pitot/internal/say"
	"pitot/internal/slo"
	"pitot/internal/workload"
	"pitot/internal/workload/arrival"
)

// kind is a type of values: how one is read, strictly, and how it is written so
// that it is read back the same, "" for none. An error says what is wrong with
// the value; which setting it was and where it stood is added by the decoder.
type kind[T any] struct {
	parse   func(v string) (T, error)
	write   func(T) string
	choices func() []Choice // values that have a name, nil for none
	paths   bool            // it names a file or directory
}

// many bounds counts, mostUsers counts of things that take memory each.
const (
	many      = 1<<31 - 1
	mostUsers = 1_000_000
)

// longest bounds lengths of time, far below the overflow of nanoseconds.
const longest = 365 * 24 * time.Hour

func sameText(v string) string { return v }

// nonEmptyWord is text that is not empty.
func nonEmptyWord() kind[string] {
	return kind[string]{write: sameText, parse: func(v string) (string, error) {
		if strings.TrimSpace(v) == "" {
			return "", errors.New("empty") // mostly a variable that is not set
		}
		return v, nil
	}}
}

// filePath is the name of a file or directory.
func filePath() kind[string] {
	k := nonEmptyWord()
	k.paths = true
	return k
}

// anything is any text; what is wrong with it is reported where it is used.
func anything() kind[string] {
	return kind[string]{write: sameText, parse: func(v string) (string, error) { return v, nil }}
}

func boolKind() kind[bool] {
	return kind[bool]{write: strconv.FormatBool, parse: func(v string) (bool, error) {
		x, err := strconv.ParseBool(v)
		if err != nil {
			err = fmt.Errorf("%q is neither true nor false", v)
		}
		return x, err
	}}
}

// oneOf is one of the names, of what they are called.
func oneOf(what string, names ...string) kind[string] {
	return kind[string]{write: sameText, choices: choicesNamed(names...), parse: func(v string) (string, error) {
		for _, n := range names {
			if v == n {
				return v, nil
			}
		}
		return "", say.Errorf("unknown %s %q", what, v).WithHint(say.KnownHint(v, names))
	}}
}

func choicesNamed(names ...string) func() []Choice {
	return func() (out []Choice) {
		for _, n := range names {
			out = append(out, Choice{Name: n})
		}
		return out
	}
}

// wholeNumber is a whole number from low to high.
func wholeNumber(least, most int) kind[int] {
	return kind[int]{write: strconv.Itoa, parse: func(v string) (int, error) {
		n, err := strconv.Atoi(v)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0, fmt.Errorf("%q is not a whole number", v)
		}
		if n < least || n > most {
			return 0, fmt.Errorf("%s is not between %s and %s", v, say.Count(least), say.Count(most))
		}
		return n, nil
	}}
}

// numberWithin is a number from low to high.
func numberWithin(least, most float64) kind[float64] {
	return kind[float64]{write: say.Exact, parse: func(v string) (float64, error) {
		x, err := strconv.ParseFloat(v, 64)
		if n, perSecond := strings.CutSuffix(v, "/s"); perSecond {
			if _, err := strconv.ParseFloat(n, 64); err == nil {
				return 0, say.Errorf("%q is not a number", v).WithHint("write " + n)
			}
		}
		if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(x) {
			return 0, fmt.Errorf("%q is not a number", v)
		}
		if x < least || x > most {
			return 0, fmt.Errorf("%s is not between %s and %s", v, formatBound(least), formatBound(most))
		}
		return x + 0, nil // a plain zero of -0
	}}
}

// formatBound writes the end of a range for a message.
func formatBound(x float64) string {
	if x == math.Trunc(x) {
		return say.Count(int64(x))
	}
	return say.Exact(x)
}

// requestRate recognises "inf", which in other tools means as fast as the server
// takes requests, and refuses it: in an open loop all requests would be due at once,
// and their waiting time would say nothing about the server.
func requestRate() kind[float64] {
	k := numberWithin(1e-6, 1e6)
	finite := k.parse
	k.parse = func(v string) (float64, error) {
		if strings.EqualFold(strings.TrimPrefix(v, "+"), "inf") || strings.EqualFold(strings.TrimPrefix(v, "+"), "infinity") {
			return 0, say.Errorf("an open loop has no infinite rate").WithHint("to saturate the server: --concurrency 256 in its place, users who each wait for their answer, or a rate above what it serves")
		}
		return finite(v)
	}
	return k
}

// durationKind is a length of time of at least so much.
func durationKind(least time.Duration) kind[time.Duration] {
	return kind[time.Duration]{write: time.Duration.String, parse: func(v string) (time.Duration, error) {
		d, err := parseDuration(v)
		if err != nil {
			return 0, err
		}
		if d < least {
			return 0, fmt.Errorf("%s is shorter than %s", v, say.Duration(least))
		}
		if d > longest {
			return 0, fmt.Errorf("%s is longer than a year", v)
		}
		return d, nil
	}}
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

// orAuto is a length of time of at least so much, or auto, which is written as
// this one.
func orAuto(auto, least time.Duration) kind[time.Duration] {
	return orWord(durationKind(least), map[string]time.Duration{"auto": auto})
}

// orWord is a kind with words for some of its values.
func orWord[T comparable](k kind[T], words map[string]T) kind[T] {
	return kind[T]{choices: choicesNamed(slices.Sorted(maps.Keys(words))...),
		parse: func(v string) (T, error) {
			if x, ok := words[v]; ok {
				return x, nil
			}
			x, err := k.parse(v)
			if err != nil && say.HintOf(err) == "" {
				err = say.Errorf("%s", err).WithHint("or in a word: " + strings.Join(slices.Sorted(maps.Keys(words)), ", "))
			}
			return x, err
		},
		write: func(x T) string {
			for word, is := range words {
				if x == is {
					return word
				}
			}
			return k.write(x)
		}}
}

// optionalKind is a value that may be left open: nil.
func optionalKind[T any](k kind[T]) kind[*T] {
	return kind[*T]{choices: k.choices, paths: k.paths,
		parse: func(v string) (*T, error) {
			x, err := k.parse(v)
			return &x, err
		},
		write: func(x *T) string {
			if x == nil {
				return ""
			}
			return k.write(*x)
		}}
}

// workloadName is a preset's name, or that of a file.
func workloadName() kind[string] {
	k := filePath()
	k.choices = presetChoices
	return k
}

// presetName is a preset's name.
func presetName() kind[string] {
	return kind[string]{write: sameText, choices: presetChoices, parse: func(v string) (string, error) {
		if _, ok := workload.PresetNamed(v); !ok && v != RandomWorkload {
			return "", workload.UnknownPreset(v)
		}
		return v, nil
	}}
}

func presetChoices() (out []Choice) {
	for _, p := range workload.Presets() {
		out = append(out, Choice{p.Name, p.About})
	}
	return out
}

// lengthKind is a distribution of lengths in tokens.
func lengthKind() kind[workload.Lengths] {
	return kind[workload.Lengths]{parse: workload.ParseLengths, write: workload.Lengths.String}
}

// turnCounts is a distribution of the turns of conversations.
func turnCounts() kind[workload.Lengths] {
	k := lengthKind()
	k.parse = func(v string) (workload.Lengths, error) {
		l, err := workload.ParseLengths(v)
		if err == nil {
			return l, nil
		}
		hint := strings.ReplaceAll(say.HintOf(err), "token", "turn")
		if a, b, ok := strings.Cut(v, "-"); ok {
			if _, err := workload.ParseLengths("uniform(" + a + "," + b + ")"); err == nil {
				hint = "write uniform(" + a + "," + b + ")"
			}
		}
		return l, say.Errorf("%s", strings.ReplaceAll(err.Error(), "token", "turn")).WithHint(hint)
	}
	return k
}

// pauseKind is a distribution of pauses.
func pauseKind() kind[workload.Pause] {
	return kind[workload.Pause]{parse: workload.ParsePause, write: workload.Pause.String}
}

// sureShare is a probability that can be asked for.
func sureShare() kind[float64] {
	k := partOf()
	any := k.parse
	k.parse = func(v string) (float64, error) {
		x, err := any(v)
		if n, bare := strconv.ParseFloat(strings.TrimRight(v, " %"), 64); err != nil && bare == nil && n >= 50 && n <= 99 {
			return 0, say.Errorf("%q is not a share", v).WithHint(fmt.Sprintf("write %v%%", n))
		}
		if n, failed := strconv.ParseFloat(strings.TrimSuffix(v, "%"), 64); err != nil && failed == nil && n > 99 {
			x, err = n/100, nil // no share at all, and least of all one of these
		}
		if err == nil && x != 0 && !(x >= .5 && x <= .99) {
			return 0, say.Errorf("%q is not between 50%% and 99%%", v).WithHint("the estimate alone is enough in about a half; the known errors of four in five predictions allow at most 99%")
		}
		return x, err
	}
	return k
}

// subAgents are those that steps of conversations start.
func subAgents() kind[workload.SubAgents] {
	return kind[workload.SubAgents]{parse: workload.ParseSubAgents, write: workload.SubAgents.String}
}

// stops is where answers end.
func stops() kind[workload.Stop] {
	return kind[workload.Stop]{parse: workload.ParseStop, write: workload.Stop.String, choices: func() []Choice {
		return []Choice{{"forced", "after --output tokens"}, {"natural", "the model decides"}, {"natural(2048)", "the model decides, at most 2,048 tokens"}}
	}}
}

// retryKind returns the kind of the retry policy for failed requests.
func retryKind() kind[Retry] {
	return kind[Retry]{parse: ParseRetry, write: Retry.String, choices: func() []Choice {
		return []Choice{{"2", "as OpenAI's clients do"}, {"3,exponential(500ms,8s)", "with other waits"}, {"3,constant(1s)", "each after a second"}}
	}}
}

// startShares is a share or a range of them: 25% or 25%-75%.
func startShares() kind[workload.StartShare] {
	return kind[workload.StartShare]{
		parse: func(v string) (x workload.StartShare, err error) {
			low, high, two := strings.Cut(v, "-")
			if !two {
				high = low
			}
			for i, at := range []*float64{&x.Least, &x.Most} {
				text, percent := strings.CutSuffix(strings.TrimSpace([]string{low, high}[i]), "%")
				if *at, err = strconv.ParseFloat(text, 64); err != nil || !percent || !(*at >= 0 && *at <= 100) {
					return x, say.Errorf("%q is no share", v).WithHint("write it as 25% or 25%-75%")
				}
				*at /= 100
			}
			if x.Most < x.Least {
				return x, say.Errorf("%q ends before it begins", v).WithHint("write the smaller share first: 25%-75%")
			}
			return x, nil
		},
		write: func(x workload.StartShare) string {
			if x.Least == x.Most {
				return say.Exact(100*x.Least) + "%"
			}
			return say.Exact(100*x.Least) + "%-" + say.Exact(100*x.Most) + "%"
		}}
}

// answerLength is one length for all answers.
func answerLength() kind[int] {
	k := wholeNumber(1, many)
	number := k.parse
	k.parse = func(v string) (int, error) {
		if l, err := workload.ParseLengths(v); err == nil && l != workload.FixedLength(int(l.Mean())) {
			return 0, say.Errorf("the reference's answers are all of one length, not %s", v).WithHint("write a number, as --output 100")
		}
		return number(v)
	}
	return k
}

func arrivalKind() kind[string] {
	return kind[string]{write: sameText, choices: lawChoices, parse: func(v string) (string, error) {
		// Files are read when the law is: a run's plan can be read without them.
		_, err := arrival.ParseLaw(v, arrival.Files{
			Times:   func(string) (arrival.Stamps, error) { return arrival.StampList{0, 0, 0, 1e9}, nil },
			Rates:   func(string) ([]float64, []float64, error) { return []float64{0, 1}, []float64{1}, nil },
			Profile: func(string) (*arrival.Law, error) { return arrival.ParseLaw("poisson", arrival.Files{}) },
		})
		return v, err
	}}
}

func lawChoices() (out []Choice) {
	for _, f := range arrival.ExampleForms() {
		out = append(out, Choice{Name: f[0], About: f[1]})
	}
	return out
}

func requestCount() kind[int64] {
	return kind[int64]{
		parse: func(v string) (int64, error) {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n < 1 {
				return 0, fmt.Errorf("%q is not a whole number of at least 1", v)
			}
			return n, nil
		},
		write: func(n int64) string { return strconv.FormatInt(n, 10) }}
}

func objectiveKind() kind[slo.Spec] {
	return kind[slo.Spec]{parse: slo.Parse, write: slo.Spec.String, choices: func() (out []Choice) {
		for _, p := range slo.Presets() {
			out = append(out, Choice{p.Name, p.Spec})
		}
		return out
	}}
}

func precisionKind() kind[slo.Precision] {
	return kind[slo.Precision]{parse: slo.ParsePrecision, write: func(p slo.Precision) string {
		if p.IsNone() {
			return ""
		}
		return p.String()
	}}
}

// jsonObject is a JSON object, as it was written.
func jsonObject() kind[string] {
	return kind[string]{write: sameText, parse: func(v string) (string, error) {
		var m map[string]json.RawMessage
		err := json.Unmarshal([]byte(v), &m)
		if err == nil && m == nil {
			return "", say.Errorf("not a JSON object: null").WithHint(`for example --body '{"top_p":0.9}'`)
		}
		if err != nil {
			return "", say.Errorf("not a JSON object: %s", strings.TrimPrefix(err.Error(), "json: ")).WithHint(`for example --body '{"top_p":0.9}'`)
		}
		return v, nil
	}}
}

func gpuPrice() kind[cost.GPU] { return kind[cost.GPU]{parse: cost.ParseGPU, write: cost.GPU.String} }

func tokenPrice() kind[cost.Tokens] {
	return kind[cost.Tokens]{parse: cost.ParseTokens, write: cost.Tokens.String}
}

// partOf is a share that is less than the whole, as it is written: 30%.
func partOf() kind[float64] {
	return kind[float64]{parse: cost.ParseShare, write: say.Exact}
}

// commaListKind is a list with commas between its values.
func commaListKind[T any](read func(string) (T, error), write func(T) string) kind[[]T] {
	return kind[[]T]{
		parse: func(v string) (out []T, err error) {
			for text := range strings.SplitSeq(v, ",") {
				x, err := read(strings.TrimSpace(text))
				if err != nil {
					return nil, err
				}
				out = append(out, x)
			}
			return out, nil
		},
		write: func(list []T) string {
			var out []string
			for _, x := range list {
				out = append(out, write(x))
			}
			return strings.Join(out, ",")
		}}
}

func streamCounts() kind[[]int] {
	return commaListKind(func(v string) (int, error) {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > 100_000 {
			return 0, say.Errorf("%q is not a number of streams", v).WithHint("for example --streams 1,10,100")
		}
		return n, nil
	}, strconv.Itoa)
}

func loadList() kind[[]float64] {
	return commaListKind(func(v string) (float64, error) {
		x, err := strconv.ParseFloat(v, 64)
		if err != nil || !(x > 0 && x <= 1e6) {
			return 0, say.Errorf("%q is not a load", v).WithHint("for example --loads 1,2,4,8")
		}
		return x, nil
	}, say.Exact)
}

// wordsKind are texts with commas between them.
func wordsKind() kind[[]string] {
	return commaListKind(func(v string) (string, error) {
		if v = strings.TrimSpace(v); v == "" {
			return "", errors.New("empty")
		}
		return v, nil
	}, sameText)
}

func proxyURL() kind[string] {
	return kind[string]{write: sameText, parse: func(v string) (string, error) {
		u, err := url.Parse(v)
		if err != nil || u.Scheme != "http" || u.Hostname() == "" {
			return "", say.Errorf("not the URL of an HTTP proxy").WithHint("for example http://proxy.example:3128")
		}
		return v, nil
	}}
}

// serverURL is that of a NATS server, or of several with commas between. What it is shown
// comes from files: a URL is seen by whoever lists processes.
func serverURL() kind[string] {
	const example = "for example nats://nats.example:4222, or tls:// for TLS"
	return kind[string]{write: sameText, parse: func(v string) (string, error) {
		for one := range strings.SplitSeq(v, ",") {
			u, err := url.Parse(one)
			if err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Hostname() == "" {
				return "", say.Errorf("not the URL of a NATS server").WithHint(example)
			}
			if u.User != nil {
				return "", say.Errorf("a secret in a URL is visible in the list of processes").WithHint("put the token into a file: ?token_file=FILE, or ?nkey_file=FILE")
			}
		}
		return v, nil
	}}
}

// joinURL is the URL of a NATS server, or local://HOST:PORT as a coordinator gives it to the
// workers that it starts.
func joinURL() kind[string] {
	nats := serverURL()
	return kind[string]{write: sameText, parse: func(v string) (string, error) {
		if address, local := strings.CutPrefix(v, "local://"); local {
			if host, _, err := net.SplitHostPort(address); err == nil && net.ParseIP(host).IsLoopback() {
				return v, nil
			}
		}
		return nats.parse(v)
	}}
}

// labelKind is a name as Kubernetes has them, with room for what is put behind it.
func labelKind() kind[string] {
	return kind[string]{write: sameText, parse: func(v string) (string, error) {
		if !regexp.MustCompile(`^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$`).MatchString(v) {
			return "", say.Errorf("not a name of objects in Kubernetes").WithHint("lower case letters, digits and dashes, at most 40")
		}
		return v, nil
	}}
}

// hostPort is where to listen.
func hostPort() kind[string] {
	return kind[string]{write: sameText, parse: func(v string) (string, error) {
		_, port, err := net.SplitHostPort(v)
		if n, e := strconv.ParseUint(port, 10, 16); err != nil || e != nil || n == 0 {
			return "", say.Errorf("not HOST:PORT").WithHint("for example 0.0.0.0:4222, or :4222")
		}
		return v, nil
	}}
}

// metricsPage is NAME=URL. Messages do not repeat the URL, which may hold a password.
func metricsPage() kind[string] {
	const example = "for example dcgm=http://gpu-host:9400/metrics"
	return kind[string]{write: sameText, parse: func(v string) (string, error) {
		name, page, ok := strings.Cut(v, "=")
		if !ok || !isToken(name) || name == "" {
			return "", say.Errorf("not NAME=URL").WithHint(example)
		}
		switch name {
		case "server", "client", "host":
			return "", say.Errorf("%s is a name of Pitot's own", name).WithHint(example)
		}
		if strings.HasPrefix(page, "unix:///") {
			return v, nil
		}
		u, err := url.Parse(page)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.ContainsFunc(page, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return "", say.Errorf("what %s names is not the URL of a page", name).WithHint(example)
		}
		for parameter := range u.Query() {
			if IsSecret(parameter) {
				return "", say.Errorf("the URL of %s holds a secret, %s", name, parameter).WithHint("give it with --set scrape-header=NAME=VALUE, or as user and password of the URL")
			}
		}
		return v, nil
	}}
}

func variableName() kind[string] {
	return kind[string]{write: sameText, parse: func(v string) (string, error) {
		for i, c := range []byte(v) {
			if letter := c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'; !letter && (i == 0 || c < '0' || c > '9') {
				v = ""
				break
			}
		}
		if v == "" { // it may be the key itself: do not repeat it
			return "", say.Errorf("not the name of an environment variable").WithHint("for example export OPENAI_API_KEY=… and --key-env OPENAI_API_KEY")
		}
		return v, nil
	}}
}

func keyValue() kind[string] {
	return kind[string]{write: sameText, parse: func(v string) (string, error) {
		if k, _, ok := strings.Cut(v, "="); !ok || k == "" {
			return "", fmt.Errorf("%q is not KEY=VALUE", v)
		}
		return v, nil
	}}
}

func headerLine() kind[string] {
	return kind[string]{write: sameText, parse: func(v string) (string, error) {
		name, value, ok := strings.Cut(v, "=")
		if !ok || !isToken(name) {
			return "", errors.New("not NAME=VALUE") // it may be a secret: do not repeat it
		}
		if strings.ContainsAny(value, "\r\n\x00") {
			return "", fmt.Errorf("the value of header %s holds a line break", name)
		}
		switch strings.ToLower(name) {
		case "host", "content-length", "transfer-encoding", "connection":
			return "", fmt.Errorf("header %s is Pitot's own to set", name)
		}
		return v, nil
	}}
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

// seeded is the seed, which is kept whether it was asked for or drawn.
type seeded struct{ one[Ask, uint64] }

func seedField() value {
	return seeded{one[Ask, uint64]{seedNumber(), func(a *Ask) *uint64 { return &a.Seed }}}
}

func seedNumber() kind[uint64] {
	return kind[uint64]{
		parse: func(v string) (uint64, error) {
			n, err := strconv.ParseUint(v, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%q is not a whole number", v)
			}
			return n, nil
		},
		write: func(n uint64) string { return strconv.FormatUint(n, 10) }}
}

func (f seeded) parseInto(parts []any, v string) error {
	err := f.one.parseInto(parts, v)
	settingPart[Ask](parts).SeedSet = err == nil
	return err
}

func (f seeded) usual(string) string { return "" }

func (f seeded) reset(parts []any, _ string) {
	a := settingPart[Ask](parts)
	a.Seed, a.SeedSet = 0, false
}

// cacheMode returns the kind of a prefix cache's state: a word, or a share of the prompts' tokens.
func cacheMode() kind[string] {
	words := oneOf("state of the cache", CacheCold, CacheWarm, CacheBoth)
	word := words.parse
	words.parse = func(v string) (string, error) {
		share, percent := strings.CutSuffix(v, "%")
		if !percent {
			s, err := word(v)
			if err != nil {
				err = say.Errorf("unknown state of the cache %.20q", v).WithHint("write cold, warm, both, or the share of the prompts' tokens that is shared, as 60%")
			}
			return s, err
		}
		x, err := strconv.ParseFloat(share, 64)
		if err != nil || !(x > 0 && x < 100) {
			return "", fmt.Errorf("%.20s is not between 0%% and 100%%", v)
		}
		return say.Exact(x) + "%", nil
	}
	return words
}

// prefixed is a prefix of so many tokens, or a tree of prefixes.
type prefixed struct{ one[Ask, int] }

func prefixField() value {
	k := wholeNumber(0, many)
	number := k.parse
	k.parse = func(v string) (int, error) {
		n, err := number(v)
		if _, notNumber := strconv.Atoi(v); notNumber != nil && !errors.Is(notNumber, strconv.ErrRange) {
			err = say.Errorf("%q is neither a number of tokens nor a tree", v).WithHint("write --prefix 2048, or --prefix 'tree(8x1024 zipf(1.1), 64x256)'")
		}
		return n, err
	}
	return prefixed{one[Ask, int]{k, func(a *Ask) *int { return &a.Prefix }}}
}

func (f prefixed) parseInto(parts []any, v string) error {
	a := settingPart[Ask](parts)
	if strings.ContainsAny(v, "(*") {
		t, err := workload.ParseTree(v)
		if err == nil {
			a.Prefix, a.Tree = 0, t
		}
		return err
	}
	err := f.one.parseInto(parts, v)
	if err == nil {
		a.Tree = nil
	}
	return err
}

func (f prefixed) written(parts []any) []string {
	if t := settingPart[Ask](parts).Tree; t != nil {
		return []string{t.String()}
	}
	return f.one.written(parts)
}

func (f prefixed) reset(parts []any, written string) {
	f.one.reset(parts, written)
	settingPart[Ask](parts).Tree = nil
}
