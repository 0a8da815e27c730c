"""Records what SGLang's own scheduler decides, step by step, while the KV cache is short.

    python trace.py DIRECTORY [loads [seed]] > decisions.jsonl

DIRECTORY has SGLang's source (the wheel, unpacked). Its own are the event loops and all of what
they plan (Scheduler), ScheduleBatch with retract_decode, Req, SchedulePolicy, PrefillAdder, the
ratio of new tokens, what is done with results, the cache that a server has unless another is asked
for (UnifiedRadixCache, its tree in Python), the allocator and the pool of requests.
The model, sockets and processes are stand-ins: a token is a number that its request and its place
give. PyTorch does the arithmetic of the batches. A line is a load: its settings, its requests with
the turn of the loop at which they come, and of each turn what was planned.
decisions.jsonl was recorded with SGLang 0.5.23 (Apache-2.0) and PyTorch 1.12.1.
"""

import enum
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import logging
import os
import random
import sys
import types
import typing
from array import array
from collections import deque
from types import SimpleNamespace as NS

import numpy  # noqa: F401
import torch

ROOT = sys.argv[1]
logging.disable(logging.CRITICAL)
OWN = {"sglang.srt." + name for name in (
    "managers.scheduler", "managers.schedule_batch", "managers.schedule_policy",
    "managers.scheduler_components.new_token_ratio_tracker", "managers.scheduler_components.batch_result_processor",
    "mem_cache.radix_cache", "mem_cache.base_prefix_cache", "mem_cache.prefill_budget", "mem_cache.evict_policy", "mem_cache.utils",
    "mem_cache.cache_init_params", "mem_cache.storage_prefetch", "mem_cache.unified_radix_cache", "mem_cache.unified_cache",
    "mem_cache.unified_cache.tree_core_registry", "mem_cache.unified_cache.unified_tree_core", "mem_cache.unified_cache.unified_tree_core_interface",
    "mem_cache.unified_cache.cache_action", "mem_cache.unified_cache.component_type", "mem_cache.unified_cache.session_ref_tracker",
    "mem_cache.unified_cache.components", "mem_cache.unified_cache.components.full", "mem_cache.unified_cache.components.base", "session.streaming_session",
    "mem_cache.common", "mem_cache.allocation", "mem_cache.allocator.base", "mem_cache.allocator.token", "mem_cache.memory_pool",
    "beam_search.batch_tail", "environ")}


class Nothing:
    """What is not looked at: every part of it, and what it returns, is like it."""

    def __init__(self, *_, **__):
        pass

    def __call__(self, *_, **__):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __bool__(self):
        return False

    def __add__(self, _):
        return self

    __mod__ = __add__

    def __iter__(self):
        return iter(())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def through(*a, **_):
    """A decorator that does nothing, with arguments or without."""
    return a[0] if len(a) == 1 and callable(a[0]) and not isinstance(a[0], Nothing) else through


