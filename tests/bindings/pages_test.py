"""The pages for the first hour, FIRST_HOUR.md and RECIPES.md of each language, ELASTIC.md and PREDICT.md: every piece of a program on them stands, line for line,
in a program that is compiled and run, and the programs print the same in every language; the files that a page's commands name are there.
The table of WHEN_SOMETHING_DIES.md names every optimizer and mode that there is.

    tests/bindings/pages_test.py PREFIX BUILD_DIR SOURCE_DIR
"""

import os
import pathlib
import re
import subprocess
import tempfile

import programs
from report import Report

PAGES = {
    "c": ("capi", "c", {"first_hour": "capi/examples/first_hour.c", "recipes": "capi/examples/recipes.c"}),
    "go": ("bindings/go", "go", {name: f"bindings/go/examples/{name}/main.go" for name in ("first_hour", "recipes")}),
    "rust": ("bindings/rust", "rust", {name: f"bindings/rust/dtg/examples/{name}.rs" for name in ("first_hour", "recipes")}),
    "java": ("bindings/java", "java", {"first_hour": "bindings/java/examples/src/main/java/FirstHour.java",
                                       "recipes": "bindings/java/examples/src/main/java/Recipes.java"}),
}
# Pages of C and Go alone, and what each of their programs prints, as the workers of a job.
JOBS = {"c": ("capi", {"elastic": "capi/examples/elastic.c"}), "go": ("bindings/go", {"elastic": "bindings/go/examples/elastic/main.go"})}
PRINTS = {"elastic": "60 of 60 batches were in 3 updates each"}
WORDS_MOST = 1000  # two pages


def lines_of(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def stands_in(block, program):
    """Whether the lines of the block follow each other in the program; where they begin to part, if not."""
    wanted, found = lines_of(block), lines_of(program)
    starts = [at for at, line in enumerate(found) if line == wanted[0]]
    best = max((next((i for i, line in enumerate(wanted) if at + i >= len(found) or found[at + i] != line), len(wanted)) for at in starts), default=0)
    return None if best == len(wanted) else wanted[best]


def missing_files(text, source):
    """What the commands of a page name and the repository does not have."""
    commands = "\n".join(re.findall(r"^    (.*)$", text, flags=re.M))
    named = re.findall(r"\b((?:tests|bindings|capi)/[\w./-]*\w)", commands)
    return [name for name in named if not (source / name).exists()]


def check_page(page, fence, program, source):
    """What is wrong with a page; an empty text where nothing is."""
    text = page.read_text()
    if missing := missing_files(text, source):
        return f"{page.name} has a command with {missing[0]}, which is not there"
    blocks = re.findall(rf"^```{fence}\n(.*?)^```$", text, flags=re.S | re.M)
    if not blocks:
        return f"{page.name} shows no program"
    strangers = [line for line in (stands_in(block, program.read_text()) for block in blocks) if line]
    if strangers:
        return f"{page.name} shows what {program.name} does not have: {strangers[0]}"
    if page.name == "FIRST_HOUR.md" and len(text.split()) > WORDS_MOST:
        return f"{page.name} has {len(text.split())} words; two pages have {WORDS_MOST}"
    return ""


def unnamed(source):
    """What optimizers and modes the headers have and the table of WHEN_SOMETHING_DIES.md does not name."""
    text = (source / "capi" / "WHEN_SOMETHING_DIES.md").read_text()
    table = text[text.index("## Optimizers and modes"):]
    headers = "".join((source / "capi" / "include" / "dtg" / name).read_text() for name in ("optimizers.h", "replicas.h"))
    kinds, modes = ({match for match in re.findall(rf"\b{prefix}_(\w+) = \d+", headers)} for prefix in ("DTG_OPT", "DTG_SYNC"))
    words = {word.upper() for word in re.findall(r"\w+", table)}
    missing = [f"DTG_OPT_{kind}" for kind in kinds - words] + [f"DTG_SYNC_{mode}" for mode in modes if f"`DTG_SYNC_{mode}`" not in table]
    return f"its table does not name {missing}" if missing or len(kinds) < 14 or len(modes) < 5 else ""


def pasted(name, blocks):
    """The programs of C that somebody has who pastes the pieces of a page: one after the other, each behind what all share."""
    if name == "recipes":
        return [blocks[0] + block for block in blocks[1:]] + ["".join(blocks)]
    head, tail, *pieces = blocks
    return [head + "".join(pieces[: count + 1]) + tail for count in range(len(pieces))]


def compile_pasted(report, source, env, scratch):
    """Each of them is compiled as it is; that the whole of them runs is the example's own case."""
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "dtg"], env={**os.environ, **env}, check=True, capture_output=True, text=True).stdout.split()
    for name in ("first_hour", "recipes"):
        blocks = re.findall(r"^```c\n(.*?)^```$", (source / "capi" / f"{name.upper()}.md").read_text(), flags=re.S | re.M)
        for number, program in enumerate(pasted(name, blocks)):
            path = pathlib.Path(scratch) / f"{name}{number}.c"
            path.write_text(program)
            report.case(f"{name.upper()}.md in C, pasted up to piece {number}", ["cc", "-std=c11", "-c", path, *flags, "-o", path.with_suffix(".o")], env=env)


