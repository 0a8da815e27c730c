"""Trains the small tokenizers of internal/tokenizer/testdata with Hugging Face's tokenizers and
SentencePiece, and writes what these make of texts: python3 bench/tokenizer/train.py, at the repository's root.

They are trained on the repository's own documents and on words made up in many scripts, and
exist so that tests run what published ones run: each has another chain of steps.
"""
import glob, io, json, os, random, sys
import sentencepiece as spm
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers as pre, processors, trainers

to = "internal/tokenizer/testdata/"
rng = random.Random(7)
blocks = [(0x61, 0x7A)] * 3 + [(0xE0, 0xFF), (0x430, 0x44F), (0x4E00, 0x4EFF), (0x3041, 0x3096), (0xAC00, 0xACFF), (0x621, 0x64A), (0x905, 0x939), (0x1F600, 0x1F64F)]
words = ["".join(chr(rng.randint(*b)) for _ in range(rng.randint(1, 5))) for b in (rng.choice(blocks) for _ in range(600))]
made = [" ".join(rng.choice(words) for _ in range(12)) for _ in range(3000)]
lines = [l for f in sorted(glob.glob("docs/**/*.md", recursive=True) + ["README.md", "CONTRIBUTING.md"]) for l in open(f, encoding="utf-8").read().splitlines() if l] + made

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN3_5 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
TEKKEN = O200K.replace(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace("{1,3}", "")
HAN = r"[\p{Han}]+|" + O200K.replace(r"\p{Lo}\p{M}]", r"\p{Lo}\p{M}&&[^\p{Han}]]")
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]

def split(*patterns): return pre.Sequence([pre.Split(Regex(p), "isolated") for p in patterns] + [pre.ByteLevel(add_prefix_space=False, use_regex=False)])
def bpe_trainer(n, special, **kw): return trainers.BpeTrainer(vocab_size=n, special_tokens=special, initial_alphabet=pre.ByteLevel.alphabet() if kw.pop("bytes", True) else [], show_progress=False, **kw)

def save(name, tok, edit=lambda j: None):
    j = json.loads(tok.to_str())
    edit(j)
    open(to + name + ".json", "w").write(json.dumps(j, ensure_ascii=False, separators=(",", ":")) + "\n")

def byte_level(name, pattern, normalizer=None, n=700):
    tok = Tokenizer(models.BPE())
    if normalizer: tok.normalizer = normalizer
    tok.pre_tokenizer = split(*pattern)
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(lines, bpe_trainer(n, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]))
    return tok

def old_merges(j): j["model"]["merges"] = [" ".join(m) for m in j["model"]["merges"]]

t = byte_level("llama3", [LLAMA3])
t.post_processor = processors.TemplateProcessing(single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)])
save("llama3", t, lambda j: (j["model"].__setitem__("ignore_merges", True), old_merges(j)))
save("qwen", byte_level("qwen", [QWEN2], normalizers.NFC()))
save("marks", byte_level("marks", [QWEN3_5], normalizers.NFD()))
save("o200k", byte_level("o200k", [O200K]))
save("tekken", byte_level("tekken", [TEKKEN], normalizers.NFKC()))
save("han", byte_level("han", [HAN]))
save("deepseek", byte_level("deepseek", DEEPSEEK, normalizers.Sequence([])))

t = Tokenizer(models.BPE())
t.pre_tokenizer = pre.ByteLevel(add_prefix_space=True)
t.decoder = decoders.ByteLevel()
t.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
t.train_from_iterator(lines, bpe_trainer(700, ["<s>", "</s>"]))
t.add_special_tokens([AddedToken("<mask>", lstrip=True), AddedToken("<sep>", rstrip=True)])
t.add_tokens([AddedToken("pitot", single_word=True), AddedToken("  ", normalized=False)])
save("gpt2", t, old_merges)

