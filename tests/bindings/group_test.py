"""One group, four languages: members from C, Go, Rust and Java reduce dense gradients and gather rows together, and one of them dies or
stands still: each language once, with whatever rank. The others hear its name, go on together and end with the same values, as
tests/checks/group_kill_test.py says. The seed is printed.

    tests/bindings/group_test.py PREFIX BUILD_DIR SOURCE_DIR [--seed N]
"""

import pathlib
import random
import signal
import sys
import time

import programs
from report import Report

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "checks"))
import group_kill_test as kills


def main():
    prefix, build, source = programs.arguments()
    seed = int(sys.argv[5]) if sys.argv[4:5] == ["--seed"] else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    report = Report("bindings_group")
    made = programs.build_all(report, prefix, build, source)
    languages = [language for language in made if "group" in made[language]]
    for language in set(made) - set(languages):
        print(f"left out: {language}: the binding has no example group", flush=True)
    chance = random.Random(seed)
    fates = [(signal.SIGKILL, language) for language in languages] + [(signal.SIGSTOP, chance.choice(languages))]
    for how, language in fates:
        members = [languages[i % len(languages)] for i in range(kills.SIZE)]
        chance.shuffle(members)
        faults, began = [], time.monotonic()
        kills.round_of([made[member]["group"] for member in members], chance, faults, (how, members.index(language)), programs.environment(prefix))
        report.verdict(f"{how.name} of {language} among {' '.join(members)}", "\n".join(faults) or None, time.monotonic() - began)
    report.finish()


if __name__ == "__main__":
    main()
