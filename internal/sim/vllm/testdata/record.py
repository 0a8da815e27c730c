"""Records what vLLM's own scheduler does with random traces.

    python record.py MODEL_DIRECTORY > scheduler.jsonl

Needs vLLM (README.md says which) and the directory of any small text model,
of which only the configuration is read. No weights, no GPU: the model's part
is played here, the clock is virtual.
"""

import json
import random
import sys

import torch
from vllm.config import (CacheConfig, ModelConfig, ParallelConfig, SchedulerConfig,
                         SpeculativeConfig, VllmConfig)
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import DraftTokenIds, ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

EOS = 2
M64 = (1 << 64) - 1


def mix(x):
    """splitmix64, as twin.Mix"""
    x = (x + 0x9E3779B97F4A7C15) & M64
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & M64
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & M64
    return x ^ x >> 31


def uniform(seed, a, b):
    return (mix(mix(mix(seed) ^ a) ^ b) >> 11) / (1 << 53)


def as_eagle():
    """Makes any drafter count as one that reads hidden states and has a KV cache."""
    SpeculativeConfig.use_eagle = lambda self: True
    SpeculativeConfig.use_eagle_block_drop = lambda self: True
    VllmConfig.num_lookahead_tokens = property(
        lambda self: self.speculative_config.num_speculative_tokens if self.speculative_config else 0)


def scheduler(model, c):
    k = c["num_speculative_tokens"]
    mc = ModelConfig(model=model, max_model_len=c["max_model_len"], dtype="bfloat16", skip_tokenizer_init=True)
    sc = SchedulerConfig(
        max_num_seqs=c["max_num_seqs"], max_num_batched_tokens=c["max_num_batched_tokens"],
        max_model_len=c["max_model_len"], is_encoder_decoder=False,
        enable_chunked_prefill=c["enable_chunked_prefill"],
        long_prefill_token_threshold=c["long_prefill_token_threshold"],
        policy="priority" if c["priority"] else "fcfs", async_scheduling=c["async_scheduling"],
        scheduler_reserve_full_isl=c["scheduler_reserve_full_isl"], watermark=c["watermark"])
    cc = CacheConfig(block_size=c["block_size"], enable_prefix_caching=c["enable_prefix_caching"])
    vc = VllmConfig(model_config=mc, scheduler_config=sc, cache_config=cc)
    # A platform may have changed these.
    sc.async_scheduling, sc.enable_chunked_prefill = c["async_scheduling"], c["enable_chunked_prefill"]
    sc.max_num_batched_tokens, sc.max_num_scheduled_tokens = c["max_num_batched_tokens"], None
    cc.block_size, cc.num_gpu_blocks = c["block_size"], c["num_gpu_blocks"]
    cc.enable_prefix_caching = c["enable_prefix_caching"]
    if k:
        object.__setattr__(vc, "speculative_config", SpeculativeConfig(
            method="ngram", num_speculative_tokens=k, prompt_lookup_max=2, prompt_lookup_min=1,
            target_model_config=mc, target_parallel_config=ParallelConfig()))
    spec = FullAttentionSpec(block_size=c["block_size"], num_kv_heads=1, head_size=1, dtype=torch.float32)
    group = KVCacheGroupSpec(["layer"], spec, is_eagle_group=k > 0)
    s = (AsyncScheduler if c["async_scheduling"] else Scheduler)(
        vllm_config=vc, block_size=c["block_size"], log_stats=True,
        kv_cache_config=KVCacheConfig(num_blocks=c["num_gpu_blocks"], kv_cache_tensors=[], kv_cache_groups=[group]),
        structured_output_manager=StructuredOutputManager(vc))
    s.use_v2_model_runner = False
    return s


def token(j, p):
    """the token at a place of a job's prompt or answer"""
    return 3 + mix((j["group"] if p < j["shared"] else 1000 + j["id"]) * 1000003 + p)


def name(j):
    return "%04d" % j["id"]


