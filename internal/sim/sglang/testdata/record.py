"""Records what SGLang's own code admits from random queues.

    python record.py DIRECTORY > admissions.jsonl

DIRECTORY has SGLang's source (the wheel, unpacked). SchedulePolicy, PrefillAdder, PrefillBudget
and RadixCache are its own; what they import besides, and torch, are empty stand-ins. A line is a
scene: the KV cache and what is in it, the requests that run and that wait, and what came of it.
admissions.jsonl was recorded with SGLang 0.5.23 (Apache-2.0).
"""

import importlib.abc
import importlib.machinery
import importlib.util
import json
import random
import sys
import types
from types import SimpleNamespace as NS
from unittest.mock import MagicMock

ROOT = sys.argv[1]
OWN = {"sglang.srt." + name for name in (
    "managers.schedule_policy", "mem_cache.radix_cache", "mem_cache.base_prefix_cache", "mem_cache.prefill_budget",
    "mem_cache.evict_policy", "mem_cache.utils", "environ")}


class Tensor(list):
    def __getitem__(self, i):
        v = list.__getitem__(self, i)
        return Tensor(v) if isinstance(i, slice) else v

    def to(self, *_, **__):
        return Tensor(self)

    clone = to
    numel = list.__len__


class Stand(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        v = type(name, (MagicMock,), {}) if name[:1].isupper() else MagicMock(name=name)
        setattr(self, name, v)
        return v


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] not in ("sglang", "torch", "triton", "numpy", "msgspec", "zmq", "orjson"):
            return None
        if name in OWN:
            return importlib.util.spec_from_file_location(name, ROOT + "/" + name.replace(".", "/") + ".py")
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Stand(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Finder())
import torch  # noqa: E402

torch.Tensor = Tensor
torch.empty = lambda n=0, *a, **k: Tensor([0] * (n if isinstance(n, int) else n[0]))
torch.tensor = lambda v, *a, **k: Tensor(v)
torch.cat = lambda vs, *a, **k: Tensor(x for v in vs for x in v)
torch.device = type("device", (), {"__init__": lambda self, *a: None})
import sglang.srt.utils as utils  # noqa: E402
import sglang.srt.utils.common as common  # noqa: E402
import sglang.srt.runtime_context as context  # noqa: E402
import sglang.srt.mem_cache.common as cache_common  # noqa: E402
import sglang.srt.mem_cache.cache_init_params as params  # noqa: E402
import sglang.srt.mem_cache.allocator.page_interleave as pages  # noqa: E402