t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
t.pre_tokenizer = pre.Metaspace(prepend_scheme="never")  # for training alone: pieces that are words
t.train_from_iterator(lines, bpe_trainer(900, ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)], bytes=False, limit_alphabet=200))
def no_words(j):
    j["pre_tokenizer"] = None
    for a in j["added_tokens"][3:]: a["special"] = False
    j["added_tokens"] = j["added_tokens"][:3]
save("llama2", t, no_words)

t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
t.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Replace(Regex(r" {2,}|\t"), " "), normalizers.Strip()])
t.pre_tokenizer = pre.Sequence([pre.Digits(individual_digits=True), pre.Punctuation("contiguous"), pre.Metaspace(prepend_scheme="first")])
t.decoder = decoders.Metaspace()
t.train_from_iterator(lines, bpe_trainer(700, ["<unk>"], bytes=False, limit_alphabet=150, continuing_subword_prefix="@"))
save("prefixed", t)

t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=40))
t.normalizer = normalizers.BertNormalizer()
t.pre_tokenizer = pre.BertPreTokenizer()
t.decoder = decoders.WordPiece()
t.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=1100, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], limit_alphabet=250, show_progress=False))
t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
t.add_tokens([AddedToken("Kernel", normalized=True)])
save("bert", t)

t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
t.normalizer = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
t.pre_tokenizer = pre.Sequence([pre.Whitespace(), pre.Digits(), pre.Punctuation("merged_with_next")])
t.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=700, special_tokens=["[UNK]"], limit_alphabet=150, show_progress=False))
save("cased", t)

def sentencepiece(name, kind, **kw):
    out = io.BytesIO()
    spm.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, model_type=kind, minloglevel=2, num_threads=1, hard_vocab_limit=kind == "bpe", **kw)
    return out.getvalue()

# A small charsmap: SentencePiece's own has a hundred thousand rules. Sequences of characters: what
# is replaced, by what.
rules = {"\t": " ", "\r": " ", "\n": " ", "\u00a0": " ", "\u3000": " ", "\u200b": "", "ﬁ": "fi", "ﬀ": "ff", "½": "1⁄2", "²": "2", "Ⅷ": "VIII", "e\u0301": "é", "a\u0308": "ä", "İ": "i", "①": "1", "ｶ\uff9e": "ガ", "ｶ": "カ", "…": "..."}
rules |= {chr(0xFF01 + i): chr(0x21 + i) for i in range(94)}
with open("/tmp/rules.tsv", "w", encoding="utf-8") as f:
    for a, b in rules.items():
        f.write(" ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n")
unigram = sentencepiece("unigram", "unigram", vocab_size=1100, byte_fallback=True, normalization_rule_tsv="/tmp/rules.tsv", character_coverage=0.995)
bpe = sentencepiece("bpe", "bpe", vocab_size=900, byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False, character_coverage=0.99, user_defined_symbols=["<sep>", "[INST]"])
plain = sentencepiece("plain", "unigram", vocab_size=600, normalization_rule_tsv="/tmp/rules.tsv", character_coverage=0.98, treat_whitespace_as_suffix=False, split_digits=True)
for name, data in (("unigram", unigram), ("bpe", bpe), ("plain", plain)):
    open(to + name + ".model", "wb").write(data)

# The same unigram models as tokenizer.json, in the form that T5 and XLM-R have.
import base64
from sentencepiece import sentencepiece_model_pb2 as pb
for name, data, scheme in (("unigram", unigram, "always"), ("plain", plain, "first")):
    m = pb.ModelProto(); m.ParseFromString(data)
    t = Tokenizer(models.Unigram([(p.piece, p.score) for p in m.pieces], m.trainer_spec.unk_id, byte_fallback=m.trainer_spec.byte_fallback))
    steps = [normalizers.Precompiled(m.normalizer_spec.precompiled_charsmap), normalizers.Replace(Regex(" {2,}"), " ")]
    t.normalizer = normalizers.Sequence(steps if name == "unigram" else [normalizers.Strip(left=False, right=True)] + steps)
    t.pre_tokenizer = pre.Metaspace(prepend_scheme=scheme)
    t.decoder = decoders.Metaspace(prepend_scheme=scheme)
    t.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    t.add_special_tokens([AddedToken("<s>"), AddedToken("</s>"), AddedToken("<unk>")])
    save(name, t)

