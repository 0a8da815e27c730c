"""How many times as fast as the library that a tokenizer is made for, on one thread:

python3 bench/tokenizer/speed.py TOKENIZER TEXTS [TIMES], at the repository's root. Both encode all texts in turn,
several times; prints the medians of MB of text a second of processor, and the median, least and most of their ratio.
"""
import os, re, statistics, subprocess, sys, tempfile

tokenizer, texts, times = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 5
here = os.path.dirname(__file__)
with tempfile.TemporaryDirectory() as folder:
    pitot = folder + "/tokenizer"
    subprocess.run(["go", "build", "-o", pitot, "./bench/tokenizer"], check=True)
    speed = lambda *command: float(re.search(r"([\d.]+) MB/s", subprocess.run(command, check=True, capture_output=True, text=True).stdout).group(1))
    pairs = [(speed(sys.executable, here + "/reference.py", tokenizer, texts, "--speed"), speed(pitot, tokenizer, texts)) for _ in range(times)]
ratios = [ours / theirs for theirs, ours in pairs]
theirs, ours = (statistics.median(x) for x in zip(*pairs))
print(f"the library {theirs:.2f} MB/s, pitot {ours:.1f} MB/s: {statistics.median(ratios):.1f} times ({min(ratios):.1f} to {max(ratios):.1f} in {times})")
