"""The example programs of every language, built for the tests that set them side by side.

A language whose tools or sources are missing is named and left out; C is always there. The programs of a binding are built where its
own test builds them, so that this costs little after it.
"""

import fcntl
import os
import pathlib
import platform
import shutil
import subprocess
import sys

INSTALL = {
    "go": "Go 1.24: https://go.dev/dl, or apt-get install golang-go where that is new enough",
    "rust": "Rust 1.85: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh",
    "java": "a JDK, 17 or later, and Maven: apt-get install openjdk-17-jdk-headless maven",
}
NAMES = ("char_lstm", "digits", "elastic", "first_hour", "group", "recipes", "resume", "sync_worker")
JAVA_NAMES = {"group": "GroupWorker"}  # where the plain name is the library's
TOOLS = {"go": ["go"], "rust": ["cargo"], "java": ["javac", "mvn"]}


def arguments():
    """PREFIX, BUILD_DIR and SOURCE_DIR of a test's command line."""
    return tuple(pathlib.Path(argument).resolve() for argument in sys.argv[1:4])


def environment(prefix):
    """What a user sets who has installed dtg in a place of his own."""
    return {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig"), "LD_LIBRARY_PATH": str(prefix / "lib"), "GOTOOLCHAIN": "local",
            "GOFLAGS": "-buildvcs=false", "CARGO_TERM_COLOR": "never",
            # Go's build cache does not see what pkg-config says, but it sees these.
            "CGO_CFLAGS": f"-O2 -g '-I{prefix / 'include'}'", "CGO_LDFLAGS": f"-O2 -g '-L{prefix / 'lib'}'"}


def go_version():
    """(1, 24): of the go on the PATH, not of one that it would fetch."""
    words = subprocess.run(["go", "env", "GOVERSION"], check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, "GOTOOLCHAIN": "local"}).stdout
    return tuple(int(part) for part in words.strip().removeprefix("go").split(".")[:2])


def available(language):
    """Whether the language's tools are here; if not, says so with the way to get them."""
    missing = [tool for tool in TOOLS[language] if shutil.which(tool) is None]
    if not missing and language == "go" and go_version() < (1, 24):
        missing = ["go 1.24"]
    if missing:
        print(f"left out: {language}: {' and '.join(missing)} not installed; to install: {INSTALL[language]}", flush=True)
    return not missing


def build_go(report, prefix, build, source):
    folder = build / f"{report.name}_go"  # of this test's own: two tests at a time must not write what the other one runs
    folder.mkdir(exist_ok=True)
    made = report.case("go: build the examples", ["go", "build", "-o", f"{folder}/", "./examples/..."], cwd=source / "bindings" / "go", env=environment(prefix))
    return None if made is None else {name: [folder / name] for name in NAMES}


def build_rust(report, prefix, build, source):
    folder = build / "rust"
    env = {**environment(prefix), "CARGO_TARGET_DIR": str(folder), "CARGO_PROFILE_DEV_DEBUG": "line-tables-only"}
    made = report.case("rust: build the examples", ["cargo", "build", "-q", "--all-features", "--examples"], cwd=source / "bindings" / "rust", env=env)
    return None if made is None else {name: [folder / "debug" / "examples" / name] for name in NAMES}


def java_home():
    """The JDK that javac belongs to."""
    return pathlib.Path(shutil.which("javac")).resolve().parent.parent


def build_java(report, prefix, build, source):
    """Without Maven: the classes, and the native library where the loader looks for it in a jar. Made once for all tests: what is there
    and newer than all it is made of is not written again, for another test may be running it."""
    java, folder = source / "bindings" / "java", build / "java-examples"
    native, done = folder / "META-INF" / "native" / f"linux-{platform.machine()}", folder / "done"
    sources = [*(java / "src" / "main" / "java" / "org").rglob("*.java"), *(java / "examples").rglob("*.java")]
    with open(build / "java-examples.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        parts = [*sources, *(java / "native").iterdir(), (prefix / "lib" / "libdtg.so").resolve()]
        if not done.exists() or any(part.stat().st_mtime >= done.stat().st_mtime for part in parts):
            shutil.rmtree(folder, ignore_errors=True)
            if report.case("java: build the examples", ["javac", "--release", "17", "-d", folder, *sources]) is None:
                return None
            if report.case("java: build the native half", ["sh", java / "native" / "build.sh", native, java_home()], env=environment(prefix)) is None:
                return None
            done.touch()
    found = {source.stem for source in sources}
    return {name: ["java", "-cp", folder, main] for name, main in ((name, JAVA_NAMES.get(name, name.title().replace("_", ""))) for name in NAMES) if main in found}


BUILD = {"go": build_go, "rust": build_rust, "java": build_java}


def build_all(report, prefix, build, source):
    """{language: {name: command}} for all NAMES; what could not be built is a failed case and not in it."""
    programs = {"c": {name: [build / f"example_{name}"] for name in NAMES}}
    for language, make in BUILD.items():
        if not (source / "bindings" / language).is_dir() or not available(language):
            continue
        made = make(report, prefix, build, source)
        if made:
            programs[language] = made
    return programs


def writes_as_c(report, build, command, env):
    """The transformer of a binding's models example trains and writes, greedily and by beam search, what C's does."""
    words = ["transformer", "--steps", "150"]
    rows = lambda text: text[text.find("beams: 1"):] if "beams: 1" in text else f"no rows in {text}"
    c = rows(subprocess.run([build / "example_models", *words], check=True, stdout=subprocess.PIPE, text=True).stdout)
    report.case("the transformer writes as in C", [*command, *words], env=env, check=lambda text: None if rows(text) == c else f"C prints\n{c}")