for module in (utils, common):
    module.is_hip = module.is_gfx95_supported = lambda: False
    module.get_bool_env_var = lambda *_: False
    module.ceil_align = lambda x, a: -(-x // a) * a
pages.page_interleave_shard_size = lambda _: 1
context.get_exec = lambda: NS(features=NS(enable_encoder_swa_bounded_replay=False), mamba=NS(enable_mamba_extra_buffer=False))
context.get_disagg = lambda: NS(disaggregation_mode="null")
context.get_memory = lambda: NS(radix_eviction_policy="lru")
context.get_schedule = lambda: NS(schedule_policy=POLICY, prefill_max_requests=None)


class Params(NS):
    def __getattr__(self, name):
        return "lru" if name == "eviction_policy" else None


params.CacheInitParams = Params


def match(r, tree, ids=None):
    from array import array
    whole = r.origin_input_ids + r.output_ids
    ids = whole if ids else whole[:-1]  # the order asks for all of it, the admission leaves one to compute
    got = tree.match_prefix(MatchPrefixParams(key=RadixKey(token_ids=array("q", ids), extra_key=None)))
    r.last_node = r.best_match_node = got.last_device_node
    r.prefix_len = got.device_prefix_len
    r.num_matched_prefix_tokens = min(r.prefix_len, len(whole) - 1)
    return got


cache_common.match_kv_cache = match
cache_common.touch_waiting_prefix = lambda *_: None
sp = importlib.import_module("sglang.srt.managers.schedule_policy")
from sglang.srt.mem_cache.base_prefix_cache import InsertParams, MatchPrefixParams  # noqa: E402
from sglang.srt.mem_cache.prefill_budget import PrefillBudget  # noqa: E402
from sglang.srt.mem_cache.radix_cache import RadixCache, RadixKey  # noqa: E402
from array import array  # noqa: E402


class Req(NS):
    @property
    def extend_len(self):
        return self.extend_end - self.prefix_len

    def needs_host_load_back(self):
        return False

    def materialized_host_hit_len(self):
        return 0

    def fulfilled_storage_hit_len(self, _):
        return 0


def req(i, tokens, new, ignore, done=0):
    return Req(rid=i, origin_input_ids=tokens, output_ids=[9] * done, sampling_params=NS(max_new_tokens=new, ignore_eos=ignore),
               extra_key=None, cache_salt=None, prefix_len=0, num_matched_prefix_tokens=0, host_hit_length=0, swa_host_hit_length=0,
               auxiliary_swa_host_hit_length=0, storage_hit_length=0, storage_hit_start=0, host_hit_is_storage=False, host_loaded_length=0,
               cache_request_handle=None, retracted_stain=False, time_stats=NS(wait_queue_entry_time=i), last_node=None, lock=None,
               full_untruncated_fill_ids=tokens, kv=NS(req_pool_idx=None, holds_mamba=False))


def tokens(group, shared, own, n):
    return [group * 1000 + k if k < shared else own * 10000 + k for k in range(n)]


random.seed(7)
total = 0
sp.split_cached_prefix_by_tier = lambda **k: (0, 0, 0)
for scene in range(600):
    POLICY = random.choice(["fcfs", "lpm", "dfs-weight", "lof", "shortest-prefill-first"])
    big = random.random() < 0.03
    pool = random.choice([300, 800, 3000])
    cached = [(random.randint(1, 3), random.choice([0, 20, 60, 100]), 50 + k, random.randint(1, 140)) for k in range(random.randint(0, 5))]
    running = [(random.randint(1, 200), 0, random.random() < 0.5) for _ in range(random.randint(0, 5))]
    running = [(n, random.randint(0, n - 1), ignore) for n, _, ignore in running]
    waiting = [(random.randint(1, 3), random.choice([0, 20, 60, 100]), 100 + k, random.randint(2, 160), random.randint(1, 120), random.random() < 0.5)
               for k in range(random.randint(130, 140) if big else random.randint(1, 12))]
    alloc = NS(page_size=1, device="cpu", request_slot_reserve=lambda **k: 0)
    tree = RadixCache.create_simulated(mock_allocator=alloc)
    for t in (tokens(*c) for c in cached):
        tree.insert(InsertParams(key=RadixKey(token_ids=array("q", t), extra_key=None), value=Tensor([0] * len(t))))
    in_tree = tree.evictable_size()
    used = random.randint(0, max(pool - in_tree - 50, 0)) if pool > in_tree + 50 else 0
    pool = max(pool, in_tree + used + 10)
    alloc.available_size = lambda: pool - in_tree - used
    alloc.create_prefill_budget = lambda cache, num_mixed_decode_tokens=0: PrefillBudget(alloc, cache, num_mixed_decode_tokens=num_mixed_decode_tokens)
    ratio, seats = random.choice([0.1, 0.5, 0.7, 1.0]), random.randint(1, 14)
    inputs, chunk, mixed = random.choice([50, 200, 4000]), random.choice([30, 120, 500]), random.random() < 0.3
    policy = sp.SchedulePolicy(POLICY, tree, False, False, False)
    queue = [req(k, tokens(g, s, o, n), new, ignore) for k, (g, s, o, n, new, ignore) in enumerate(waiting)]
    batch = NS(reqs=[req(1000 + k, [1], n, ignore, done) for k, (n, done, ignore) in enumerate(running)], batch_size=lambda: len(running))
    policy.calc_priority(queue, batch)
    adder = sp.PrefillAdder(1, tree, alloc, batch, ratio, inputs, chunk, len(running) if mixed else 0, 0, max_prefill_bs=0,
                            max_running_requests=seats, prefill_max_requests=None, prefill_delayer_single_pass=None, dllm_config=None,
                            waiting_queue_len=len(queue), prefill_tile_block_m=64)
    full = seats - len(running) <= 0
    for r in queue if not full else []:
        if adder.budget_state() == sp.AddReqResult.OTHER:
            break
        if len(adder.can_run_list) >= seats - len(running):
            full = True
        if full:
            break
        match(r, tree)
        got = adder.add_one_req(r, has_chunked_req=False, truncation_align_size=None)
        if got != sp.AddReqResult.CONTINUE:
            if got == sp.AddReqResult.NO_TOKEN:
                full = len(adder.can_run_list) > 0 or len(running) > 0
            break
    ran = [[r.rid, r.extend_len] for r in adder.can_run_list]
    gone = {i for i, _ in ran}
    total += len(ran) + 1
    print(json.dumps({
        "policy": POLICY, "pool": pool, "used": used, "cached": cached, "ratio": ratio, "seats": seats, "inputs": inputs, "chunk": chunk, "mixed": mixed,
        "running": running, "waiting": waiting, "ran": ran, "left": [r.rid for r in queue if r.rid not in gone] if seats > len(running) else None,
        "chunked": adder.new_chunked_req.rid if adder.new_chunked_req else -1, "full": full}, separators=(",", ":")))
print(total, file=sys.stderr)
