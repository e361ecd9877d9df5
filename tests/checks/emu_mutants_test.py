"""Is a device that breaks the rules found out? emu_mutants_test.py RANDOM_GRAPHS

The emulated accelerator can be told to break one rule of those that real ones rely on (Accelerator::Mutant). The ordinary random graphs
run on each such device, and on one that keeps the rules: they must fail there, and pass here. So must graphs about conditions and loops, whose
bodies have borders between devices inside. One process; starts others."""

import subprocess
import sys

COUNT = 60
MUTANTS = ["skips_wait", "frees_early", "reads_device", "swaps_streams"]


def failures(program, mode, more):
    """Exit code and closing line of the random graphs in that mode."""
    command = [program, "--modes", mode, "--count", str(COUNT), "--most", "3", "--jobs", "1", *more]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    return done.returncode, done.stdout


def main(program):
    wrong = []
    for more in ([], ["--functions"]):
        code, text = failures(program, "emu", more)
        if code != 0:
            wrong.append("a device that keeps the rules fails:\n" + text[-2000:])
        for mutant in MUTANTS:
            code, text = failures(program, mutant, more)
            last = text.strip().splitlines()[-1] if text.strip() else "nothing"
            print(f"{mutant} {' '.join(more)}: exit code {code}, {last}")
            if code == 0 or "bad" not in text and "failed" not in text:
                wrong.append(f"{mutant} was not found in {COUNT} graphs:\n" + text[-2000:])
    for text in wrong:
        print(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
