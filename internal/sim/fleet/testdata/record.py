"""Records which engine vLLM's data-parallel client sends requests to.

    python record.py path/to/vllm/v1/engine/core_client.py > decisions.txt

It runs vLLM's own DPLBAsyncMPClient.get_core_engine_for_request, taken from the source
file by its name, so that nothing of vLLM has to be installed. A line is `new ENGINES
CLIENTS INDEX`, `told WAITING,RUNNING,KV …` (what the coordinator publishes), `sent ENGINE`
(a decision) or `ended ENGINE`. decisions.txt was recorded with vLLM 0.32.0 (Apache-2.0).
"""

import ast
import random
import sys
from collections import Counter
from types import SimpleNamespace

tree = ast.parse(open(sys.argv[1]).read())
cls = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "DPLBAsyncMPClient")
choose = next(n for n in cls.body if isinstance(n, ast.FunctionDef) and n.name == "get_core_engine_for_request")
choose.returns = None
for a in choose.args.args:
    a.annotation = None
scope = {"sys": sys, "get_late_interaction_engine_index": lambda *_: None}
exec(compile(ast.Module([choose], []), sys.argv[1], "exec"), scope)

random.seed(20)
for engines, clients in [(2, 1), (4, 1), (4, 4), (8, 3), (5, 2), (16, 16)]:
    index = random.randrange(clients)
    me = SimpleNamespace(
        client_count=clients, core_engines=list(range(engines)), reqs_in_flight={}, engine_inflight=Counter(),
        lb_engines=[[0, 0, 0.0] for _ in range(engines)], eng_start_index=engines * index // clients)
    print("new", engines, clients, index)
    flying, n = [], 0
    for _ in range(450):
        what = random.random()
        if what < 0.08:
            load = random.choice([0, 3, 40])
            me.lb_engines = [[random.randint(0, load) if random.random() < 0.5 else 0, random.randint(0, 2 * load), random.randint(0, 16) / 16]
                             for _ in range(engines)]
            print("told", *(f"{w},{r},{kv}" for w, r, kv in me.lb_engines))
        elif what < 0.65 or not flying:
            n += 1
            e = scope["get_core_engine_for_request"](me, SimpleNamespace(request_id=str(n), data_parallel_rank=None, pooling_params=None))
            flying.append((str(n), e))
            print("sent", e)
        else:
            r, e = flying.pop(random.randrange(len(flying)))
            del me.reqs_in_flight[r]
            me.engine_inflight[e] -= 1
            print("ended", e)
