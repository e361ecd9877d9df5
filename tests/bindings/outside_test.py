"""dtg as its users have it: installed, moved to another place, and used by programs that live outside of the repository, in C, C++, Go,
Rust and Java, linked with the shared library and with the archive.

    tests/bindings/outside_test.py PREFIX BUILD_DIR SOURCE_DIR
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import programs
from report import Report

CXX = """#include <dtg/dtg.h>
#include <dtg/sugar.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

struct Release {
  void operator()(dtg_graph* graph) const { dtg_graph_release(graph); }
  void operator()(dtg_session* session) const { dtg_session_release(session); }
};

static void check(dtg_error* error) {
  if (!error) return;
  const std::string message = dtg_error_message(error, nullptr);
  dtg_error_release(error);
  throw message;
}

int main() try {
  dtg_graph* graph = nullptr;
  dtg_session* session = nullptr;
  dtg_value three{}, product{};
  float value = 0;
  check(dtg_graph_create(nullptr, &graph));
  const std::unique_ptr<dtg_graph, Release> held(graph);
  check(dtg_const_f32(graph, 3, &three));
  check(dtg_add2(graph, "Mul", three, three, &product));
  check(dtg_session_connect(nullptr, nullptr, 0, graph, nullptr, &session));
  const std::unique_ptr<dtg_session, Release> open(session);
  check(dtg_run_f32(session, product, dtg_value{}, &value));
  std::printf("%s %g\\n", dtg_version(), static_cast<double>(value));
  return 0;
} catch (const std::string& message) {
  std::fprintf(stderr, "%s\\n", message.c_str());
  return 1;
}
"""

CMAKE = """cmake_minimum_required(VERSION 3.20)
project(outside CXX)
find_package(dtg 0.1 REQUIRED)
add_executable(shared main.cc)
target_link_libraries(shared PRIVATE dtg::dtg)
add_executable(archive main.cc)
target_link_libraries(archive PRIVATE dtg::dtg_static)
target_compile_options(shared PRIVATE -Wall -Wextra -Wpedantic -Werror)
"""

GO_MOD = """module example.org/outside

go 1.24

require github.com/dtg-project/dtg/bindings/go v0.0.0

replace github.com/dtg-project/dtg/bindings/go => ../dtg-go
"""

CARGO = """[package]
name = "outside"
version = "0.0.1"
edition = "2024"

[dependencies]
dtg = { path = "../dtg-rust/dtg" }
"""

POM = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.example</groupId>
  <artifactId>outside</artifactId>
  <version>1</version>
  <properties>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
    <maven.compiler.release>17</maven.compiler.release>
  </properties>
  <dependencies>
    <dependency><groupId>org.dtg</groupId><artifactId>dtg</artifactId><version>0.1.0</version></dependency>
    <dependency>
      <groupId>org.dtg</groupId><artifactId>dtg</artifactId><version>0.1.0</version><classifier>linux-x86_64</classifier><scope>runtime</scope>
    </dependency>
  </dependencies>
  <build>
    <plugins>
      <plugin><artifactId>maven-resources-plugin</artifactId><version>3.3.1</version></plugin>
      <plugin><artifactId>maven-compiler-plugin</artifactId><version>3.13.0</version></plugin>
      <plugin><groupId>org.codehaus.mojo</groupId><artifactId>exec-maven-plugin</artifactId><version>3.5.0</version></plugin>
    </plugins>
  </build>
</project>
"""


class Outside:
    """A folder outside of the repository, with the moved installation in it."""

    def __init__(self, folder, prefix, build, source):
        self.folder, self.build, self.source = folder, build, source
        self.home = folder / "moved here" / "dtg"  # with a space, as homes have
        shutil.copytree(prefix, self.home, symlinks=True)
        self.env = programs.environment(self.home)
        # pkg-config alone must lead Go there; in a folder that is new each time its cache has nothing to offer.
        del self.env["CGO_CFLAGS"], self.env["CGO_LDFLAGS"]
        # Nothing of the linked-in library may be needed where the archive was linked.
        self.alone = {**self.env, "LD_LIBRARY_PATH": ""}
        self.data = source / "tests" / "data" / "digits.csv.gz"
        self.report = Report("bindings_outside")
        self.losses = subprocess.run([build / "example_digits", self.data], check=True, stdout=subprocess.PIPE, text=True).stdout

    def fresh(self, name):
        folder = self.folder / name
        folder.mkdir()
        return folder

    def same_losses(self, text):
        plain = re.sub(r"\x1b\[\d*m", "", text)  # Maven resets colours even where it has none
        return None if plain == self.losses else f"it should print\n{self.losses}"

    def case(self, name, command, cwd, env=None, **options):
        return self.report.case(name, command, cwd=cwd, env=env or self.env, **options)


def nothing_names_its_origin(out, prefix):
    """No file of the installation says where it was installed, built or written."""
    origins = [str(path).encode() for path in (prefix, out.build, out.source)]
    guilty = [str(path.relative_to(out.home)) for path in sorted(out.home.rglob("*")) if path.is_file() and any(origin in path.read_bytes() for origin in origins)]
    out.case("the installation does not say where it was", ["echo", *guilty], out.folder, check=lambda text: f"paths of this machine in {text}" if text.strip() else None)


