#!/usr/bin/env python3
"""The library and the bindings for 64-bit ARM: built by a cross compiler, run by an emulator (`make arm64`).

    tests/arm64/arm64_test.py BUILD_DIR SOURCE_DIR JAVA_ROOT RUST_ROOT

BUILD_DIR is that of the preset arm64. The roots are folders of `.deps/build.sh --arm64-root java` and `rust`; "-" leaves a language out,
and says so. Each language trains on the digits, and a cluster of a parameter server and two workers does, each task in an emulator of
its own. What is printed is not compared with this machine's: sums are rounded elsewhere there. What is learned is.
"""

import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bindings"))
from report import Report  # noqa: E402

TRIPLE = "aarch64-linux-gnu"
RUST_TRIPLE = "aarch64-unknown-linux-gnu"


def learned(below):
    """A check: the last loss that is printed is below that."""
    def check(text):
        losses = re.findall(r"loss (\d+\.\d+)", text)
        return None if losses and float(losses[-1]) < below else "it has not learned"
    return check


def is_arm(path):
    """The line of `file` for ELF: the machine's number at byte 18."""
    return path.read_bytes()[18:20] == b"\xb7\x00"


class Foreign:
    """An installation for 64-bit ARM, and the command that runs its programs."""

    def __init__(self, build, source, libraries):
        self.build, self.source, self.prefix, self.libraries = build, source, build / "prefix", libraries
        self.digits = source / "tests" / "data" / "digits.csv.gz"
        self.out = build / "programs"
        self.out.mkdir(exist_ok=True)

    def emulated(self, *command, system=f"/usr/{TRIPLE}"):
        paths = [self.prefix / "lib", f"{self.libraries}/usr/lib/{TRIPLE}", f"{self.libraries}/lib/{TRIPLE}"]
        return ["qemu-aarch64", "-L", system, "-E", "LD_LIBRARY_PATH=" + ":".join(str(path) for path in paths), *command]

    def environment(self):
        """What a cross build sets; pkg-config sees nothing of this machine's."""
        return {"PKG_CONFIG_LIBDIR": f"{self.prefix}/lib/pkgconfig:{self.libraries}/usr/lib/{TRIPLE}/pkgconfig", "PKG_CONFIG_PATH": "",
                "CC": f"{TRIPLE}-gcc", "STRIP": f"{TRIPLE}-strip", "CFLAGS": f"-Wl,-rpath-link,{self.libraries}/usr/lib/{TRIPLE}",
                "CGO_LDFLAGS": f"-Wl,-rpath-link,{self.libraries}/usr/lib/{TRIPLE}"}


def c(report, foreign):
    report.case("C: install", ["cmake", "--install", foreign.build, "--prefix", foreign.prefix])
    report.case("C: the library is for ARM", ["true"], check=lambda _: None if is_arm(foreign.prefix / "lib" / "libdtg.so") else "it is not")
    report.case("C: digits", foreign.emulated(foreign.build / "example_digits", foreign.digits), check=learned(0.5))
    report.case("the dtg command", foreign.emulated(foreign.prefix / "bin" / "dtg", "version"), check=lambda text: None if "0.1" in text else "no version")


def cluster(report, foreign, name, program):
    """A strictly synchronous job; the launcher is emulated too."""
    weights = foreign.out / f"{name}.safetensors"
    weights.unlink(missing_ok=True)
    job = foreign.emulated(foreign.prefix / "bin" / "dtg", "run", "--local", "--ps", "1", "--workers", "2", "--", *program, foreign.digits, weights)
    report.case(f"{name}: a cluster of three processes", job, timeout=300,
                check=lambda text: learned(0.7)(text) or (None if weights.exists() else "no weights were saved"))


def go(report, foreign):
    if not shutil.which("go"):
        print("left out: Go, there is no go here", flush=True)
        return
    env = {**foreign.environment(), "GOARCH": "arm64", "CGO_ENABLED": "1", "CFLAGS": ""}
    program = foreign.out / "digits_go"
    report.case("Go: build", ["go", "build", "-o", program, "./examples/digits"], cwd=foreign.source / "bindings" / "go", env=env)
    report.case("Go: digits", foreign.emulated(program, foreign.digits), check=learned(0.5))


def rust(report, foreign, root):
    """The compiler comes with the standard libraries of both machines, which must be of one version with it."""
    if not root.is_dir() or not shutil.which("cargo"):
        print("left out: Rust, there is no cargo here or no compiler with a standard library for ARM", flush=True)
        return
    target = foreign.build / "rust"
    tools = foreign.build / "tools"
    tools.mkdir(exist_ok=True)
    compiler = tools / "rustc"
    compiler.write_text(f"#!/bin/sh\nLD_LIBRARY_PATH={root}/usr/lib/x86_64-linux-gnu exec {root}/usr/bin/rustc \"$@\"\n")
    compiler.chmod(0o755)
    env = {"RUSTC": str(compiler), "DTG_LIB_DIR": str(foreign.prefix / "lib"), "CARGO_TARGET_DIR": str(target),
           "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER": f"{TRIPLE}-gcc",
           "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS": f"-Clink-arg=-Wl,-rpath-link,{foreign.libraries}/usr/lib/{TRIPLE}",
           "CARGO_PROFILE_DEV_DEBUG": "none", "LD_LIBRARY_PATH": ""}
    report.case("Rust: build", ["cargo", "build", "-q", "-p", "dtg", "--target", RUST_TRIPLE, "--example", "digits"],
                cwd=foreign.source / "bindings" / "rust", env=env)
    report.case("Rust: digits", foreign.emulated(target / RUST_TRIPLE / "debug" / "examples" / "digits", foreign.digits), check=learned(0.5))


def java(report, foreign, root):
    if not shutil.which("javac"):
        print("left out: Java, there is no javac here", flush=True)
        return
    binding, classes = foreign.source / "bindings" / "java", foreign.out / "java"
    native = classes / "META-INF" / "native" / "linux-aarch64"
    sources = [*(binding / "src" / "main" / "java" / "org").rglob("*.java"), binding / "examples" / "src" / "main" / "java" / "Digits.java"]
    report.case("Java: compile", ["javac", "--release", "17", "-d", classes, *sources])
    home = pathlib.Path(shutil.which("javac")).resolve().parent.parent
    report.case("Java: the native half", ["sh", binding / "native" / "build.sh", native, home], env=foreign.environment(),
                check=lambda _: None if is_arm(native / "libdtg_jni.so") else "it is not for ARM")
    if not root.is_dir():
        print("left out: running Java, there is no JVM for ARM", flush=True)
        return
    jvm = next(root.glob("usr/lib/jvm/java-*/bin/java"))
    # A small heap and one collector thread: the emulator has to translate all of it.
    command = foreign.emulated(jvm, "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classes, "Digits", foreign.digits, system=str(root))
    report.case("Java: digits, the native half out of a jar's place", command, check=learned(0.5))


def main():
    build, source = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    java_root, rust_root = (pathlib.Path(word) for word in sys.argv[3:5])
    report = Report("arm64")
    report.need("qemu-aarch64", "apt-get install qemu-user")
    libraries = subprocess.run([source / ".deps" / "build.sh", "--arm64-root", "libraries"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    foreign = Foreign(build, source, libraries)
    c(report, foreign)
    cluster(report, foreign, "C", foreign.emulated(build / "example_sync_worker"))
    go(report, foreign)
    rust(report, foreign, rust_root)
    java(report, foreign, java_root)
    report.finish()


if __name__ == "__main__":
    main()
