"""Goal 42: what a checkpoint costs a step, beside copying as many bytes, and how fast a set comes to the disk, beside writing as many bytes
to a file and syncing it. The ratio is that of what is allowed over what is there, so that 1 and more is good."""

import pathlib
import statistics
import tempfile

from sides import Side, say

MEBIBYTES = (64, 256)


def goal_42(run):
    side = Side("dtg", [run.options.build / "bench_checkpoint"])
    # Beside the build, because /tmp may be memory.
    with tempfile.TemporaryDirectory(dir=pathlib.Path(run.options.build)) as scratch:
        for size in MEBIBYTES:
            figures = []
            for _ in range(run.options.pairs + 1):
                answers = [side.ask(question) for question in (f"save {size} {scratch}/sets-{size}", f"copy {size}", f"write {size} {scratch}")]
                if not all(answers):
                    return say("goal 42  checkpoints: no answer")
                held, whole = (float(word) for word in answers[0].split())
                figures.append((held, whole, float(answers[1]), float(answers[2])))
            held, whole, copy, write = (statistics.median(column) for column in zip(*figures[1:]))  # the first one makes the plan
            run.table.add(42, f"checkpoint, {size} MiB: a step waits", held, copy, "copying that", copy / held, 1)
            run.table.add(42, f"checkpoint, {size} MiB: on the disk", whole, write, "a file, written and synced", write / whole, 0.5)
    return side.end()


GOALS = {42: goal_42}
