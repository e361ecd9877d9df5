"""One job, four languages: a ps from C and workers from C, Go, Rust and Java train one model together, strictly synchronously, and end
with the very bytes that four workers from C end with. Each language is the chief once, over unix sockets and TCP in turn.

    tests/bindings/job_test.py PREFIX BUILD_DIR SOURCE_DIR
"""

import pathlib
import shlex
import tempfile

import programs
from report import Report

WORKERS = 4
# What `dtg run` starts as every task: it looks up its place and becomes that task's program.
CHOOSE = """#!/bin/sh
index=$(printf %s "$TF_CONFIG" | sed -n 's/.*"task"[^}]*"index": *"\\{0,1\\}\\([0-9]\\{1,\\}\\).*/\\1/p')
case $TF_CONFIG in *'"type":"ps"'*|*'"type": "ps"'*) index=ps ;; esac
case $index in
"""


def chooser(folder, ps, workers):
    """A shell script that is `ps` as the ps and workers[i] as worker i, and says which."""
    script = pathlib.Path(folder, "task.sh")
    rows = [("ps", "c", ps), *((str(i), language, command) for i, (language, command) in enumerate(workers))]
    text = CHOOSE + "".join(f"{index}) echo 'I am {language}'; exec {shlex.join(str(word) for word in command)} \"$@\" ;;\n" for index, language, command in rows)
    script.write_text(text + "*) echo \"no place in TF_CONFIG: $TF_CONFIG\"; exit 2 ;;\nesac\n")
    script.chmod(0o755)
    return script


def main():
    prefix, build, source = programs.arguments()
    report = Report("bindings_job")
    data = source / "tests" / "data" / "digits.csv.gz"
    env = programs.environment(prefix)
    made = programs.build_all(report, prefix, build, source)
    languages = [language for language in made if "sync_worker" in made[language]]
    for language in set(made) - set(languages):
        print(f"left out: {language}: the binding has no example sync_worker", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        def job(name, chosen, channel):
            weights = pathlib.Path(folder, f"{name}.safetensors".replace(" ", "_"))
            script = chooser(folder, made["c"]["sync_worker"], [(language, made[language]["sync_worker"]) for language in chosen])
            said = [f"worker/{i} | I am {language}" for i, language in enumerate(chosen)]
            run = [prefix / "bin" / "dtg", "run", "--local", "--ps", "1", "--workers", str(WORKERS), "--channel", channel, "--", script, data, weights]
            report.case(f"a job of {name}, {channel}", run, env=env, timeout=120,
                        check=lambda text: next((f"it should say: {line}\n{text}" for line in said if line not in text.replace("│", "|")), None))
            return weights

        alone = job("four from c", ["c"] * WORKERS, "unix")
        for i, chief in enumerate(languages if len(languages) > 1 else []):
            # The chief first, then the others in turn; where a language is missing, those that are there twice.
            chosen = [languages[(i + k) % len(languages)] for k in range(WORKERS)]
            together = job(" ".join(chosen), chosen, ("unix", "tcp")[i % 2])
            report.case(f"the weights with {chief} as chief are those of four from c", ["cmp", alone, together])
    report.finish()


if __name__ == "__main__":
    main()
