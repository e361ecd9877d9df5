"""The same small program in every language prints the same bytes: every loss, to its last digit. And training that a program in C began
goes on in every language as if it had not stopped.

    tests/bindings/same_test.py PREFIX BUILD_DIR SOURCE_DIR
"""

import re
import tempfile

import programs
from report import Report


def resume_each(report, programs_of, env, data):
    """To step 60 at once in C; to step 30 in C and from there in each language."""
    with tempfile.TemporaryDirectory() as scratch:
        first = programs_of["c"]["resume"]
        straight = report.case("resume: 60 steps in c", [*first, data, f"{scratch}/straight", "60"], env=env,
                               check=lambda text: None if re.fullmatch(r"from step 0\nstep 60: loss \d+\.\d{6}\n", text) else f"printed {text}")
        for language, made in programs_of.items():
            folder = f"{scratch}/{language}"
            report.case(f"resume: 30 steps in c, before {language}", [*first, data, folder, "30"], env=env)
            command = [*made["resume"], data, folder, "60"]
            expected = (straight or "").replace("from step 0", "from step 30")
            report.case(f"resume: on to 60 in {language}", command, env=env,
                        check=lambda text, expected=expected: None if text == expected else f"expected\n{expected}and this prints\n{text}")


def main():
    prefix, build, source = programs.arguments()
    report = Report("bindings_same")
    data = source / "tests" / "data" / "digits.csv.gz"
    env = programs.environment(prefix)
    lines = re.compile(r"(step \d+: loss \d+\.\d{6}\n){5,}")
    expected = None
    made_of_all = programs.build_all(report, prefix, build, source)
    for language, made in made_of_all.items():
        if language == "c":
            expected = report.case("digits in c", [*made["digits"], data], env=env, check=lambda text: None if lines.fullmatch(text) else "these are not losses")
        else:
            report.case(f"digits in {language} as in c", [*made["digits"], data], env=env,
                        check=lambda text: None if text == expected else f"C prints\n{expected}and this prints\n{text}")
    resume_each(report, made_of_all, env, data)
    report.finish()


if __name__ == "__main__":
    main()
