"""Writes texts to hold tokenizers against each other: python3 corpus.py OUT [N] [SEED].

Each text is a length (4 bytes, little-endian) and its bytes: lines and passages of source code
and documentation found on this machine, generated lines of many scripts, characters that
tokenizers are known to stumble over, emoji, code points at random, and bytes that are no UTF-8.

python3 corpus.py OUT documents, at the repository's root, writes its own documents and Go sources instead,
in pieces of 4,000 bytes.
"""
import glob, os, random, struct, sys, sysconfig, unicodedata

out = sys.argv[1]

def write(texts):
    with open(out, "wb") as f:
        for t in texts:
            f.write(struct.pack("<I", len(t)) + t)
    print(f"{len(texts):,} texts, {sum(map(len, texts)) / 1e6:.1f} MB")

if sys.argv[2:] == ["documents"]:
    paths = sorted(glob.glob("*.md") + glob.glob("docs/**/*.md", recursive=True)) + sorted(glob.glob("internal/**/*.go", recursive=True))
    whole = b"".join(open(path, "rb").read() for path in paths)[:2_900_000]
    write([whole[i:i + 4000] for i in range(0, len(whole), 4000)])
    sys.exit()

n, seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000, int(sys.argv[3]) if len(sys.argv) > 3 else 1
rng = random.Random(seed)

def files():
    roots = [sysconfig.get_paths()["stdlib"], "/usr/share", "/usr/local/go/src", "/usr/include"]
    for root in roots:
        for ext in ("py", "go", "h", "txt", "md", "html", "json", "js", "c", "s", "xml", "rst", "tex", "pl", "pm"):
            yield from sorted(glob.glob(f"{root}/**/*.{ext}", recursive=True))[:3000]

def found(most):
    """Lines, and passages of several lines with their ends, of at most `most` bytes in all."""
    lines, size = [], 0
    paths = list(files())
    rng.shuffle(paths)
    for path in paths:
        try:
            data = open(path, "rb").read(60_000)
        except OSError:
            continue
        kept = data.split(b"\n")
        i = 0
        while i < len(kept):
            k = 1 if rng.random() < 0.8 else rng.randint(2, 12)
            text = b"\n".join(kept[i:i + k])[:2000]
            if rng.random() < 0.1:
                text = text.replace(b"\n", b"\r\n")
            i += k
            if text:
                lines.append(text)
                size += len(text)
        if size > most:
            break
    rng.shuffle(lines)
    return lines

scripts = [(0x41, 0x7A), (0xC0, 0x24F), (0x250, 0x2AF), (0x370, 0x3FF), (0x400, 0x52F), (0x531, 0x58A), (0x590, 0x5F4), (0x600, 0x6FF), (0x700, 0x74F),
    (0x780, 0x7B1), (0x900, 0x97F), (0x980, 0x9FE), (0xA01, 0xA76), (0xA81, 0xAFF), (0xB01, 0xB77), (0xB82, 0xBFA), (0xC00, 0xC7F), (0xC80, 0xCF2),
    (0xD00, 0xD7F), (0xD82, 0xDF4), (0xE01, 0xE5B), (0xE81, 0xEDF), (0xF00, 0xFDA), (0x1000, 0x109F), (0x10A0, 0x10FF), (0x1100, 0x11FF), (0x1200, 0x139F),
    (0x13A0, 0x13FF), (0x1400, 0x167F), (0x1680, 0x169C), (0x16A0, 0x16F8), (0x1780, 0x17F9), (0x1800, 0x18AA), (0x1E00, 0x1EFF), (0x1F00, 0x1FFE),
    (0x2000, 0x206F), (0x2070, 0x209C), (0x20A0, 0x20C0), (0x2100, 0x218B), (0x2190, 0x23FF), (0x2460, 0x24FF), (0x2500, 0x27BF), (0x2C00, 0x2DFF),
    (0x3000, 0x303F), (0x3040, 0x30FF), (0x3100, 0x312F), (0x3130, 0x318E), (0x3200, 0x33FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA000, 0xA4C6),
    (0xA720, 0xA7CA), (0xAC00, 0xD7A3), (0xF900, 0xFAD9), (0xFB00, 0xFB4F), (0xFB50, 0xFDFF), (0xFE20, 0xFE2F), (0xFF00, 0xFFEF), (0x10000, 0x100FA),
    (0x10300, 0x1034A), (0x10400, 0x1049D), (0x11000, 0x1106F), (0x12000, 0x12399), (0x1D400, 0x1D7FF), (0x1F100, 0x1F2FF), (0x20000, 0x2A6DF)]
common = [(0x41, 0x7A)] * 12 + [(0xC0, 0x17F)] * 6 + [(0x410, 0x44F)] * 6 + [(0x4E00, 0x9FA5)] * 8 + [(0x3041, 0x30FE)] * 4 + [(0xAC00, 0xD7A3)] * 4 + \
    [(0x621, 0x64A)] * 3 + [(0x905, 0x939)] * 3