def c(out):
    folder = out.fresh("c")
    shutil.copy(out.source / "capi" / "examples" / "digits.c", folder)
    compile_it = "cc -std=c11 -O1 -Wall -Wextra -Wpedantic -Werror digits.c -o "
    # eval, for pkg-config quotes what a shell would split.
    out.case("C, pkg-config", ["sh", "-c", f'eval "{compile_it} shared $(pkg-config --cflags --libs dtg)"'], folder)
    out.case("C, pkg-config, runs", ["./shared", out.data], folder, check=out.same_losses)
    archive = "$(pkg-config --static --libs dtg | sed 's/-ldtg/-l:libdtg.a/')"
    out.case("C, pkg-config --static with libdtg.a", ["sh", "-c", f'eval "{compile_it} archive $(pkg-config --cflags dtg) {archive}"'], folder)
    out.case("C, libdtg.a, runs alone", ["./archive", out.data], folder, env=out.alone, check=out.same_losses)
    out.case("C, -static, nothing shared at all", ["sh", "-c", f'eval "{compile_it} whole -static $(pkg-config --static --cflags --libs dtg)" 2>&1 | grep -v warning'
             " | grep -w 'error\\|undefined' && exit 1; test -x whole"], folder)
    out.case("C, -static, runs", ["./whole", out.data], folder, env=out.alone, check=out.same_losses)
    out.case("the moved dtg command", [out.home / "bin" / "dtg", "version"], folder, env=out.alone, check=lambda text: None if "0.1" in text else "no version")


def cxx(out):
    folder = out.fresh("cxx")
    (folder / "main.cc").write_text(CXX)
    (folder / "CMakeLists.txt").write_text(CMAKE)
    right = lambda text: None if re.fullmatch(r"\d+\.\d+\.\d+ 9\n", text) else "not 9"
    out.case("C++, find_package", ["cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={out.home}"], folder)
    out.case("C++, dtg::dtg and dtg::dtg_static", ["cmake", "--build", "build"], folder)
    # CMake writes where it found the library into the program, so no variable is needed.
    out.case("C++, dtg::dtg, runs", ["build/shared"], folder, env=out.alone, check=right)
    out.case("C++, dtg::dtg_static, runs", ["build/archive"], folder, env=out.alone, check=right)
    out.case("C++, the next version is refused", ["sh", "-c", "sed -i 's/dtg 0.1/dtg 0.2/' CMakeLists.txt && ! cmake -S . -B wrong -DCMAKE_PREFIX_PATH=" + f"'{out.home}'"],
             folder, check=lambda text: None if "0.2" in text else "CMake does not say why")


def go(out):
    shutil.copytree(out.source / "bindings" / "go", out.folder / "dtg-go")
    folder = out.fresh("go")
    shutil.copy(out.source / "bindings" / "go" / "examples" / "digits" / "main.go", folder)
    (folder / "go.mod").write_text(GO_MOD)
    for name, tags, env in (("shared", [], out.env), ("archive", ["-tags", "dtg_static"], out.alone)):
        out.case(f"Go, a module of its own, {name}", ["go", "build", *tags, "-o", name, "."], folder)
        out.case(f"Go, {name}, runs", [f"./{name}", out.data], folder, env=env, check=out.same_losses)


def rust(out):
    shutil.copytree(out.source / "bindings" / "rust", out.folder / "dtg-rust", ignore=shutil.ignore_patterns("target", "Cargo.lock"))
    folder = out.fresh("rust")
    (folder / "src").mkdir()
    shutil.copy(out.source / "bindings" / "rust" / "dtg" / "examples" / "digits.rs", folder / "src" / "main.rs")
    (folder / "Cargo.toml").write_text(CARGO)
    for name, setting, env in (("shared", "0", out.env), ("archive", "1", out.alone)):
        build = {**out.env, "DTG_STATIC": setting, "CARGO_TARGET_DIR": str(folder / name), "CARGO_PROFILE_DEV_DEBUG": "none"}
        out.case(f"Rust, a crate of its own, {name}", ["cargo", "build", "-q"], folder, env=build)
        out.case(f"Rust, {name}, runs", [f"{name}/debug/outside", out.data], folder, env=env, check=out.same_losses)


def java(out):
    """Both artifacts go into a repository of this test's own, which begins with what Maven has fetched for others before."""
    repository = out.folder / "repository"
    known = pathlib.Path.home() / ".m2" / "repository"
    if known.is_dir():
        shutil.copytree(known, repository, ignore=lambda folder, names: ["dtg"] if folder == str(known / "org") else [])
    shutil.copytree(out.source / "bindings" / "java", out.folder / "dtg-java")
    maven = ["mvn", "-B", "-q", f"-Dmaven.repo.local={repository}"]
    out.case("Java, install the binding", [*maven, "-DskipTests", f"-Ddtg.build.dir={out.folder / 'java-build'}", "install"], out.folder / "dtg-java")
    folder = out.fresh("java")
    sources = folder / "src" / "main" / "java"
    sources.mkdir(parents=True)
    example = next((out.source / "bindings" / "java" / "examples").rglob("Digits.java"))
    shutil.copy(example, sources)
    (folder / "pom.xml").write_text(POM)
    run = ["exec:exec", "-Dexec.executable=java", f"-Dexec.args=-cp %classpath Digits {out.data}"]
    # The jar has libdtg in itself, so nothing tells where it lies.
    out.case("Java, a Maven project of its own", [*maven, "compile", *run], folder, env=out.alone, check=out.same_losses)


LANGUAGES = {"go": go, "rust": rust, "java": java}


def main():
    prefix, build, source = programs.arguments()
    with tempfile.TemporaryDirectory(prefix="dtg-outside-") as folder:
        out = Outside(pathlib.Path(folder), prefix, build, source)
        nothing_names_its_origin(out, prefix)
        c(out)
        cxx(out)
        for language, test in LANGUAGES.items():
            if (source / "bindings" / language).is_dir() and programs.available(language):
                test(out)
        # A report inside the folder would go with it.
        os.chdir(source)
    out.report.finish()


if __name__ == "__main__":
    main()
