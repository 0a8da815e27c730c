package plan

import "pitot/internal/say"

// checkPromptIDs refuses prompts of token ids where they have words of their own.
func (p *Plan) checkPromptIDs() error {
	switch {
	case !p.PromptIDs:
		return nil
	case !p.GeneratedWords():
		return say.Errorf("--prompt-ids: the prompts of %s are text", p.Workload).WithHint("leave --prompt-ids out, or have prompts generated: --workload random")
	case p.Conversing():
		return say.Errorf("--prompt-ids and conversations: each turn repeats answers, which are text").WithHint("leave --prompt-ids out, or --turns")
	case !p.Verifying().None():
		return say.Errorf("--prompt-ids and questions with a known answer, which are text").WithHint("leave one of them out")
	}
	return nil
}