old = lambda c: unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")
points = {s: [c for c in range(s[0], s[1] + 1) if old(c)] for s in set(scripts + common)}
every = [c for c in range(0x110000) if old(c)]

def word():
    s = rng.choice(scripts if rng.random() < 0.5 else common)
    w = "".join(chr(rng.choice(points[s])) for _ in range(rng.randint(1, 9)))
    r = rng.random()
    return w.upper() if r < 0.05 else w.capitalize() if r < 0.15 else w.lower() if r < 0.5 else w

blanks = [" "] * 40 + ["  ", "   ", "\t", "\n", "\n\n", " \n", "\r\n", "\u00a0", "\u3000", "\u2003", "\t\t", "      ", "\u200b", ""]
signs = list(".,;:!?-_()[]{}<>/\\|@#$%^&*+=~`'\"") + ["...", "—", "–", "“", "”", "‘", "’", "«", "»", "。", "、", "，", "！", "？", "→", "€", "£", "§", "¿", "==", "!=", "//", "/*", "'s", "'T", "'re", "'LL"]

def line():
    t = []
    for _ in range(rng.randint(1, 14)):
        r = rng.random()
        t.append(word() if r < 0.72 else str(rng.randint(0, 10 ** rng.randint(1, 9))) if r < 0.84 else rng.choice(signs) if r < 0.97 else unicodedata.normalize(rng.choice(["NFD", "NFKC"]), word()))
        t.append(rng.choice(blanks) if rng.random() < 0.8 else "")
    return "".join(t)

nasty = ["\r\n", "\r", "\n", "\n\n\n", "\t", " ", "  ", "     ", "\u00a0", "\u2028", "\u0085", "\x0b", "\x0c", "\x1c", "\x00", "\x7f", "'s", "'ſ", "'S", "'ll", "'LL", "'Re", "'d", "'x", "'", "don't", "I'VE",
    "½", "²", "Ⅷ", "①", "٣", "१२३", "1234567", "12", "007", "3.14", "1,000", "é", "e\u0301", "ﬁ", "ﬀ", "İ", "ß", "Σ", "ς", "ǅ", "ʰ", "ª", "K", "Å", "ſ", "한", "ᄒ\u1161\u11ab", "\u0301", "\u200d", "\ufe0f", "\u200b", "\ufeff", "\ufffd",
    "x" * 200, "ab" * 60, "Aa" * 9, "aA" * 9, "HTTPServer", "camelCase", "snake_case", "__init__", "</s>", "<s>", "<unk>", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "[CLS]", "[SEP]", "[UNK]", "[MASK]", "<pad>", "<bos>", "<0x0A>",
    "▁", "▁▁", "Ġ", "Ċ", "##ing", "你好", "世界", "，", "。", "カタカナ", "ひらがな", "ไทย", "नमस्ते", "ক্ষ", "مرحبا", "שלום", "🙂", "👍🏽", "👨‍👩‍👧", "🇩🇪", "❤️", "1️⃣", "#️⃣", "/", "//", "/\n", "!\n", ".\r\n\r\n", "{}", "();", "=>", "a", "B", "the", " the", "and", "The", "THE", "0x1F", "\\n", "%d", "$x", "€5", "~", "^", "`", "<", ">", "+", "=", "|"]
emoji = [c for c in every if 0x1F300 <= c <= 0x1FAFF or 0x2600 <= c <= 0x27BF]

def mixed(): return "".join(rng.choice(nasty) for _ in range(rng.randint(1, 12)))
def faces(): return "".join(chr(rng.choice(emoji)) + rng.choice(["", "", "\ufe0f", "\u200d", " ", "\U0001F3FD"]) for _ in range(rng.randint(1, 10)))
def anything(): return "".join(chr(rng.choice(every)) for _ in range(rng.randint(1, 20)))
def broken():
    b = bytearray((line() if rng.random() < 0.7 else faces()).encode())
    for _ in range(rng.randint(1, 5)):
        i = rng.randrange(len(b) + 1)
        r = rng.random()
        if r < 0.4 and i < len(b): del b[i]
        elif r < 0.8: b.insert(i, rng.randrange(256))
        else: b[i:i] = bytes(rng.randrange(128, 256) for _ in range(rng.randint(1, 4)))
    return bytes(b)

texts = found(n * 25)[:int(n * 0.45)]
kinds = [(line, 0.55), (mixed, 0.2), (faces, 0.06), (anything, 0.09), (broken, 0.1)]
rest = n - len(texts)
for make, share in kinds:
    for _ in range(int(rest * share) + 1):
        t = make()
        texts.append(t if isinstance(t, bytes) else t.encode())
rng.shuffle(texts)
texts = texts[:n]
write(texts)
