"""Records the page of metrics that SGLang's own collectors write.

    pip install prometheus_client msgspec
    python record.py DIRECTORY > metrics.prom

DIRECTORY has SGLang's source (the wheel, unpacked). The collectors, the counts of requests by
route and Prometheus' client are their own; what they import besides is an empty stand-in. They
are told what a server with --enable-metrics tells them that streams one answer whose prompt fits
one step and of which it had a part, makes room in its cache, takes the memory of one request back
and has one whose client leaves. Values are as they come; comments of help are left out.
metrics.prom was recorded with SGLang 0.5.23 (Apache-2.0) and prometheus_client 0.26.0.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import types
from types import SimpleNamespace as NS
from unittest.mock import MagicMock

ROOT = sys.argv[1]
OWN = {"sglang.srt." + name for name in (
    "observability.metrics_collector", "observability.http_request_metrics", "observability.utils", "observability.scheduler_stage_metrics",
    "model_executor.graph_memory_usage", "utils.gauge_histogram")}
os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp()


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
        if name.split(".")[0] not in ("sglang", "torch"):
            return None
        if name in OWN:
            return importlib.util.spec_from_file_location(name, ROOT + "/" + name.replace(".", "/") + ".py")
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Stand(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Finder())
own = {name.split(".")[-1]: importlib.import_module(name) for name in sorted(OWN)}
web, collectors, stages = own["http_request_metrics"], own["metrics_collector"], own["scheduler_stage_metrics"]
empty_graph_memory_usage = own["graph_memory_usage"].empty_graph_memory_usage

collectors.exports_expert_balancedness_to_prometheus = lambda: False
args = NS(bucket_time_to_first_token=None, bucket_e2e_request_latency=None, bucket_inter_token_latency=None,
          collect_tokens_histogram=False, prompt_tokens_buckets=None, generation_tokens_buckets=None, tokenizer_metrics_custom_labels_header="",
          tokenizer_metrics_allowed_custom_labels=None, enable_metrics_for_all_schedulers=False, served_model_name="m")
collectors.get_observability = lambda: args
collectors.get_schedule = lambda: NS(prefill_delayer_max_delay_passes=30, prefill_delayer_forward_passes_buckets=None, prefill_delayer_wait_seconds_buckets=None)

model = {"model_name": "m", "engine_type": "unified"}
rank = {**model, "tp_rank": 0, "pp_rank": 0, "moe_ep_rank": 0}

s = collectors.SchedulerMetricsCollector(labels=rank, server_args=args)
s.emit_constants(max_total_num_tokens=1, max_total_num_tokens_swa=None, weight_memory_usage_gb=1, kv_cache_memory_usage_gb=1,
                 graph_memory_usage_gb=empty_graph_memory_usage(), max_running_requests_under_SLO=None, page_size=1, num_pages=1,
                 context_len=1, startup_available_gpu_memory_gb=1)
s.log_stats(collectors.SchedulerStats())
for stage in ("request_process", "prefill_forward"):
    s.observe_per_stage_req_latency(stage, 1)
s.observe_queue_time(1)
s.increment_prefill_cuda_graph_pass(False)
s.increment_decode_cuda_graph_pass(True)
s.increment_realtime_tokens(None, prefill_compute_tokens=1, prefill_cache_tokens=1, decode_tokens=1)
s.increment_effective_prefill_tokens(1, 1, 0, 0)
s.increment_retracted_reqs(1, 1, 1)
s.increment_scheduler_idle_seconds(1)
s.increment_scheduler_process_cpu_seconds(1)
for stage in stages.SCHEDULER_STAGE_CATEGORIES:
    s.increment_scheduler_stage_seconds(stage, 1)

t = collectors.TokenizerMetricsCollector(server_args=args, labels=model)
t.emit_startup_time({"load_weight": 1, "kv_cache_allocation": 1, "scheduler_e2e": 1, "tokenizer_e2e": 1, "cuda_graph": empty_graph_memory_usage()})
t.observe_time_to_first_token(model, 1, stream=True)
t.observe_inter_token_latency(model, 1, 1)
t.observe_one_finished_request(model, 2, 1, 1, 1, False, {"device": 1, "host": 0}, is_streaming=True, time_per_output_token=1)
t.observe_one_aborted_request(model)

cache = collectors.RadixCacheMetricsCollector(labels=collectors.radix_cache_metric_labels(
    "RadixCache", NS(tp_rank=0, pp_rank=0, attn_tp_rank=0, attn_cp_rank=0, attn_dp_rank=0, dp_rank=None, moe_ep_rank=0), False))
cache.observe_eviction_duration(1)
cache.increment_eviction_num_tokens(1)

web.init_http_request_metrics()
m = web._http_request_metrics
label = {"endpoint": "/v1/chat/completions", "method": "POST"}
m.requests_total.labels(**label).inc()
m.requests_active.labels(**label).inc()
m.responses_total.labels(**label, status_code="200").inc()

from prometheus_client import CollectorRegistry, generate_latest, multiprocess  # noqa: E402

registry = CollectorRegistry()
multiprocess.MultiProcessCollector(registry)
for line in generate_latest(registry).decode().splitlines():
    if not line.startswith("# HELP"):
        print(line)
