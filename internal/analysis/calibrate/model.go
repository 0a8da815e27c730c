package calibrate

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"pitot/internal/say"
	"pitot/internal/sim/catalogue"
	"pitot/internal/sim/deploy"
	"pitot/internal/target"
)

// checkModel refuses a server that says that it serves another model than the deployment's.
func (c *Calibration) checkModel(ctx context.Context) error {
	told, err := target.IdentifyServer(ctx, target.WantedBy(c.Plan))
	if err != nil {
		return err
	}
	if why := anotherModel(c.Deployment, told); why != "" {
		return say.Errorf("%s, and --deployment names %s", why, c.Deployment.Model.Name).
			WithHint("name the model that is served: --deployment MODEL@GPU, or the directory of its config.json in the place of MODEL; where it is that model after all: --allow model")
	}
	return nil
}

// anotherModel says why what a server tells of its model is plainly not the deployment's, "" where
// it may be.
func anotherModel(d *deploy.Deployment, told *target.Told) string {
	names := slices.DeleteFunc([]string{told.Model, told.Root}, func(name string) bool { return name == "" })
	text := strings.Join(slices.Compact(slices.Clone(names)), ", loaded from ")
	text = "the server's model is " + say.PlainLine(text)
	own := wordsOf(append([]string{d.Model.Name, d.Model.HF}, d.Model.Aliases...)...)
	other, alike := "", false
	for _, name := range names {
		switch m, err := catalogue.FindModel(name); {
		case err == nil && m.Name == d.Model.Name:
			alike = true
		case err == nil:
			other = m.Name
		case d.Model.HF == "" && d.Model.Name == lastElement(name):
			alike = true
		}
	}
	switch {
	case len(names) == 0, alike:
	case other != "":
		return text + ", which is " + other
	case !sameFamily(wordsOf(names...), own):
		return text
	}
	if d.Model.MaxPosition > 0 && told.Context > d.Model.MaxPosition {
		return fmt.Sprintf("%s, with a context of %s tokens where that model has %s", text, say.Count(told.Context), say.Count(d.Model.MaxPosition))
	}
	return ""
}

// sameFamily reports whether a model whose names have some words may be the one whose names have
// others.
func sameFamily(theirs, own []string) bool {
	for _, w := range theirs {
		if (w == "tiny" || w == "random" || w == "dummy") && !slices.Contains(own, w) {
			return false
		}
	}
	shared := func(size bool) (has, same bool) {
		for _, w := range theirs {
			if isSize(w) == size {
				has, same = true, same || slices.Contains(own, w)
			}
		}
		return has, same
	}
	_, family := shared(false)
	sized, size := shared(true)
	return family && (!sized || size || !slices.ContainsFunc(own, isSize))
}

// lastElement is the last part of a path or a repository's name.
func lastElement(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// word is a run of letters, or a size as 8b or 0.5b.
var word = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)?[bm]\b|[a-z]{3,}`)

// isSize reports whether a word of a model's name says how many weights it has.
func isSize(w string) bool { return w[0] <= '9' }

// wordsOf are the words of models' names by which one is told from another.
func wordsOf(names ...string) (words []string) {
	for _, name := range names {
		for _, w := range word.FindAllString(strings.ToLower(name), -1) {
			switch w {
			case "instruct", "chat", "base", "model", "models", "meta", "huggingface", "hub", "snapshots", "gguf", "home", "data", "mnt", "tmp", "cache":
			default:
				words = append(words, w)
			}
		}
	}
	return words
}
