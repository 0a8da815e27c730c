"""Holds what Pitot writes against the tools that read it.

    python bench/formats/check.py PITOT

PITOT is the program. The interpreter needs duckdb, pandas, pyarrow and
prometheus-client. A run is made in virtual time, every block of docs/reference/files.md is
executed in its directory, and the figures that a block names must be those of
run.json to the last digit. The OpenMetrics text is read by the parser of the
Prometheus project.
"""

import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import duckdb
import pandas
from prometheus_client.openmetrics.parser import text_string_to_metric_families


def figure(run, path):
    """Gives the value at points[0].metrics.ttft_ms.p99."""
    value = run
    for step in re.findall(r"[^.\[\]]+", path):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def sql(connection, block, run):
    named = re.match(r"-- (.+)\n", block)
    rows = connection.execute(block).fetchall()
    if not named:
        return 0
    paths = named.group(1).split(", ")
    (row,) = rows
    assert len(row) == len(paths), (paths, row)
    for path, got in zip(paths, row):
        want = figure(run, path)
        print(f"{path} = {got!r}")
        assert got == want, f"{path}: DuckDB says {got!r}, run.json {want!r}"
    return len(paths)


def main():
    pitot = str(pathlib.Path(sys.argv[1]).resolve())
    doc = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "reference" / "files.md").read_text()
    with tempfile.TemporaryDirectory() as temp:
        os.chdir(temp)
        subprocess.run(
            [pitot, "run", "sim:llama-3.1-8b@h100", "--rate", "20", "--requests", "2000", "--seed", "1",
             "--input", "lognormal(800,400)", "--output", "uniform(50,250)", "--out", "runs/one", "--quiet",
             "--format", "json", "--export", "parquet=runs/one/table.parquet", "--export", "csv-requests=table.csv",
             "--export", "openmetrics=metrics.txt"],
            check=True, stdout=subprocess.DEVNULL)
        table, text = pandas.read_parquet("runs/one/table.parquet"), pandas.read_csv("table.csv")
        assert len(table) == len(text) and list(table.columns) == list(text.columns)
        for column in ("ttft_ms", "tpot_ms", "tpot_n1_ms", "e2e_ms"):
            assert table[column].equals(text[column]), column
        metrics = open("metrics.txt").read()

        os.chdir("runs/one")
        run = json.load(open("run.json"))
        ttft = table[table.in_window & (table.outcome == "ok")].ttft_ms.sort_values().to_list()
        assert ttft[math.ceil(len(ttft) * 0.99) - 1] == figure(run, "points[0].metrics.ttft_ms.p99")

        connection = duckdb.connect()
        agreed, blocks = 0, 0
        for language, block in re.findall(r"```(sql|python)\n(.*?)```", doc, re.S):
            blocks += 1
            if language == "sql":
                agreed += sql(connection, block, run)
            else:
                exec(compile(block, "docs/reference/files.md", "exec"), {})
        assert agreed >= 5 and blocks >= 5, (agreed, blocks)

        families = list(text_string_to_metric_families(metrics))
        histograms = [f.name for f in families if f.type == "histogram"]
        assert len(histograms) == 4, histograms
        print(f"{blocks} blocks, {agreed} figures agree to the last digit; {len(families)} OpenMetrics families, {len(histograms)} histograms")


main()
