"""One recurrent network with a loop, a condition and a list, in every language: each prints the losses that the one in C prints, to the bit,
alone, on a device that is named, over two emulated devices with the border between them inside the loops, and with its variables on a
parameter server in another process; and spells the words that it learnt.

    tests/bindings/control_test.py PREFIX BUILD_DIR SOURCE_DIR
"""

import json

import programs
from report import Report

STEPS = 60
WORDS = ["if", "loop", "case", "graph", "tensor", "variable"]
PLACES = {  # everything but the variables of a ps goes to the device, and the steps of the network to that of the cell
    "on CPU:0": ["--device", "/device:CPU:0"],
    "on EMU:1": ["--device", "/device:EMU:1"],
    "over two EMUs": ["--device", "/device:EMU:0", "--cell", "/device:EMU:1"],
}


def lines(text):
    """The JSON lines of a program, also those that `dtg run` shows under the task's name."""
    found = [line[line.index("{") :] for line in text.splitlines() if "{" in line]
    return [line for line in found if line.startswith(('{"step"', '{"first"'))]


def trained(text):
    """Whether the losses are those of a network that learns; None when they are."""
    rows = [json.loads(line) for line in lines(text)]
    losses = [row["loss"] for row in rows if "step" in row]
    words = [row["word"] for row in rows if "word" in row]
    if len(losses) != STEPS or not losses[-1] < 0.1 * losses[0]:
        return f"expected {STEPS} losses that fall to a tenth:\n{text}"
    return None if words == WORDS else f"expected the words {WORDS}, got {words}"


def main():
    prefix, build, source = programs.arguments()
    report = Report("bindings_control")
    env = programs.environment(prefix)
    made = programs.build_all(report, prefix, build, source)
    expected = report.case("in c", made["c"]["char_lstm"], env=env, check=trained)
    wanted = lines(expected or "")

    def same(text):
        return None if lines(text) == wanted else f"C alone prints\n{expected}and this prints\n{text}"

    for language, its in made.items():
        program = its["char_lstm"]
        if language != "c":
            report.case(f"in {language} as in c", program, env=env, check=same)
        for where, options in PLACES.items():
            report.case(f"in {language} {where}", [*program, *options], env=env, check=same)
        cluster = [prefix / "bin" / "dtg", "run", "--local", "--ps", "1", "--workers", "1", "--", *program]
        report.case(f"in {language} with its variables on a ps", cluster, env=env, timeout=120, check=same)
    report.finish()


if __name__ == "__main__":
    main()
