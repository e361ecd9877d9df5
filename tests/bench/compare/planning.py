"""Goal 20: what a large graph costs to build, to differentiate and to plan, and what large plans and many plans cost when they run.

A size against another size, in one process and in turns; the ratio is that of what is allowed over what is there, so that 1 and more
is good. The limits in milliseconds were set on a machine that builds the same number of named nodes in bare arrays in 13.6 ms, so
they are put as multiples of what that takes on this one, too (peers/bare_graph.cc)."""

import pathlib
import statistics
import subprocess

from sides import Side, say

SMALL, LARGE = 1000, 100000
BARE = pathlib.Path(__file__).resolve().parent / "peers" / "bare_graph.cc"
BARE_SECONDS = 0.0136  # where the limits were set
LIMITS = ((3, "build", 0.040), (4, "first plan", 0.080))


def graphs(side, nodes, times):
    """Medians of: seconds per node to build, to add gradients, to plan; and seconds to build and to plan all of it."""
    rows = []
    for _ in range(times):
        answer = side.ask(f"graph {nodes}")
        if not answer:
            return None
        forward, build, backward, gradients, plan = (float(word) for word in answer.split())
        rows.append((build / forward, gradients / backward, plan / forward, build, plan))
    return [statistics.median(column) for column in zip(*rows)]


def bare_arrays(run):
    """The program that builds them, or None where it cannot be compiled."""
    program = run.options.build / "bench_bare_graph"
    made = subprocess.run(["c++", "-std=c++20", "-O2", BARE, "-o", program], check=False).returncode == 0
    return Side("bare arrays", [program]) if made else None


def large_graphs(run, side):
    pairs, bare = [], []
    arrays = bare_arrays(run)
    for _ in range(run.options.pairs):
        pair = graphs(side, SMALL, 15), graphs(side, LARGE, 1)
        answer = arrays.ask(f"graph {LARGE}") if arrays else None
        if not all(pair):
            return say("goal 20  a large graph: no answer")
        pairs.append(pair)
        if answer:
            bare.append(float(answer))
    if arrays:
        arrays.end()
    for i, name in enumerate(("build", "gradients", "first plan")):
        small, large = (statistics.median(pair[k][i] for pair in pairs) for k in (0, 1))
        growth = statistics.median(pair[1][i] / pair[0][i] for pair in pairs)
        run.table.add(20, f"{name}, per node of {LARGE:,}", large, small, f"per node of {SMALL:,}", 1 / growth, 1 / 3)
    for i, name, limit in LIMITS:
        seconds = statistics.median(pair[1][i] for pair in pairs)
        run.table.add(20, f"{name}, {LARGE:,} nodes", seconds, limit, f"{limit * 1e3:g} ms", limit / seconds, 1)
        if len(bare) == len(pairs):
            ratio = statistics.median(arrays / pair[1][i] for arrays, pair in zip(bare, pairs))
            run.table.add(20, f"{name}, {LARGE:,} nodes", seconds, statistics.median(bare), "bare arrays", ratio, BARE_SECONDS / limit)
    return None


def goal_20(run):
    side = Side("dtg", [run.options.build / "bench_planning"])
    large_graphs(run, side)
    turns = [(side.ask("events 4000"), side.ask("events 500")) for _ in range(run.options.pairs)]
    side.end()
    if all(all(turn) for turn in turns):
        many, few = (statistics.median(float(turn[k]) for turn in turns) for k in (0, 1))
        growth = statistics.median(float(turn[0]) / float(turn[1]) for turn in turns)
        run.table.add(20, "run with 4,000 events", many, few, "run with 500 events", 1 / growth, 1 / 8)
    held = []
    for batches in (128, 1):  # in processes of their own, because memory that was given back may stay
        fresh = Side("dtg", side.command)
        held.append(float(fresh.ask(f"batches {batches}") or 0) / 1024)
        fresh.end()
    if all(held):
        run.table.add(20, "memory after 128 batch sizes", held[0], held[1], "the largest alone", held[1] / held[0], 1 / 1.2, "MB")


GOALS = {20: goal_20}