def run(model, c, jobs):
    s = scheduler(model, c)
    hasher = get_request_block_hasher(c["block_size"], sha256)
    k = c["num_speculative_tokens"]
    events = sorted([(j["at"], 0, j["id"]) for j in jobs] + [(j["abort"], 1, j["id"]) for j in jobs if "abort" in j])
    requests, steps, out = {}, [], {}
    queries = hits = 0

    def take(until):
        while events and events[0][0] <= until:
            at, abort, i = events.pop(0)
            j = jobs[i]
            if abort:
                s.finish_requests(name(j), RequestStatus.FINISHED_ABORTED)
                continue
            params = SamplingParams(max_tokens=j["limit"], temperature=0)
            params._eos_token_id = EOS
            requests[name(j)] = Request(
                request_id=name(j), prompt_token_ids=[token(j, p) for p in range(j["prompt"])],
                sampling_params=params, pooling_params=None, arrival_time=at / 1e9, priority=j["priority"],
                block_hasher=hasher)
            s.add_request(requests[name(j)])

    # The loop of EngineCore.step, or of step_with_batch_queue.
    flight, now, free = [], 0, 0
    while True:
        take(now)
        while len(flight) < (2 if c["async_scheduling"] else 1) and s.get_num_unfinished_requests() > 0:
            so = s.schedule()
            stats = s.kv_cache_manager.make_prefix_cache_stats()
            queries, hits = queries + stats.queries, hits + stats.hits
            if so.total_num_scheduled_tokens == 0:
                if flight:
                    break
                continue
            end = max(now, free) + c["per_step"] + so.total_num_scheduled_tokens * c["per_token"]
            free = end
            flight.append((so, end, {r: not requests[r].is_prefill_chunk for r in so.num_scheduled_tokens}))
            steps.append([end, s.kv_cache_manager.block_pool.get_num_free_blocks(), len(s.running),
                          s.get_request_counts()[1], sum(r.num_preemptions for r in requests.values()),
                          queries, hits, [x for r, n in so.num_scheduled_tokens.items() for x in (int(r), n)]])
        if not flight:
            if not events:
                return steps, [out[i] for i in sorted(out)]
            now = events[0][0]
            continue
        so, now, samples = flight.pop(0)
        take(now)
        ids, tokens = list(so.num_scheduled_tokens), []
        for rid in ids:
            r, j, given = requests[rid], jobs[int(rid)], []
            if samples[rid]:
                drafts, n = len(so.scheduled_spec_decode_tokens.get(rid, ())), 0
                while n < drafts and uniform(c["seed"], j["id"], r.num_output_tokens + n) < c["acceptance_rate"]:
                    n += 1
                for o in range(r.num_output_tokens, r.num_output_tokens + 1 + n):
                    given.append(EOS if o + 1 == j["output"] else token(j, j["prompt"] + o))
            tokens.append(given)
        result = s.update_from_output(so, ModelRunnerOutput(
            req_ids=ids, req_id_to_index={r: i for i, r in enumerate(ids)}, sampled_token_ids=tokens,
            logprobs=None, prompt_logprobs_dict={}, pooler_output=[]))
        for o in result[0].outputs if 0 in result else []:
            i = int(o.request_id)
            was = out.setdefault(i, [i, now, now, 0, 0, ""])
            was[2], was[3], was[4] = now, was[3] + len(o.new_token_ids), was[4] + 1
            was[5] = {None: "", 0: "stop", 1: "length"}[o.finish_reason]
        if k and not c["async_scheduling"]:
            s.update_draft_token_ids(DraftTokenIds(ids, [[-1] * k for _ in ids]))


