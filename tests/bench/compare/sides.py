"""What the drivers of the comparison share: processes that answer requests, races between two of them, and the table of rows."""

import os
import statistics
import subprocess
import time


def say(text):
    print(text, flush=True)


# ---- processes that answer ---------------------------------------------------------------------------------------------------

class Side:
    """A process that answers requests line by line; it starts with the first one."""

    def __init__(self, name, command, extra=None):
        self.name, self.command, self.extra = name, [str(word) for word in command], extra or {}
        self.process = None
        self.processor = []
        self.steps = 0

    def ask(self, line):
        if not self.process:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                            stderr=subprocess.DEVNULL, env={**os.environ, **self.extra})
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline().strip()
        except OSError:
            answer = ""
        return answer if answer and answer != "failed" else None

    def measure(self, workload):
        """Seconds of one call; what the processor spent on it goes to `processor`."""
        answer = self.ask(f"measure {workload}")
        if not answer:
            return None
        seconds, processor, self.steps = (float(word) for word in answer.split())
        self.processor.append(processor)
        return seconds

    def start_to_first_step(self, workload):
        """Seconds from the creation of the process to its first training step."""
        start = time.perf_counter()
        with subprocess.Popen(self.command + [workload], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              env={**os.environ, **self.extra}) as process:
            line = process.stdout.readline()
            seconds = time.perf_counter() - start
            process.communicate()
        return seconds if line.strip() == "ready" else None

    def end(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


def side_by_side(ours, peer, pairs):
    """A B A B: medians of both and of their ratio (peer's time over ours)."""
    mine, theirs = [], []
    for _ in range(pairs):
        a, b = ours(), peer()
        if not a or not b:
            return None
        mine.append(a)
        theirs.append(b)
    ratios = [b / a for a, b in zip(mine, theirs)]
    return statistics.median(mine), statistics.median(theirs), statistics.median(ratios)


# ---- rows ------------------------------------------------------------------------------------------------------------------

class Table:
    """The rows, printed as they come. A ratio is the peer's figure over ours, so more is better for us everywhere."""

    def __init__(self):
        self.rows = []

    def add(self, goal, name, ours, peer, peer_name, ratio, target, unit="s", note=""):
        good = ratio >= target
        self.rows.append({"goal": goal, "name": name, "ours": ours, "peer": peer, "peer_name": peer_name,
                          "ratio": round(ratio, 3), "target": target, "pass": good, "unit": unit, "note": note})
        verdict = "reached" if good else "missed"
        say(f"goal {goal:2}  {name:44} {show(ours, unit):>10} against {show(peer, unit):>10} {peer_name:32} "
            f"ratio {ratio:8.2f}, wanted {target:g}: {verdict}" + (f" ({note})" if note else ""))


def show(value, unit):
    if unit != "s":
        return f"{value:.4g} {unit}"
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= scale:
            return f"{value / scale:.4g} {name}"
    return f"{value * 1e9:.4g} ns"


# ---- races -------------------------------------------------------------------------------------------------------------------

def fastest(candidates):
    """The side and the workload's name there that are fastest here: (side, name). A side may have several ways to do it."""
    best = None
    for side, names in candidates:
        for name in names:
            times = [seconds for seconds in (side.measure(name) for _ in range(2)) if seconds]
            if times and (best is None or min(times) < best[0]):
                best = (min(times), side, name)
    return best[1:] if best else None


def race(table, pairs, row, mine, candidates):
    """One row: `mine` is (side, workload), the fastest of the candidates is the peer; row is (goal, name, target, note)."""
    goal, name, target, note = row
    best = fastest(candidates)
    if not best:
        return say(f"goal {goal:2}  {name}: the peer gave no answer")
    side, form = best
    ours, workload = mine
    ours.measure(workload)  # made and warm before the race
    ours.processor, side.processor = [], []
    result = side_by_side(lambda: ours.measure(workload), lambda: side.measure(form), pairs)
    if not result:
        return say(f"goal {goal:2}  {name}: one side gave no answer")
    # On a busy machine this says more than the clock on the wall does.
    processor = statistics.median(b / max(a, 1e-12) for a, b in zip(ours.processor, side.processor))
    note = "; ".join(each for each in (f"by the processor's time {processor:.2f}", note) if each)
    mode = form[len(workload):].lstrip(":") if form.startswith(workload) else ""
    table.add(goal, name, result[0], result[1], f"{side.name} {mode}".strip(), result[2], target, note=note)
