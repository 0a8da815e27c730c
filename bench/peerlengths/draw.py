"""Draws lengths of prompts and answers as other tools' synthetic datasets do, by their own code.

    pip download vllm aiperf guidellm --no-deps -d wheels
    for w in wheels/*.whl; do unzip -q $w -d peers; done
    python bench/peerlengths/draw.py peers samples

writes samples/NAME.txt, two lengths a line. Only numpy is needed: what the modules import
besides is not used by the samplers, and something empty stands for it.
"""
import importlib.util
import pathlib
import sys
import types

import numpy

peers, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
out.mkdir(parents=True, exist_ok=True)
N = 20_000


def module(path):
    """The module in a file, by itself: without the packages around it."""
    spec = importlib.util.spec_from_file_location("peer_" + pathlib.Path(path).stem, peers / path)
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


def empty(name, **attributes):
    """Something to import."""
    for k in range(name.count(".") + 1):
        part = ".".join(name.split(".")[: k + 1])
        sys.modules.setdefault(part, types.ModuleType(part))
    sys.modules[name].__dict__.update(attributes)


def write(name, inputs, outputs):
    with open(out / f"{name}.txt", "w") as f:
        f.writelines(f"{i} {o}\n" for i, o in zip(inputs, outputs))


class Tokenizer:
    vocab_size = 32_000

    def num_special_tokens_to_add(self):
        return 0


# vLLM: --dataset-name random, with its default range ratio of 0 and with 0.5.
empty("vllm.tokenizers", TokenizerLike=object)
vllm = module("vllm/benchmarks/datasets/utils.py")
for ratio in (0.0, 0.5, 0.9):
    inputs, outputs, _ = vllm.get_sampling_params(numpy.random.default_rng(0), N, ratio, 1024, 128, Tokenizer())
    write(f"vllm-random-{ratio}", inputs, outputs)

# AIPerf: --isl 550 --isl-stddev 150 --osl 150 --osl-stddev 10, and a deviation that the bound cuts.
empty("aiperf.common.aiperf_logger", AIPerfLogger=lambda *a, **k: None)
empty("aiperf.common.exceptions", InvalidStateError=RuntimeError)
aiperf = module("aiperf/common/random_generator.py")
for mean, deviation in ((550, 150), (200, 300)):
    rng, other = aiperf.RandomGenerator(1, _internal=True), aiperf.RandomGenerator(2, _internal=True)
    write(f"aiperf-{mean}-{deviation}", [rng.sample_positive_normal_integer(mean, deviation) for _ in range(N)],
          [other.sample_positive_normal_integer(150, 10) for _ in range(N)])

# GuideLLM: prompt_tokens=512,prompt_tokens_stdev=128,output_tokens=256,output_tokens_stdev=64, and
# with least and most of each.
guidellm = module("guidellm/utils/random.py")
for name, low, high in (("guidellm", None, None), ("guidellm-bounded", 300, 700)):
    def drawn(mean, deviation, low, high, seed):
        sampler = iter(guidellm.IntegerRangeSampler(mean, deviation, low, high, seed))
        return [next(sampler) for _ in range(N)]
    write(name, drawn(512, 128, low, high, 1), drawn(256, 64, None, None, 2))
write("guidellm-range", *[[next(s) for _ in range(N)] for s in (iter(guidellm.IntegerRangeSampler(512, None, 100, 900, 1)), iter(guidellm.IntegerRangeSampler(256, None, 50, 400, 2)))])
