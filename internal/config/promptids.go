package config

import "pitot/internal/say"

// checkPromptIDs refuses prompts of token ids where they have words of their own, and nothing
// that makes ids of them.
func (p *Plan) checkPromptIDs() error {
	switch {
	case !p.PromptIDs:
		return nil
	case p.OwnText() && p.Tokenizer == "":
		return say.Errorf("--set prompt-ids: the prompts of %s are text", p.Workload).WithHint("--tokenizer FILE of the model makes token ids of them")
	case p.HasConversations() && p.Tokenizer == "":
		return say.Errorf("--set prompt-ids and conversations: each turn repeats answers, which are text").WithHint("--tokenizer FILE of the model makes token ids of them")
	case !p.VerifiedShares().IsNone():
		return say.Errorf("--set prompt-ids and questions with a known answer, which are text").WithHint("leave one of them out")
	}
	return nil
}