def trace(title, seed, n=18, aborts=0.15, gap=1500, **settings):
    rnd = random.Random(seed)
    c = dict(name=title, max_num_seqs=8, max_num_batched_tokens=64, max_model_len=128, block_size=4,
             num_gpu_blocks=34, enable_prefix_caching=True, enable_chunked_prefill=True,
             long_prefill_token_threshold=0, scheduler_reserve_full_isl=True, watermark=0.0, priority=False,
             async_scheduling=False, num_speculative_tokens=0, acceptance_rate=0.7, seed=seed,
             per_step=1000, per_token=10)
    c.update(settings)
    at, jobs = 0, []
    for i in range(n):
        at += int(rnd.expovariate(1 / gap))
        limit = rnd.randint(1, 60)
        j = dict(id=i, at=at, prompt=rnd.randint(2, min(70, c["max_model_len"] - 2)), output=rnd.randint(1, 80),
                 limit=limit, priority=rnd.randint(0, 2) if c["priority"] else 0, group=rnd.randint(0, 2),
                 shared=rnd.choice([0, 8, 30, 200]) if rnd.random() < 0.7 else 0)
        if j["output"] == limit:  # the twin has its own word for this: twin.Job
            j["output"] += 1
        if rnd.random() < aborts:
            j["abort"] = at + rnd.randint(1, 30000)
        jobs.append(j)
    return c, jobs


def traces():
    for i, way in enumerate(["sync", "async"]):
        a, s = dict(async_scheduling=i == 1), 100 * i
        yield trace(way + ", enough blocks", s + 1, num_gpu_blocks=400, **a)
        yield trace(way + ", few blocks", s + 2, **a)
        yield trace(way + ", few blocks, nothing reserved", s + 3, scheduler_reserve_full_isl=False, **a)
        yield trace(way + ", no prefix cache", s + 4, enable_prefix_caching=False, **a)
        yield trace(way + ", priority", s + 5, gap=1000, priority=True, **a)
        yield trace(way + ", watermark and threshold", s + 6, num_gpu_blocks=40, watermark=0.1,
                    long_prefill_token_threshold=16, **a)
        yield trace(way + ", no chunked prefill", s + 7, max_num_batched_tokens=128, enable_chunked_prefill=False, **a)
        yield trace(way + ", drafts", s + 8, num_speculative_tokens=3, num_gpu_blocks=100, **a)
        yield trace(way + ", drafts, few blocks", s + 9, num_speculative_tokens=3, **a)
    for s in range(1000, 1012):
        r = random.Random(s)
        size, longest, seqs = r.choice([2, 4, 8, 16]), r.choice([40, 128, 200]), r.choice([1, 2, 4, 16])
        chunked = r.random() < 0.8
        yield trace(
            "random %d" % s, s, gap=r.choice([30, 500, 1500, 4000]), block_size=size, max_model_len=longest,
            num_gpu_blocks=-(-longest // size) + 1 + r.choice([0, 1, 3, longest // size // 3]), max_num_seqs=seqs,
            max_num_batched_tokens=r.choice([max(seqs, 16), 32, 100]) if chunked else longest,
            enable_chunked_prefill=chunked, priority=r.random() < 0.4, async_scheduling=r.random() < 0.5,
            watermark=r.choice([0, 0, 0.05, 0.2]), long_prefill_token_threshold=r.choice([0, 0, 5, 16]),
            scheduler_reserve_full_isl=r.random() < 0.6, enable_prefix_caching=r.random() < 0.8,
            num_speculative_tokens=r.choice([0, 0, 1, 5]), acceptance_rate=r.choice([0, 0.5, 0.8, 1]))
    yield trace("priority, victims that tie", 7146, n=40, gap=30, block_size=8, max_model_len=40, num_gpu_blocks=7,
                max_num_seqs=4, max_num_batched_tokens=32, enable_prefix_caching=False, priority=True, watermark=0.5,
                long_prefill_token_threshold=5, scheduler_reserve_full_isl=False, num_speculative_tokens=1,
                acceptance_rate=0.3)


if __name__ == "__main__":
    init_none_hash(sha256)
    as_eagle()
    for c, jobs in traces():
        steps, out = run(sys.argv[1], c, jobs)
        print(c["name"], len(steps), "steps", steps[-1][4], "preemptions", steps[-1][6], "hits", file=sys.stderr)
        print(json.dumps({"settings": c, "jobs": jobs, "steps": steps, "out": out}, separators=(",", ":")))
