#!/usr/bin/env python3
"""The packages of `make package`, installed and used on a bare Debian 12 that knows nothing of this checkout.

    tests/packages/packages_test.py PACKAGES_DIR BUILD_DIR SOURCE_DIR

debootstrap makes the system in a folder (root only), apt installs the .deb files there with a compiler, and the program of
capi/examples/digits.c, with its twins in Go, Rust and Java, is built and run inside from packages alone; it prints what the one in the
build folder prints. Compilers of the three languages are not Debian's business: this machine's own are mounted, read-only.
"""

import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bindings"))
from report import Report  # noqa: E402

GO_MODULE = "github.com/dtg-project/dtg/bindings/go"

CARGO = """[package]
name = "outside"
version = "0.0.1"
edition = "2024"

[dependencies]
dtg = "0.1"

[patch.crates-io]
dtg = {{ path = "/packages/crates/{dtg}" }}
dtg-sys = {{ path = "/packages/crates/{sys}" }}
"""


def printed(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


class Bare:
    """A Debian 12 in a folder. Whatever is mounted there lives in a namespace of the one command, and goes with it."""

    def __init__(self, folder, report):
        self.root, self.report, self.mounts = folder, report, []

    def make(self):
        mirror = printed(["apt-get", "indextargets", "--format", "$(SITE)", "Codename: bookworm"]).splitlines()[0]
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.parent.mkdir(parents=True, exist_ok=True)
        made = self.report.case("debootstrap", ["debootstrap", "--variant=minbase", "bookworm", self.root, mirror], timeout=900)
        # Where packages come from is the same as outside.
        for name in ("etc/apt/apt.conf.d", "etc/apt/auth.conf.d", "etc/ssl/certs", "usr/share/ca-certificates", "usr/local/share/ca-certificates"):
            if pathlib.Path("/", name).is_dir():
                shutil.copytree(pathlib.Path("/", name), self.root / name, symlinks=True, dirs_exist_ok=True)
        for name in ("docker-clean", "docker-gzip-indexes", "50appstream", "20packagekit"):
            (self.root / "etc/apt/apt.conf.d" / name).unlink(missing_ok=True)
        for name in ("etc/resolv.conf", "etc/hosts"):
            shutil.copy(pathlib.Path("/", name), self.root / name)
        return made is not None

    def mount(self, outside, inside=None):
        self.mounts.append((str(outside), str(inside or outside)))

    def case(self, name, script, env=None, check=None):
        """Runs a shell script inside."""
        lines = ["set -e", f"mount --bind /dev {self.root}/dev", f"mount -t proc proc {self.root}/proc"]
        for outside, inside in self.mounts:
            lines += [f"mkdir -p {self.root}{inside}", f"mount --bind -o ro {outside} {self.root}{inside}"]
        variables = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", **(env or {})}
        words = " ".join(f"{key}='{value}'" for key, value in variables.items())
        lines.append(f"exec chroot {self.root} /usr/bin/env -i {words} sh -c '{script}'")
        return self.report.case(name, ["unshare", "--mount", "sh", "-c", "\n".join(lines)], timeout=900, check=check)


def c(bare, right):
    bare.case("apt-get install libdtg0.1 libdtg-dev dtg-tools",
              "apt-get update -q && apt-get install -q -y gcc g++ libc6-dev pkg-config libssl-dev zlib1g-dev /packages/deb/*.deb")
    bare.case("C, pkg-config", "cd /app && cc -std=c11 -Wall -Werror digits.c -o digits $(pkg-config --cflags --libs dtg)")
    bare.case("C, runs", "cd /app && ./digits digits.csv.gz", check=right)
    bare.case("the dtg command", "dtg version && dtg ops MatMul", check=lambda text: None if "0.1" in text else "no version")
    bare.case("the library can be removed", "apt-get remove -q -y libdtg0.1 && ! ls /usr/lib/libdtg* /usr/include/dtg")
    bare.case("and be installed again", "apt-get install -q -y /packages/deb/*.deb")


def go(bare, right):
    if not shutil.which("go"):
        return
    bare.mount(printed(["go", "env", "GOROOT"]), "/usr/local/go")
    env = {"PATH": "/usr/local/go/bin:/usr/bin:/bin", "GOPROXY": "file:///packages/go,off", "GONOSUMDB": "*", "GOFLAGS": "-mod=mod"}
    bare.case("Go, go get from a module proxy", f"cd /app/go && go mod init example.org/outside && go get {GO_MODULE}@latest && go build -o digits .", env)
    bare.case("Go, runs", "/app/go/digits /app/digits.csv.gz", check=right)


def rust(bare, right):
    if not shutil.which("cargo"):
        return
    sysroot = printed(["rustc", "--print", "sysroot"])
    home = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
    bare.mount(sysroot, "/usr/local/rust")
    # Other crates come from what cargo has fetched here before.
    shutil.copytree(home / "registry", bare.root / "root/.cargo/registry", dirs_exist_ok=True, ignore=shutil.ignore_patterns("src"))
    for name in ("config.toml", "config"):
        if (home / name).exists():
            shutil.copy(home / name, bare.root / "root/.cargo" / name)
    env = {"PATH": "/usr/local/rust/bin:/usr/bin:/bin", "CARGO_PROFILE_DEV_DEBUG": "none"}
    bare.case("Rust, from the crates", "cd /app/rust && cargo build -q --offline || cargo build -q", env)
    bare.case("Rust, runs", "/app/rust/target/debug/outside /app/digits.csv.gz", env, check=right)


def java(bare, right):
    if not shutil.which("mvn"):
        return
    bare.mount(pathlib.Path(printed(["readlink", "-f", shutil.which("javac")])).parent.parent, "/usr/local/java")
    # Debian's keeps its settings elsewhere, behind links.
    for settings in pathlib.Path("/etc").glob("java-*-openjdk"):
        bare.mount(settings)
    env = {"PATH": "/usr/local/java/bin:/usr/bin:/bin"}
    jars = "$(find /packages/maven -name \"dtg-*.jar\" ! -name \"*-sources.jar\" ! -name \"*-javadoc.jar\" | tr \"\\n\" :)"
    bare.case("Java, from the jars", f"cd /app/java && javac -cp {jars} Digits.java", env)
    # The jar has libdtg in itself: none is installed.
    bare.case("Java, without an installed library", "apt-get remove -q -y libdtg0.1 libdtg-dev dtg-tools >/dev/null")
    bare.case("Java, runs", f"cd /app/java && java -cp {jars}. Digits /app/digits.csv.gz", env, check=right)
    for kind in ("sources", "javadoc"):
        bare.report.case(f"Java, there are {kind}", ["sh", "-c", f"ls {bare.root}/packages/maven/org/dtg/dtg/*/*-{kind}.jar"])


def main():
    packages, build, source = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    report = Report("packages")
    report.need("debootstrap", "apt-get install debootstrap")
    if os.geteuid() != 0:
        report.skip("root", "run it as root: a system in a folder is made by debootstrap and chroot")
    bare = Bare(packages / "debian", report)
    if not bare.make():
        report.finish()
    wanted = printed([build / "example_digits", source / "tests/data/digits.csv.gz"]) + "\n"
    right = lambda text: None if text == wanted else f"it should print\n{wanted}"
    for kind in ("deb", "crates", "go", "maven"):
        if (packages / kind).is_dir():
            shutil.copytree(packages / kind, bare.root / "packages" / kind)
    for crate in (bare.root / "packages/crates").glob("*.crate"):
        subprocess.run(["tar", "-xf", crate, "-C", crate.parent], check=True)
    app = bare.root / "app"
    (app / "go").mkdir(parents=True)
    (app / "rust/src").mkdir(parents=True)
    (app / "java").mkdir()
    shutil.copy(source / "capi/examples/digits.c", app)
    shutil.copy(source / "tests/data/digits.csv.gz", app)
    shutil.copy(source / "bindings/go/examples/digits/main.go", app / "go")
    shutil.copy(source / "bindings/rust/dtg/examples/digits.rs", app / "rust/src/main.rs")
    shutil.copy(next((source / "bindings/java/examples").rglob("Digits.java")), app / "java")
    unpacked = {path.name.rsplit("-", 1)[0]: path.name for path in (bare.root / "packages/crates").iterdir() if path.is_dir()}
    (app / "rust/Cargo.toml").write_text(CARGO.format(dtg=unpacked["dtg"], sys=unpacked["dtg-sys"]))
    for test in (c, go, rust, java):
        test(bare, right)
    report.finish()


if __name__ == "__main__":
    main()
