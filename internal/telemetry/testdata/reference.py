"""Writes what the Python client's own parser reads of pages of metrics, a series a line:
python reference.py PAGE.prom …  (pip install prometheus_client)"""
import json
import sys

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

for path in sys.argv[1:]:
    text = open(path).read()
    parse = openmetrics.text_string_to_metric_families if text.endswith("# EOF\n") else text_string_to_metric_families
    with open(path.removesuffix(".prom") + ".series.json", "w") as out:
        for family in parse(text):
            for s in family.samples:
                out.write(json.dumps([s.name, dict(sorted(s.labels.items())), repr(float(s.value))], ensure_ascii=False) + "\n")
