package cli

import (
	"fmt"
	"strconv"
	"strings"

	"pitot/internal/config"
	"pitot/internal/say"
	"pitot/internal/session"
	"pitot/internal/workload"
	"pitot/internal/workload/token"
)

// sampleWorkload shows requests as they would be sent.
func sampleWorkload(e *Env, args []string) error {
	n, withText, seed, name := 5, false, "1", ""
	for len(args) > 0 {
		flag, value, valued := strings.Cut(args[0], "=")
		whole := args[0]
		args = args[1:]
		if !strings.HasPrefix(flag, "-") {
			if name != "" {
				return say.Errorf("one workload at a time: %s and %s", name, whole)
			}
			name = whole
			continue
		}
		if flag == "--text" && !valued {
			withText = true
			continue
		}
		if !valued && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		var err error
		switch flag {
		case "-n":
			if n, err = strconv.Atoi(value); err != nil || n < 1 || n > 100_000 {
				return say.Errorf("-n: %.20q is not a number from 1 on", value)
			}
		case "--seed":
			seed = value
		default:
			return say.Errorf("unknown flag %s", flag).WithHint(say.KnownHint(flag, []string{"-n", "--seed", "--text"}))
		}
	}
	if name == "" {
		return say.Errorf("no workload named").WithHint("for example pitot workload sample chat -n 5")
	}
	p, _, err := config.Decode(config.VerbRun, []string{"sim:fixed", "--workload", name, "--rate", "1", "--seed", seed}, nil)
	if err != nil {
		return err
	}
	src, done, err := session.OpenWorkload(&p.Ask, 0)
	if err != nil {
		return err
	}
	defer done()
	follow, _ := src.(workload.Sessions)
	shown := 0
	for i := int64(0); shown < n; i++ {
		for next := []workload.Next{{Item: i}}; len(next) > 0 && shown < n; shown++ {
			q, err := src.At(next[0].Item)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprint(e.Stdout, requestText(&q, next[0], withText)); err != nil {
				return err
			}
			rest := next[1:]
			if follow != nil {
				rest = append(follow.Follow(q.ID, true), rest...)
			}
			next = rest
		}
	}
	return nil
}

// requestText is a request in a few lines. Words of its own making are shown as they begin; those
// of somebody's file only where they were asked for.
func requestText(q *workload.Request, n workload.Next, withText bool) string {
	var b strings.Builder
	tokens := func(x int, what string) string {
		if x == workload.Unknown {
			return what + " not known"
		}
		return say.Count(int64(x)) + " tokens " + what
	}
	number := q.ID
	if q.Turn > 0 { // an item of its own, whose number holds both
		number = q.Session
	}
	fmt.Fprintf(&b, "%d: %s, %s", number, tokens(q.Input, "in"), tokens(q.Output, "out"))
	if q.Class != "" {
		fmt.Fprintf(&b, ", %s", q.Class)
	}
	if q.Turn > 0 {
		fmt.Fprintf(&b, ", turn %d of session %d, %s behind the answer before", q.Turn+1, q.Session, say.Seconds(n.After.Seconds()))
	}
	b.WriteString("\n")
	first := true
	for _, m := range q.Messages {
		for _, s := range m.Segments {
			fmt.Fprintf(&b, "    %-9s ", m.Role)
			switch {
			case s.Served:
				_, turn := workload.SplitItem(s.Item)
				fmt.Fprintf(&b, "the answer to turn %d\n", turn+1)
			case s.Words > 0:
				text := string(workload.Segment{Seed: s.Seed, Words: min(s.Words, 8)}.Append(nil, token.Universal(), first))
				if s.Words > 8 {
					text += " …"
				}
				fmt.Fprintf(&b, "%s  %s\n", say.Plural(s.Words, "word"), strings.TrimSpace(text))
			case withText:
				fmt.Fprintf(&b, "%q\n", s.Text)
			default:
				fmt.Fprintf(&b, "%s of text; --text shows it\n", say.Plural(len(s.Text), "byte"))
			}
			first = false
		}
	}
	return b.String()
}
