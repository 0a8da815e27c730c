"""What other libraries make of texts: python3 reference.py TOKENIZER TEXTS OUT.

Hugging Face's tokenizers for a tokenizer.json, SentencePiece for a *.model, tiktoken for
a *.tiktoken (cl100k_base or o200k_base by its size) and for a tekken.json.

OUT has, for each text, how many ids it is and the ids (4 bytes each, little-endian), without what
a template puts around a text. Bytes that are no UTF-8 become U+FFFD, as servers do. Prints the speed
on one thread, text by text; --speed measures that alone.
"""
import array, os, struct, sys, time
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

only = "--speed" in sys.argv
args = [a for a in sys.argv[1:] if not a.startswith("--")]

def library(path):
    """The library's name, and a function from texts to their ids."""
    if path.endswith(".model"):
        import sentencepiece
        p = sentencepiece.SentencePieceProcessor(path)
        return "sentencepiece " + sentencepiece.__version__, lambda texts: [p.encode(t) for t in texts]
    if path.endswith(".tiktoken") or "tekken" in path:
        import base64, json, tiktoken, tiktoken_ext.openai_public as public, inspect, re
        if "tekken" in path:
            j = json.load(open(path))
            shift = j["config"]["default_num_special_tokens"]
            ranks = {base64.b64decode(v["token_bytes"]): v["rank"] for v in j["vocab"] if v["rank"] < j["config"]["default_vocab_size"] - shift}
            pattern = j["config"]["pattern"]
        else:
            shift, ranks = 0, {base64.b64decode(a): int(b) for a, b in (l.split() for l in open(path, "rb") if l.strip())}
            public.load_tiktoken_bpe = lambda *_, **__: ranks
            pattern = (public.cl100k_base if len(ranks) == 100256 else public.o200k_base)()["pat_str"]
        e = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        return "tiktoken " + tiktoken.__version__, lambda texts: [[i + shift for i in e.encode_ordinary(t)] for t in texts]
    import tokenizers
    tok = tokenizers.Tokenizer.from_file(path)
    if only:
        def one_by_one(texts): # and let go of, as it goes
            for t in texts: tok.encode(t, add_special_tokens=False)
        return "tokenizers " + tokenizers.__version__, one_by_one
    return "tokenizers " + tokenizers.__version__, lambda texts: [e.ids for e in tok.encode_batch_fast(texts, add_special_tokens=False)]

name, encode = library(args[0])
data = open(args[1], "rb").read()
texts, at = [], 0
while at < len(data):
    n, = struct.unpack_from("<I", data, at)
    texts.append(data[at + 4:at + 4 + n].decode("utf-8", "replace"))
    at += 4 + n
size = sum(len(t.encode()) for t in texts)
began = time.process_time()
if only:
    encode(texts)
else:
    with open(args[2], "wb") as f:
        for i in range(0, len(texts), 2000):
            for ids in encode(texts[i:i + 2000]):
                f.write(array.array("I", [len(ids)] + ids).tobytes())
took = time.process_time() - began
print(f"{name}: {len(texts):,} texts, {size / 1e6:.1f} MB in {took:.1f} s of processor, {size / 1e6 / took:.2f} MB/s")
