package config

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/say"
)

// Fleet is by how many processes a load is carried out, and how they meet.
type Fleet struct {
	Workers int    // 0 for the process that measures alone, or [AutoFleet]
	NATS    string // URL of the server that they join, "" for one in this process
	Listen  string // HOST:PORT where that is to listen, "" for workers that are started here
	Bus     Bus
}

// AutoFleet is --fleet auto: as many as a load needs of this machine, which are none where one
// process is enough.
const AutoFleet = -1

// IsRemote reports whether the workers are not started by this process.
func (f *Fleet) IsRemote() bool { return f.NATS != "" || f.Listen != "" }

// Bus holds the credentials for the NATS server that the processes of a fleet share. All files.
type Bus struct {
	TokenFile string // "" for the variable
	NkeyFile  string
	CA        string
	Cert, Key string

	JoinTimeout time.Duration // for workers, or for a run
}

// Working holds the settings of `pitot worker`.
type Working struct {
	Join string // URL of the run's NATS server
	Bus  Bus
}

const usualJoinTimeout = 10 * time.Minute

const fleetExample = "for example --fleet 4, or --fleet 'nats://nats.example:4222?workers=4&token_file=fleet.token'"

// busParameters lists the parameters of a fleet's URL besides workers.
var busParameters = []struct {
	name string
	at   func(*Bus) *string
}{
	{"token_file", func(b *Bus) *string { return &b.TokenFile }},
	{"nkey_file", func(b *Bus) *string { return &b.NkeyFile }},
	{"ca", func(b *Bus) *string { return &b.CA }},
	{"cert", func(b *Bus) *string { return &b.Cert }},
	{"key", func(b *Bus) *string { return &b.Key }},
}

// setParameter takes one parameter of a URL, and reports whether there is one of that name.
func (b *Bus) setParameter(name, value string) (known bool, err error) {
	if name == "join_timeout" {
		b.JoinTimeout, err = durationKind(time.Millisecond).parse(value)
		return true, err
	}
	for _, p := range busParameters {
		if p.name == name {
			*p.at(b), err = filePath().parse(value)
			return true, err
		}
	}
	return false, nil
}

// written returns the parameters that are not as usual, each NAME=VALUE.
func (b *Bus) written() (list []string) {
	for _, p := range busParameters {
		if v := *p.at(b); v != "" {
			list = append(list, p.name+"="+v)
		}
	}
	if b.JoinTimeout != usualJoinTimeout {
		list = append(list, "join_timeout="+b.JoinTimeout.String())
	}
	return list
}

// parseBus reads the parameters after a URL's question mark; other takes those that are not the
// bus's own, whose names are others.
func parseBus(query string, b *Bus, others []string, other func(name, value string) error) error {
	b.JoinTimeout = usualJoinTimeout
	seen := map[string]bool{}
	for parameter := range strings.SplitSeq(query, "&") {
		if parameter == "" {
			continue
		}
		name, value, _ := strings.Cut(parameter, "=")
		if seen[name] {
			return say.Errorf("%s is given twice", name).WithHint("keep one of them")
		}
		seen[name] = true
		known, err := b.setParameter(name, value)
		if !known && slices.Contains(others, name) {
			known, err = true, other(name, value)
		}
		if !known {
			names := append(slices.Clone(others), "join_timeout")
			for _, p := range busParameters {
				names = append(names, p.name)
			}
			return say.Errorf("unknown parameter %q of a fleet", name).WithHint(say.KnownHint(name, names))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if b.Key != "" && b.Cert == "" {
		return say.Errorf("key without cert").WithHint("name the certificate that the key belongs to: cert=FILE")
	}
	return nil
}

// fleetKind are 4, auto, none, or the URL of a place where workers of other machines join.
func fleetKind(words map[string]int) kind[Fleet] {
	number := orWord(wholeNumber(1, mostWorkers), words)
	return kind[Fleet]{
		choices: number.choices,
		parse: func(v string) (f Fleet, err error) {
			place, query, _ := strings.Cut(v, "?")
			listen, listens := strings.CutPrefix(place, "listen://")
			if !strings.Contains(place, "://") {
				f.Workers, err = number.parse(v)
				if err != nil && say.HintOf(err) == "" {
					err = say.Errorf("%v", err).WithHint(fleetExample)
				}
				return f, err
			}
			if listens {
				f.Listen, err = hostPort().parse(listen)
			} else {
				f.NATS, err = serverURL().parse(place)
			}
			if err != nil {
				return f, err
			}
			err = parseBus(query, &f.Bus, []string{"workers"}, func(_, v string) error {
				f.Workers, err = wholeNumber(1, mostWorkers).parse(v)
				return err
			})
			switch {
			case err != nil:
				return f, err
			case f.Workers == 0:
				return f, say.Errorf("%s does not say how many workers to wait for", v).WithHint(fleetExample)
			case f.Listen != "" && f.Bus.NkeyFile != "":
				return f, say.Errorf("the server that this process starts takes no nkey").WithHint("it takes a token: token_file=FILE")
			}
			return f, nil
		},
		write: func(f Fleet) string {
			place := f.NATS
			if f.Listen != "" {
				place = "listen://" + f.Listen
			}
			if place == "" {
				return number.write(f.Workers)
			}
			return place + "?" + strings.Join(append([]string{"workers=" + strconv.Itoa(f.Workers)}, f.Bus.written()...), "&")
		},
	}
}

// publicFleet keeps the number of workers: where they meet is of the machines that measure.
func publicFleet(v string) Public {
	kept := v
	if place, query, is := strings.Cut(v, "?"); is && strings.Contains(place, "://") {
		values, _ := url.ParseQuery(query)
		kept = values.Get("workers")
	}
	return Public{Shown: v, Kept: kept}
}

// workingKind is the URL of a run's NATS server, with what it is shown.
func workingKind() kind[Working] {
	return kind[Working]{
		parse: func(v string) (w Working, err error) {
			place, query, _ := strings.Cut(v, "?")
			if w.Join, err = joinURL().parse(place); err != nil {
				return w, err
			}
			return w, parseBus(query, &w.Bus, nil, nil)
		},
		write: func(w Working) string {
			if list := w.Bus.written(); w.Join != "" && len(list) > 0 {
				return w.Join + "?" + strings.Join(list, "&")
			}
			return w.Join
		},
	}
}