class Blank(type):
    """A class of which nothing is known but its name."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()


class Stand(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if self.__name__.startswith("triton") and name == "jit" or name in ("scheduler_stage_method", "DynamicGradMode", "rank_consensus"):
            v = through
        elif name[:1].isupper() and not name.isupper():
            v = Blank(name, (), {"__init__": lambda self, *_, **__: None, "__class_getitem__": classmethod(lambda c, _: c)})
        else:
            v = Nothing()
        setattr(self, name, v)
        return v


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] not in ("sglang", "triton", "zmq", "orjson", "psutil", "setproctitle", "sgl_kernel", "torch_memory_saver", "pybase64"):
            return None
        if name in OWN:
            at = ROOT + "/" + name.replace(".", "/")
            if os.path.isdir(at):
                return importlib.util.spec_from_file_location(name, at + "/__init__.py", submodule_search_locations=[at])
            return importlib.util.spec_from_file_location(name, at + ".py")
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Stand(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Finder())
stand = importlib.import_module


class ForwardMode(enum.IntEnum):
    EXTEND = enum.auto()
    DECODE = enum.auto()
    MIXED = enum.auto()

    def is_extend(self):
        return self in (ForwardMode.EXTEND, ForwardMode.MIXED)

    def is_decode(self):
        return self == ForwardMode.DECODE

    def is_mixed(self):
        return self == ForwardMode.MIXED

    is_prebuilt = is_idle = is_split_prefill = lambda self: False


for name in ("sglang.srt.utils", "sglang.srt.utils.common"):
    m = stand(name)
    for f in ("is_hip", "is_npu", "is_cuda", "is_xpu", "is_cpu", "is_musa", "is_mps", "is_gfx95_supported", "support_triton", "is_pin_memory_available", "get_bool_env_var"):
        setattr(m, f, lambda *_, **__: False)
    m.ceil_align = lambda x, a: -(-x // a) * a
    m.flatten_arrays_to_pinned_cpu = lambda arrays, _: torch.tensor([t for a in arrays for t in a], dtype=torch.int64)
    m.async_h2d = lambda t, *a, **k: t
modes = stand("sglang.srt.model_executor.forward_batch_info")
modes.ForwardMode = ForwardMode


class Capture(enum.IntEnum):
    NULL = 0
    LAST = 1
    FULL = 2

    def need_capture(self):
        return self != Capture.NULL

    is_full = is_last = lambda self: False


modes.CaptureHiddenMode = Capture
stand("sglang.srt.layers.moe")
ticks = 0


def tick():
    """A clock: no two times are equal."""
    global ticks
    ticks += 1
    return ticks


SET = NS()
context = stand("sglang.srt.runtime_context")
context.get_exec = lambda: NS(features=NS(enable_encoder_swa_bounded_replay=False), mamba=NS(enable_mamba_extra_buffer=False, enable_mamba_extra_buffer_lazy=False))
context.get_disagg = lambda: NS(disaggregation_mode="null", disaggregation_decode_retraction_backup="none", disaggregation_decode_enable_offload_kvcache=False)
context.get_memory = lambda: NS(radix_eviction_policy="lru", enable_hisparse=False, enable_flexkv=False)
context.get_schedule = lambda: NS(schedule_policy=SET.policy, prefill_max_requests=None, retraction_policy="length",
                                  schedule_low_priority_values_first=False, schedule_conservativeness=SET.conservativeness)
context.get_parallel = lambda: NS(dcp_enabled=False, pp_max_micro_batch_size=SET.seats, pp_size=1, attn_dcp_size=1)
context.get_spec = lambda: NS(speculative_algorithm=None)
context.get_serving = lambda: NS(strip_thinking_cache=False)
context.get_observability = lambda: NS(enable_metrics=False)
context.get_context = lambda: NS(is_config_namespace_published=lambda _: False)
context.attention_backends = lambda: ("torch_native", "torch_native")
stand("sglang.srt.mem_cache.allocator.page_interleave").page_interleave_shard_size = lambda _: 1


class Times(Nothing):
    """The times of a request; of these one orders those that wait."""

    def set_wait_queue_entry_time(self, *_):
        self.wait_queue_entry_time = tick()


stand("sglang.srt.observability.req_time_stats").SchedulerReqTimeStats = Times
stand("sglang.srt.mem_cache.events").KVCacheEventRecorder = Nothing
stand("sglang.srt.dllm.mixin.req").ReqDllmMixin = type("ReqDllmMixin", (), {"init_diffusion_llm": lambda self, _: setattr(self, "dllm_config", None), "is_dllm": lambda self: False})
disagg = stand("sglang.srt.disaggregation.utils")
disagg.DisaggregationMode = enum.Enum("DisaggregationMode", "NULL PREFILL DECODE")
sched = stand("sglang.srt.managers.scheduler")
processor = stand("sglang.srt.managers.scheduler_components.batch_result_processor")
processor.SchedulerBatchResultProcessor._get_prefill_hidden_capture_mode = staticmethod(lambda _: Capture.NULL)
from sglang.srt.managers import schedule_batch as batches, schedule_policy as policies  # noqa: E402
from sglang.srt.managers.scheduler_components.new_token_ratio_tracker import NewTokenRatioTracker  # noqa: E402
from sglang.srt.mem_cache import radix_cache  # noqa: E402
from sglang.srt.mem_cache.allocator.token import TokenToKVPoolAllocator  # noqa: E402
from sglang.srt.mem_cache.memory_pool import ReqToTokenPool  # noqa: E402
from sglang.srt.mem_cache.cache_init_params import CacheInitParams  # noqa: E402
from sglang.srt.mem_cache.unified_cache.component_type import ComponentType  # noqa: E402
from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache  # noqa: E402

radix_cache.time = NS(monotonic=tick, perf_counter=lambda: 0)


class Driven(sched.Scheduler):
    """The scheduler, without what its own constructor starts."""

    def __init__(self, load, most):
        self.load, self.most, self.turn, self.done = load, most, 0, 0
        allocator = TokenToKVPoolAllocator(SET.pool, torch.float16, "cpu", Nothing(), False)
        pool = ReqToTokenPool(SET.seats, SET.context + 4, "cpu", False)
        tree = UnifiedRadixCache(CacheInitParams(
            disable=SET.disabled, req_to_token_pool=pool, token_to_kv_pool_allocator=allocator, page_size=1, tree_components=(ComponentType.FULL,), tree_core_backend="python"))
        vars(self).update(
            token_to_kv_pool_allocator=allocator, req_to_token_pool=pool, tree_cache=tree, page_size=1,
            model_config=NS(is_encoder_decoder=False, vocab_size=1 << 40, self_opened_think_start_ids=None), max_total_num_tokens=SET.pool, max_req_len=min(SET.context - 1, SET.pool - 1),
            kv_shard_widening=1, sliding_window_size=None, max_new_tokens_limit=None, max_running_requests=SET.seats,
            max_prefill_tokens=SET.inputs, chunked_prefill_size=SET.chunk, is_mixed_chunk=SET.mixed, enable_overlap=SET.overlap,
            spec_algorithm=NS(is_none=lambda: True), policy=policies.SchedulePolicy(SET.policy, tree, False, False, False),
            new_token_ratio_tracker=NewTokenRatioTracker.from_config(), waiting_queue=[], chunked_req=None, last_batch=None,
            running_batch=batches.ScheduleBatch(reqs=[], batch_is_full=False), disaggregation_mode=disagg.DisaggregationMode.NULL,
            device="cpu", is_generation=True, gracefully_exit=False, _engine_paused=False, max_queued_requests=None, processed_tokens_counter=0,
            ngram_embedding_manager=NS(prepare_for_forward=lambda b, **_: b),
            dp_attn_adapter=NS(maybe_prepare_mlp_sync_batch=lambda b, **_: b, maybe_convert_decode_to_extend=lambda b: b),
            grammar_manager=NS(has_waiting_grammars=lambda: False), beam_coordinator=NS(pending_member_rows=lambda _: 0, retire_group=lambda _: None, commit_decode=lambda _: ()),
            metrics_reporter=Nothing(), load_inquirer=Nothing(), output_streamer=Nothing(), load_publisher=Nothing(), tp_worker=Nothing())
        for name in ("dllm_config", "hisparse_coordinator", "decode_offload_manager", "prefill_delayer", "dynamic_chunk_sizer", "min_free_slots_delayer",
                     "_pending_chunked_abort_req", "truncation_align_size", "priority_scheduling_preemption_threshold", "prefill_tile_block_m"):
            setattr(self, name, None)
        for name in ("enable_hierarchical_cache", "enable_hicache_storage", "enable_lmcache", "enable_hisparse", "require_mlp_sync", "enable_priority_preemption",
                     "enable_priority_scheduling", "is_hybrid_swa", "enable_lora", "enable_unified_cache_external_linker", "enable_unified_memory",
                     "abort_on_priority_when_disabled", "enable_skip_finishing_decode", "enable_fpm"):
            setattr(self, name, False)
        self.max_prefill_bs = self.forward_ct = 0
        parts = {name: vars(self)[name] for name in ("token_to_kv_pool_allocator", "tree_cache", "req_to_token_pool", "enable_overlap", "is_generation", "model_config",
                 "metrics_reporter", "output_streamer", "beam_coordinator", "disaggregation_mode", "hisparse_coordinator", "decode_offload_manager")}
        self.batch_result_processor = processor.SchedulerBatchResultProcessor(
            **parts, enable_overlap_mlx=False, metrics_collector=None, draft_worker=None, model_worker=None, logprob_result_processor=None, abort_request=None)
        self.turns, self.taken, self.lost, self.ran, self.waiting = [], [], [], 0, []

    def ingest_requests(self):
        """What the loop does first in a turn: requests that have come join the queue."""
        if self.turn > 0:
            self.note()
        self.turn += 1
        self.planned, self.taken, self.lost = None, [], []
        if self.done == len(self.load) or self.turn > self.most:
            self.gracefully_exit = True
        for i, r in enumerate(self.load):
            if r["turn"] == self.turn:
                own, prompt = tokens(i, r)
                params = NS(max_new_tokens=r["most"], ignore_eos=r["fixed"], min_new_tokens=0, stop_strs=[], stop_regex_strs=[],
                            stop_token_ids=None if r["fixed"] else {token(r, own, prompt + r["output"] - 1)}, custom_params=None, n=1)
                req = batches.Req(i, "", array("q", [token(r, own, k) for k in range(prompt)]), params, vocab_size=1 << 40)
                self.init_req_max_new_tokens(req)
                r["most"] = params.max_new_tokens
                self._add_request_to_queue(req)

    def _prefetch_kvcache(self, req):
        pass

    def process_pending_chunked_abort(self):
        pass

    def _should_defer_prefill(self, _):
        return False

    def _arm_prefill_decode_interval(self, _):
        pass

    def _apply_war_barrier(self):
        pass

    def launch_batch_sample_if_needed(self, *_):
        pass

    def maybe_send_health_check_signal(self):
        pass

    def publish_load_snapshot(self, **_):
        pass

    def _record_step_counters(self, *_):
        pass

    def is_disable_overlap_for_batch(self, batch, last_batch):
        return False

    def on_idle(self):
        if self.running_batch.is_empty() and not self.waiting_queue and self.chunked_req is None and not (self.enable_overlap and self.result_queue):
            self.new_token_ratio_tracker.reset()

    def _add_request_to_queue(self, req, is_retracted=False):
        if is_retracted:
            self.taken.append(req.rid)
        super()._add_request_to_queue(req, is_retracted)

    def send_abort_output(self, _, req):
        self.lost.append(req.rid)
        self.done += 1

    def run_batch(self, batch):
        decoding = {r.rid for r in batch.decoding_reqs or []} if batch.forward_mode.is_extend() else {r.rid for r in batch.reqs}
        self.planned = [[r.rid, 0 if r.rid in decoding else r.extend_len] for r in batch.reqs]
        ids = [token(self.load[r.rid], tokens(r.rid, self.load[r.rid])[0], int(n)) for r, n in zip(batch.reqs, batch.seq_lens)]
        return NS(copy_done=None, auxiliary_host_output=None, routed_experts_output=None, indexer_topk_output=None, logits_output=None,
                  next_token_ids=torch.tensor(ids), extend_input_len_per_req=None, extend_logprob_start_len_per_req=None, can_run_cuda_graph=False,
                  get_num_generated_tokens=lambda n: n, num_correct_drafts_per_req_cpu=None)

    def process_batch_result(self, batch, result):
        before = [r.finished() for r in batch.reqs]
        super().process_batch_result(batch, result)
        self.done += sum(r.finished() and not b for r, b in zip(batch.reqs, before))

    def note(self):
        """A turn: what ran (nothing: 0) and waits where it is other than in the turn before, who was taken back and lost, and what there is."""
        ran, waiting = self.planned or 0, [r.rid for r in self.waiting_queue]
        budget = [int(self.running_batch.batch_is_full), self.chunked_req.rid if self.chunked_req else -1, round(self.new_token_ratio_tracker.current, 9),
                  self.token_to_kv_pool_allocator.available_size(), self.tree_cache.evictable_size(), self.tree_cache.protected_size()]
        t = {"b": budget}
        if ran != self.ran:
            t["ran"] = ran
        if waiting != self.waiting:
            t["waiting"] = waiting
        if self.taken:
            t["taken"] = self.taken
        if self.lost:
            t["lost"] = self.lost
        self.ran, self.waiting = ran, waiting
        self.turns.append(t)


def token(r, own, place):
    return r["group"] * 1000 + place if place < r["shared"] else own + place


def tokens(i, r):
    return 10000 * (100 + i), r["prompt"]


def drive(load, most):
    s = Driven(load, most)
    (s.event_loop_overlap if SET.overlap else s.event_loop_normal)()
    return s


def main():
    random.seed(int(sys.argv[3]) if len(sys.argv) > 3 else 11)
    decisions = taken = lost = 0
    for k in range(int(sys.argv[2]) if len(sys.argv) > 2 else 40):
        far = k % 16 == 7  # until what is promised has decayed as far as it goes
        crowd = not far and random.random() < 0.8  # many short prompts, of whose answers little is promised
        vars(SET).update(
            policy=["fcfs", "lpm", "dfs-weight", "lof", "shortest-prefill-first"][k % 5],
            conservativeness=random.choice([0.03, 0.1, 0.3] if crowd else [0.3, 1.0, 1.6]),
            pool=random.choice([90, 150, 220] if crowd else [100, 200]), context=80, seats=random.choice([6, 12, 24] if crowd else [3, 6]),
            inputs=random.choice([60, 400]), chunk=random.choice([20, 50, 200]), mixed=random.random() < 0.35, overlap=random.random() < 0.6,
            disabled=random.random() < 0.15 and k % 5 < 4)
        load, turn = [], 1
        for _ in range(84 if far else random.randint(10, 16) if crowd else random.randint(4, 8)):
            most = random.randint(40, 66) if crowd else random.randint(10, 60)
            fixed = random.random() < 0.15
            load.append({"turn": turn, "group": random.randint(1, 3), "shared": random.choice([0, 6, 40]), "prompt": random.randint(1, 10 if crowd else 60), "most": most,
                         "output": most if fixed else random.randint(most // 3, most), "fixed": fixed})
            turn += random.choice([1, 1, 1, 2] if crowd else [0, 1, 2, 7])
        s = drive(load, 720 if far else 60)
        print(json.dumps({**vars(SET), "load": [[r["turn"], r["group"], r["shared"], r["prompt"], r["most"], min(r["output"], r["most"]), r["fixed"]] for r in load],
                          "turns": s.turns}, separators=(",", ":")))
        decisions += len(s.turns)
        taken += sum(len(t.get("taken", [])) for t in s.turns)
        lost += sum(len(t.get("lost", [])) for t in s.turns)
    print(decisions, "turns,", taken, "taken back,", lost, "lost", file=sys.stderr)


main()