def main():
    prefix, build, source = programs.arguments()
    report = Report("bindings_pages")
    for language, (folder, fence, shown) in PAGES.items():
        for name, program in shown.items():
            page = source / folder / f"{name.upper()}.md"
            wrong = check_page(page, fence, source / program, source)
            report.case(f"{folder}/{page.name}", ["echo", wrong], check=lambda text: text.strip() or None)
    data = source / "tests" / "data" / "digits.csv.gz"
    env = programs.environment(prefix)
    made_of_all = programs.build_all(report, prefix, build, source)
    with tempfile.TemporaryDirectory() as scratch:
        compile_pasted(report, source, env, scratch)
        examples = pathlib.Path(prefix) / "share" / "dtg" / "examples"
        report.case("the installed first_hour.c", ["sh", "-c", f"cc first_hour.c $(pkg-config --cflags --libs dtg) -o {scratch}/installed && "
                                                   f"{scratch}/installed digits.csv.gz {scratch}/installed.dtg"],
                    cwd=examples, env=env, check=lambda text: None if len(text.splitlines()) > 5 else text)
        for name in ("first_hour", "recipes"):
            expected = None
            for language, made in made_of_all.items():
                check = lambda text, expected=expected: None if expected is None and len(text.splitlines()) > 5 or text == expected else f"C prints\n{expected}"
                printed = report.case(f"{name} in {language}", [*made[name], data, f"{scratch}/{language}.dtg"], env=env, check=check)
                expected = printed if language == "c" else expected
        jobs(report, prefix, source, made_of_all, data, env)
        wrong = unnamed(source)
        report.case("capi/WHEN_SOMETHING_DIES.md", ["echo", wrong], check=lambda text: text.strip() or None)
        predict = source / "capi" / "PREDICT.md"
        wrong = check_page(predict, "c", source / "capi" / "examples" / "predict.c", source)
        report.case("capi/PREDICT.md", ["echo", wrong], check=lambda text: text.strip() or None)
        report.case("predict in c", [build / "example_predict"], env=env, check=lambda text: None if text == "a cat\na bird\na child\n" else text)
    report.finish()


def jobs(report, prefix, source, made_of_all, data, env):
    """The pages whose programs are workers of a job, and what the jobs print."""
    for language, (folder, shown) in JOBS.items():
        for name, program in shown.items():
            page = source / folder / f"{name.upper()}.md"
            wrong = check_page(page, PAGES[language][1], source / program, source)
            report.case(f"{folder}/{page.name}", ["echo", wrong], check=lambda text: text.strip() or None)
            if language not in made_of_all:
                continue
            told = PRINTS[name]
            job = [prefix / "bin" / "dtg", "run", "--local", "--ps", "1", "--workers", "2", "--", *made_of_all[language][name], data]
            report.case(f"{name} in {language}", job, env=env, timeout=120, check=lambda text, told=told: None if told in text else f"it does not print {told}")


if __name__ == "__main__":
    main()