# What they make of texts. Surrogates cannot be in a text, and bytes that are no UTF-8 are tested apart.
texts = ["", " ", "  ", "\n", "a", " a", "a ", "Hello world", "Hello   world  ", "  leading", "trailing \n\n ", "I'll say DON'T, we'Ve 'S 'ſ it's", "x" * 200, "ab" * 300, "1 12 123 1234 12345 3.14 ½²Ⅷ① ٣४",
    "\r\n\r\n \n\t\n x", " \n \n", "a\u00a0b\u3000c\u2003d\u200be\u2028f\u0085g\x0bh\x1ci\x00j", "e\u0301 é Å Å ﬁ ﬀ İ ǅ ʰª ß Σς", "한국어 ᄒ\u1161\u11ab 中文字符，你好。世界 ひらがなカタカナ ｶ\uff9eｶ", "مرحبا שלום नमस्ते ไทย ক্ষ", "🙂👍🏽👨‍👩‍👧🇩🇪❤️1️⃣#️⃣©\u200d🙂",
    "camelCase HTTPServer snake_case __init__ aA Aa AaA 中a中A Éa \u0301A \u0301a", "func main() {\n\tif x != 0 { return }\n}\n\n// done/\n/", "<s>a</s> <unk> <|endoftext|>b<|im_start|> <|im_end|>", "a <mask>b <sep>  c pitot pitots (pitot) a  b   c", "[CLS] x [SEP] [MASK]; kernel Kernel KERNEL kernels [INST]", "<0x0A> ▁ ▁▁a Ġ Ċ ##ing @a",
    "=> != == && || /* */ $x +1 ~^`<>|", "。。。！？…— “q” ‘r’ «s»", "aaa" + "\u0301" * 40 + "\u0323b", "\ufeffBOM \ufffd \ue000 \U0010ffff", "latency throughput tokens per second p99 TTFT 200 ms", "a\u0e33 \u0903\u0301 \u0600x", "’s ‘S a'sb 's's", "a,b;c d", "-1,000.50%", "\u1e9b\u0323 \u03d3 \u2126"]
seen = set(texts)
for l in lines[::41][:90] + made[:20]:
    if l not in seen: texts.append(l); seen.add(l)
signs = ["\r", "\n", " ", "  ", "\t", "'", "'s", "A", "b", "É", "中", "の", "1", "٣", "\u0301", "\u093f", "!", "$", "_", "/", "ʰ", "ǅ", "🙂", "\u00a0", "\u200d", "ﬁ"]
for _ in range(200): texts.append("".join(rng.choice(signs) for _ in range(rng.randint(2, 14))))
json.dump(texts, open(to + "texts.json", "w"), ensure_ascii=True, indent=0)
ids = {}
for f in sorted(glob.glob(to + "*.json")):
    name = os.path.basename(f)
    if name in ("texts.json", "ids.json"): continue
    t = Tokenizer.from_file(f)
    ids[name] = {"around": len(t.encode("").ids), "ids": [e.ids for e in t.encode_batch(texts, add_special_tokens=False)]}
for f in sorted(glob.glob(to + "*.model")):
    p = spm.SentencePieceProcessor(f)
    ids[os.path.basename(f)] = {"around": 0, "ids": p.encode(texts)}
with open(to + "ids.json", "w") as f:
    f.write("{" + ",\n".join(json.dumps(k) + ":" + json.dumps(v, separators=(",", ":")) for k, v in ids.items()) + "}\n")
