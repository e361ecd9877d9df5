"""Trains the demo on the digits of the repository while its processes are killed, and holds what comes of it against what it would
have been. One worker alone, and several that train synchronously, must end with the same weights to the bit, wherever somebody was killed: no
update is lost or made twice, on one parameter server or another, and no image is left out. With several whose order differs from run to
run, the ledger must hold.

Usage: demo_kill_test.py PROGRAM DTG KILLER    where KILLER is .ci/killer
"""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM, DTG, KILLER = sys.argv[1:4]
# Workers, parameter servers, who is killed, mode; "coordinator": servers that a task more feeds, and an accident to it is none of these.
# Without parameter servers the workers are equals that meet in a group.
CASES = [(1, 1, "any", "async"), (2, 1, "any", "async"), (2, 1, "worker", "sync"), (2, 2, "any", "sync"), (3, 0, "worker", "sync"),
         (2, 1, "worker", "coordinator"), (2, 1, "ps", "coordinator"), (3, 2, "any", "elastic")]


def train(run, workers, epochs, every=None, kind="worker", servers=1, mode="async"):
    """Gives the weights, the summary and the numbers of parameter servers and workers that were killed."""
    run.mkdir()
    launch = [DTG, "run", "--local", "--ps", str(servers), "--workers", str(workers), "--restart", "on-failure", "--restart-limit", "1000", "--pids", run / "pids"]
    if kind != "worker":
        launch += ["--state", run / "state", "--durability", "wal"]
    # A data folder that is not there makes the program take the digits.
    program = [PROGRAM, "--data", run / "absent", "--run", run, "--epochs", str(epochs), "--batch", "32", "--rate", "0.03"]
    program += ["--strategy", mode] if mode == "coordinator" else ["--mode", mode]
    launch += ["--chief"] if mode == "coordinator" else []
    if servers == 0:
        program += ["--strategy", "multi-worker"]
    counts = run / "kills"
    # At most six times: the pauses before restarts grow, and a busy machine, which trains longer, would be killed for ever.
    killer = every and subprocess.Popen([KILLER, kind, str(every), "7", run / "pids", run / "summary.json", counts, "6"])
    try:
        told = subprocess.run([*launch, "--", *program], check=False, cwd=HERE.parent.parent, timeout=140, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
    finally:
        if killer:
            killer.kill()
            killer.wait()
    if told.returncode != 0:
        sys.exit(f"{run.name}: exit code {told.returncode}\n{told.stdout}")
    summary = json.loads((run / "summary.json").read_text())
    return (run / "model.safetensors").read_bytes(), summary, [int(count) for count in counts.read_text().split()] if every else [0, 0]


def check(summary, kills, workers, mode):
    # Elastic: the 1,500 digits of each epoch, of which each is in one update.
    total = 1500 * summary["epochs"] if mode == "elastic" else (workers if mode == "async" else 1) * summary["steps"]
    problems = []
    if summary["ledger"] != {"expected": total, "counted": total, "lost": 0, "doubled": 0}:
        problems.append(f"the ledger of {workers} workers does not hold: {summary['ledger']}, {total} steps")
    # Who was killed when it had just reported does not report again; a synchronous worker may itself end for the loss of another.
    # To a coordinator a worker that dies again before it is met is no other loss.
    least = min(kills, 1) if mode == "coordinator" else kills - 1
    if not least <= summary["recoveries"] or (mode in ("async", "coordinator") and summary["recoveries"] > kills):
        problems.append(f"{kills} kills, but {summary['recoveries']} recoveries")
    if summary["accuracy"] < 0.85:
        problems.append(f"accuracy is {summary['accuracy']}")
    return problems


def main():
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        problems, killed, wholes = [], 0, {}
        for workers, servers, kind, mode in CASES:
            epochs = 100 if mode == "async" else 60
            bits, summary, kills = train(place / f"{workers}-{servers}-{kind}-{mode}", workers, epochs, 0.4, kind, servers, mode)
            found = check(summary, kills[1], workers, mode)
            if sum(kills) < 2:
                found.append(f"only {kills} kills: nothing was tried")
            if workers == 1 or mode == "sync":
                alone = (workers, servers, mode)
                if alone not in wholes:
                    wholes[alone], _, _ = train(place / f"{workers}-{servers}-{mode}-undisturbed", workers, epochs, None, kind, servers, mode)
                if bits != wholes[alone]:
                    found.append("other weights than without a kill")
            problems += [f"{workers} workers, {servers} servers, MODE={mode}, KILL={kind}: {problem}" for problem in found]
            killed += sum(kills)
    for problem in problems:
        print(problem)
    print(f"demo: {killed} kills; {'failed' if problems else 'all as expected'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
