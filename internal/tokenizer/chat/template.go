// Package chat writes a conversation as a model is given it: by the chat template that is
// published with the model, a program in Jinja. What plain templates use of that language is
// here; one that asks for more is refused by the name of what it asks for, since a prompt that is
// nearly right has another length.
package chat

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"pitot/internal/say"
	"pitot/internal/say/unreadable"
)

// Template is a chat template. It does not change.
type Template struct {
	nodes  []node
	tokens map[string]string // the names of special tokens, as bos_token: what they are
}

// Message is one of a conversation.
type Message struct{ Role, Content string }

// Parse reads a template. tokens are the special tokens by their names in tokenizer_config.json.
func Parse(source string, tokens map[string]string) (t *Template, err error) {
	defer refused(&err)
	list, err := lex(source)
	if err != nil {
		return nil, unfollowed(err.Error())
	}
	p := &parser{tokens: list}
	nodes, _ := p.block()
	return &Template{nodes, tokens}, nil
}

// Render writes a conversation, up to where the model's answer begins. now is the time that
// templates ask for which put the date into the prompt.
func (t *Template) Render(messages []Message, now time.Time) (text string, err error) {
	defer refused(&err)
	list := make([]any, len(messages))
	for i, m := range messages {
		d := &dict{}
		d.put("role", m.Role)
		d.put("content", m.Content)
		list[i] = d
	}
	// What servers give a template that asks for no tools.
	global := map[string]any{"messages": list, "tools": nil, "documents": nil, "add_generation_prompt": true}
	for name, token := range t.tokens {
		global[name] = token
	}
	r := &rendering{scopes: []map[string]any{maps.Clone(global)}, now: now}
	r.run(t.nodes)
	return r.out.String(), nil
}

// refused makes an error of what was thrown.
func refused(err *error) {
	r := recover()
	if r == nil {
		return
	}
	what, ok := r.(refusal)
	if !ok {
		panic(r)
	}
	*err = unfollowed(what.why)
}

func unfollowed(why string) error {
	return say.Errorf("the chat template is not followed: %s", why).
		WithHint("ask where the server counts prompts itself, or by --api openai-completions, which has no template")
}

// Beside finds the template that lies beside the file of a tokenizer: chat_template.jinja, or
// chat_template in tokenizer_config.json. It is nil where there is none.
func Beside(path string) (*Template, error) {
	folder := filepath.Dir(path)
	config, err := configIn(folder)
	if err != nil {
		return nil, err
	}
	source, err := os.ReadFile(filepath.Join(folder, "chat_template.jinja"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		source = []byte(config.template)
	case err != nil:
		return nil, unreadable.File("chat template", filepath.Join(folder, "chat_template.jinja"), err, "")
	}
	if len(source) == 0 {
		return nil, nil
	}
	return Parse(string(source), config.tokens)
}

// config is what a tokenizer_config.json says that matters here.
type config struct {
	template string
	tokens   map[string]string
}

func configIn(folder string) (c config, err error) {
	path := filepath.Join(folder, "tokenizer_config.json")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, unreadable.File("tokenizer_config.json", path, err, "")
	}
	c, err = parseConfig(data)
	if err != nil {
		return c, say.Errorf("%s: %v", path, err).WithHint("it may be damaged: fetch it again")
	}
	return c, nil
}

func parseConfig(data []byte) (c config, err error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return c, say.Errorf("it is no tokenizer_config.json: %v", err)
	}
	c.tokens = map[string]string{}
	for _, name := range []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"} {
		var token string
		var object struct{ Content string }
		if json.Unmarshal(all[name], &token) == nil && token != "" {
			c.tokens[name] = token
		} else if json.Unmarshal(all[name], &object) == nil && object.Content != "" {
			c.tokens[name] = object.Content
		}
	}
	var several []struct{ Name, Template string }
	switch of := all["chat_template"]; {
	case json.Unmarshal(of, &c.template) == nil:
	case json.Unmarshal(of, &several) == nil:
		for _, t := range several {
			if t.Name == "default" {
				c.template = t.Template
			}
		}
	}
	return c, nil
}
