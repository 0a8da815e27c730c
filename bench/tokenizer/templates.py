"""What Hugging Face's transformers make of conversations with chat templates:

python3 bench/tokenizer/templates.py OUT FILE... [--each N]

Each FILE is a template (*.jinja) or a tokenizer_config.json. OUT has a line of JSON for each
conversation: the template, its special tokens, the messages, the time, and what came of it: a text, or that
the template raised an error. go run ./bench/tokenizer templates OUT holds Pitot's against it.
"""
import datetime, json, random, sys
import transformers
from transformers.utils import chat_template_utils as utils

rng = random.Random(3)
files, each = sys.argv[2:], 100
if "--each" in files:
    at = files.index("--each")
    each, files = int(files[at + 1]), files[:at] + files[at + 2:]
words = ["the", "latency", " of", "Häuser", "中文字符", "नमस्ते", "🙂", "\n", "\n\n", "  ", "\t", "<|im_end|>", "</think>", "<think>", "{{ x }}", "{% if %}", "'s", '"', "\\", "12,345.6", "[INST]", "<s>", "a/b", "&", "<", ".", "\u00a0", "\u2028"]
def text(): return "".join(rng.choice(words) + rng.choice(["", " "]) for _ in range(rng.randint(0 if rng.random() < .1 else 1, 12)))
def conversation():
    turns = rng.choice([1, 1, 1, 2, 3, 5, 7])
    list = [{"role": ["user", "assistant"][i % 2], "content": text()} for i in range(turns)]
    return ([{"role": "system", "content": text()}] if rng.random() < .4 else []) + list

with open(sys.argv[1], "w") as out:
    n = errors = 0
    for path in files:
        tokens, template = {}, open(path, encoding="utf-8").read()
        if path.endswith(".json"):
            config = json.loads(template)
            template = config.get("chat_template")
            if not template: continue
            for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
                value = config.get(name)
                if value: tokens[name] = value if isinstance(value, str) else value["content"]
        else:
            tokens = {"bos_token": "<s>", "eos_token": "</s>"}
        for _ in range(each):
            messages = conversation()
            case = {"file": path, "template": template, "tokens": tokens, "messages": messages, "now": int(datetime.datetime.now().timestamp())}
            try:
                rendered, _ = utils.render_jinja_template(conversations=[messages], chat_template=template, add_generation_prompt=True, **tokens)
                case["text"] = rendered[0]
            except Exception as e:
                case["error"] = f"{type(e).__name__}: {e}"
                errors += 1
            out.write(json.dumps(case, ensure_ascii=False) + "\n")
            n += 1
print(f"transformers {transformers.__version__}: {n:,} conversations, {errors} that a template refuses")
