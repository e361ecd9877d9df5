"""Workers that fit together, as processes, of which one is killed every now and then, as a machine that fails would be. They end with the
weights of a fit that nothing disturbed, to the bit; so does one whose whole job was ended in the middle and started again.

    tests/checks/fit_kill_test.py EXAMPLE_FIT_WORKERS DTG KILLER    where KILLER is .ci/killer
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM, DTG, KILLER = sys.argv[1:4]
DIGITS = HERE.parent / "data" / "digits.csv.gz"
WORKERS, EPOCHS = 3, 80


def start(run, folder):
    launch = [DTG, "run", "--local", "--ps", "0", "--workers", str(WORKERS), "--restart", "on-failure", "--restart-limit", "1000", "--pids", folder / "pids"]
    return subprocess.Popen([*launch, "--", PROGRAM, DIGITS, run, str(EPOCHS)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def end(launch, what):
    told, _ = launch.communicate(timeout=150)
    if launch.returncode != 0:
        sys.exit(f"{what}: exit code {launch.returncode}\n{told}")
    return told


def result(run):
    summary = json.loads((run / "summary.json").read_text())
    return (run / "model.safetensors").read_bytes(), summary


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        end(start(folder / "calm", folder), "undisturbed")
        weights, calm = result(folder / "calm")

        launch = start(folder / "killed", folder)
        # At most six times: the pauses before restarts grow.
        killer = subprocess.Popen([KILLER, "worker", "0.4", "11", folder / "pids", folder / "killed" / "summary.json", folder / "kills", "6"])
        told = end(launch, "with kills")
        killer.kill()
        killer.wait()
        kills = int((folder / "kills").read_text().split()[1])
        found, killed = result(folder / "killed")
        problems = []
        if kills == 0:
            problems.append("nobody was killed")
        if found != weights:
            problems.append(f"the weights are others after {kills} kills\n{told}")
        for what in ("epochs", "steps"):
            if killed[what] != calm[what]:
                problems.append(f"{what}: {killed[what]} after {kills} kills, {calm[what]} without")
        if [row["epoch"] for row in killed["history"]] != list(range(1, EPOCHS + 1)):
            problems.append(f"the history does not have each epoch once: {[row['epoch'] for row in killed['history']]}")

        # All of them at once: the first one's checkpoint is what there is.
        launch = start(folder / "again", folder)
        until = time.monotonic() + 60
        while not list((folder / "again").glob("checkpoints/step-*")) and time.monotonic() < until:
            time.sleep(0.02)
        launch.terminate()
        launch.communicate(timeout=60)
        if (folder / "again" / "summary.json").exists():
            problems.append("the training was over before it could be ended")
        end(start(folder / "again", folder), "started again")
        if result(folder / "again")[0] != weights:
            problems.append("the weights are others after all were started again")
    for problem in problems:
        print("FAILED:", problem)
    print(f"{kills} kills; {3 - len(problems) if len(problems) < 3 else 0} passed, {len(problems)} failed")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
