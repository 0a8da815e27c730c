package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"pitot/internal/tokenizer/chat"
)

// holdTemplates holds Pitot's chat templates against what templates.py wrote.
func holdTemplates(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	type counts struct {
		same, refused, differ int
		why                   string
	}
	of := map[string]*counts{}
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		var c struct {
			File, Template string
			Tokens         map[string]string
			Messages       []chat.Message
			Now            int64
			Text           *string
			Error          string
		}
		if err := json.Unmarshal(line, &c); err != nil {
			return err
		}
		name := filepath.Base(c.File)
		if name == "tokenizer_config.json" {
			name = c.File
		}
		n := of[name]
		if n == nil {
			n = &counts{}
			of[name] = n
		}
		t, err := chat.Parse(c.Template, c.Tokens)
		text := ""
		if err == nil {
			text, err = t.Render(c.Messages, time.Unix(c.Now, 0))
		}
		switch {
		case err != nil && c.Text == nil: // both refuse it
			n.same++
		case err != nil:
			n.refused++
			n.why = err.Error()
		case c.Text == nil:
			n.differ++
			n.why = cmp.Or(n.why, fmt.Sprintf("it refuses a conversation that is rendered here as %.300q: %s", text, c.Error))
		case text != *c.Text:
			n.differ++
			n.why = cmp.Or(n.why, fmt.Sprintf("\n  here %q\n  there %q", text, *c.Text))
		default:
			n.same++
		}
	}
	var all counts
	for _, name := range slices.Sorted(maps.Keys(of)) {
		n := of[name]
		all.same, all.refused, all.differ = all.same+n.same, all.refused+n.refused, all.differ+n.differ
		fmt.Printf("%-60s %4d alike, %3d not followed, %3d differ %s\n", name, n.same, n.refused, n.differ, n.why)
	}
	fmt.Printf("%d templates: %d conversations alike, %d not followed, %d differ\n", len(of), all.same, all.refused, all.differ)
	return nil
}
