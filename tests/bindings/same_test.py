"""The same small program in every language prints the same bytes: every loss, to its last digit.

    tests/bindings/same_test.py PREFIX BUILD_DIR SOURCE_DIR
"""

import re

import programs
from report import Report


def main():
    prefix, build, source = programs.arguments()
    report = Report("bindings_same")
    data = source / "tests" / "data" / "digits.csv.gz"
    env = programs.environment(prefix)
    lines = re.compile(r"(step \d+: loss \d+\.\d{6}\n){5,}")
    expected = None
    for language, made in programs.build_all(report, prefix, build, source).items():
        if language == "c":
            expected = report.case("digits in c", [*made["digits"], data], env=env, check=lambda text: None if lines.fullmatch(text) else "these are not losses")
        else:
            report.case(f"digits in {language} as in c", [*made["digits"], data], env=env,
                        check=lambda text: None if text == expected else f"C prints\n{expected}and this prints\n{text}")
    report.finish()


if __name__ == "__main__":
    main()
