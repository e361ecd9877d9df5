#!/usr/bin/env python3
"""The Java binding's tests: tests/bindings/java_test.py PREFIX BUILD_DIR SOURCE_DIR.

PREFIX: an installation of the library. Maven builds the binding against it and runs the tests of bindings/java under -Xcheck:jni, on the
JDK of the PATH and on the newest other one that is found; then the jars are used as a program would use them, as modules and on the class
path, with and without the right to native code.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import programs
from pages_test import stands_in
from report import Report

JDK = "apt-get install openjdk-17-jdk-headless, or https://adoptium.net (17 or later)"
PLACES = ("/usr/lib/jvm/*", "/opt/java/*", "/opt/jdk*", "~/.sdkman/candidates/java/*", "~/.jdks/*")
FAULT = re.compile(r"FATAL ERROR in native method|WARNING in native method|WARNING: JNI|warning: \[|Exception pending")


# What the examples in the Javadoc of a class take for granted. A class that is not here has none; those of a class whose method returns
# something say what.
GIVEN = {
    "Cancellation": "Session session; Value loss; interface Client { void onDisconnect(Runnable then); } Client client;",
    "Checkpoint": "Model model; Session session; Dataset data; long steps;",
    "Coordinator": "Session session; Value x, y, loss, train; Tensor images, labels; CompletableFuture<Results> last;",
    "Dataset": "Session session; Dataset data; Value x, y, loss, train; float last;",
    "DtgException": "Session session; Value train; void reconnect(String peer) {}",
    "Graph": "Graph graph; Value small, half;",
    "Lifetime": "Value y;",
    "Model": "Graph graph; Model model; Value x, rounds;",
    "RestoreReport": "Model model; Session session; RestoreOptions options;",
    "Run": "Session session; Value train;",
    "Session": "Graph graph; Value x, loss, train; Tensor batch;",
    "Trainer": "Model model; Value x, y, loss; MetricValues right; Dataset train, test;",
    "README": "",
}
RETURNS = {"Lifetime": "Tensor"}


def major(java):
    """The major version of a JVM; 0 when it does not run."""
    try:
        text = subprocess.run([java, "-XshowSettings:properties", "-version"], check=True, capture_output=True, text=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return 0
    found = re.search(r"java\.specification\.version = (\d+)", text)
    return int(found.group(1)) if found else 0


def home(java):
    text = subprocess.run([java, "-XshowSettings:properties", "-version"], check=True, capture_output=True, text=True).stderr
    return re.search(r"java\.home = (.*)", text).group(1).strip()


def other_jvm(than):
    """The newest JVM of another version under the usual places; None when there is none."""
    found = {}
    for place in PLACES:
        pattern = pathlib.Path(place).expanduser()
        for folder in pattern.parent.glob(pattern.name):
            java = folder / "bin" / "java"
            if java.exists() and (folder / "bin" / "javac").exists():
                found[major(java)] = java
    newest = max((version for version in found if version > 0 and version != than), default=None)
    return None if newest is None else (newest, found[newest])


def counted(reports):
    """What the JVMs of the tests said against -Xcheck:jni, and how many tests passed."""
    def check(output):
        cases = [case for path in reports.glob("TEST-*.xml") for case in xml.etree.ElementTree.parse(path).iter("testcase")]
        texts = [output, *(path.read_text(errors="replace") for pattern in ("*.txt", "*.dump*", "*.xml") for path in reports.glob(pattern))]
        guilty = [line for text in texts for line in text.splitlines() if FAULT.search(line)]
        if guilty:
            return "-Xcheck:jni: " + "; ".join(guilty[:5])
        return None if len(cases) >= 40 else f"{len(cases)} tests ran, there are more"
    return check


def use(report, name, java, folder, options, data, expected):
    """The jars as a program has them."""
    jar, native = folder / "dtg-0.1.0.jar", folder / "dtg-0.1.0-linux-x86_64.jar"
    module = ["-p", jar, "--add-modules", "org.dtg", "-cp", f"{folder / 'examples'}:{native}"]
    modules = ["-p", f"{jar}:{native}", "--add-modules", "org.dtg,org.dtg.linux.x86_64", "-cp", folder / "examples"]
    paths = ["-cp", f"{jar}:{native}:{folder / 'examples'}"]
    same = lambda text: None if text == expected else f"C prints\n{expected}"
    right = options and ["--enable-native-access=org.dtg"]
    report.case(f"{name}: Digits as in C, a module", [java, "-Xcheck:jni", *options, *right, *module, "Digits", data], check=same)
    report.case(f"{name}: Digits as in C, two modules", [java, *options, *right, *modules, "Digits", data], check=same)
    report.case(f"{name}: Digits as in C, the class path", [java, *options, *(options and ["--enable-native-access=ALL-UNNAMED"]), *paths, "Digits", data], check=same)
    if options:
        refused = ["sh", "-c", '! "$@"', "sh", java, *options, *module, "Digits", data]
        report.case(f"{name}: native code without the right is refused", refused,
                    check=lambda text: None if all(word in text for word in ("IllegalCallerException", "--enable-native-access")) else "it does not say why")


def fit(report, java, folder, build, source):
    """The example Fit prints what C's does, stopped after two epochs and begun again too; what README.md shows of it is in it."""
    env, digits = {"DTG_SOURCE_DIR": str(source)}, source / "tests" / "data" / "digits.csv.gz"
    expected = subprocess.run([build / "example_fit", digits], check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **env}).stdout
    same = lambda wanted: lambda text: None if text == wanted and text else f"C prints\n{wanted}"
    program = [java, "-Xcheck:jni", "-cp", f"{folder / 'dtg-0.1.0.jar'}:{folder / 'dtg-0.1.0-linux-x86_64.jar'}:{folder / 'examples'}", "Fit"]
    report.case("Fit as in C", [*program, digits], env=env, check=same(expected))
    models = [sys.executable, source / "tests" / "models" / "models_test.py", "Models", *(f"--before={word}" for word in program[:-1])]
    report.case("models as TensorFlow", models, env=env)
    programs.writes_as_c(report, build, [*program[:-1], "Models"], env)
    lines = expected.splitlines(keepends=True)
    with tempfile.TemporaryDirectory() as run:
        report.case("Fit, two epochs", [*program, digits, run, "2"], env=env, check=same("".join(lines[:2])))
        report.case("Fit goes on", [*program, digits, run, "5"], env=env, check=same("".join(lines[2:])))
    binding = source / "bindings" / "java"
    shown = [block for block in re.findall(r"^```java\n(.*?)^```$", (binding / "README.md").read_text(), flags=re.S | re.M) if "Trainer" in block]
    strange = [stands_in(block, next(binding.rglob("Fit.java")).read_text()) for block in shown] or ["no block of a Trainer"]
    report.case("README.md shows what is in Fit", ["echo", *filter(None, strange)], check=lambda text: text.strip() or None)


def examples_of(path):
    """The examples in the Javadoc of a source file, or in a page, each with its line."""
    text = path.read_text()
    if path.suffix == ".md":
        found = ((match, match[1]) for match in re.finditer(r"^```java\n(.*?)^```$", text, flags=re.S | re.M) if "Trainer" not in match[1])
    else:
        found = ((match, re.sub(r"^ *\* ?", "", match[1], flags=re.M)) for match in re.finditer(r"<pre>\{@code\n(.*?)\}</pre>", text, flags=re.S))
    return [(text[: match.start()].count("\n") + 1, code) for match, code in found]


def filled(code):
    """An example with something in the place of each "...", which stands for a head of a loop, a statement, or several with a word on them."""
    return re.sub(r"\.\.\.( \w+ \.\.\.)?", ";", code.replace("(...)", "(; hashCode() > 0; )"))


def javadoc(report, binding, folder):
    """Every example in the Javadoc compiles, as a method of a class that has what it takes for granted."""
    classes, missing = [], []
    for path in [*sorted((binding / "src" / "main" / "java").rglob("*.java")), binding / "README.md"]:
        for line, code in examples_of(path):
            if path.stem not in GIVEN:
                missing.append(f"{path.name}:{line}: an example, for which java_test.py does not say what it takes for granted (GIVEN)")
                continue
            result = RETURNS.get(path.stem, "void")
            classes.append(f"class {path.stem}Line{line} {{\n{GIVEN[path.stem]}\n{result} example() throws Exception {{\n{filled(code)}\n}}\n}}\n")
    scratch = folder / "javadoc-examples"
    scratch.mkdir(exist_ok=True)
    imports = "".join(f"import {package}.*;\n" for package in ("java.util", "java.util.concurrent", "java.util.concurrent.atomic", "org.dtg"))
    (scratch / "Examples.java").write_text(imports + "".join(classes))
    report.case("the Javadoc's examples are known", ["echo", *missing], check=lambda text: text.strip() or None)
    report.case(f"the Javadoc's {len(classes)} examples compile", ["javac", "-proc:none", "-cp", folder / "dtg-0.1.0.jar", "-d", scratch, scratch / "Examples.java"],
                check=lambda _: None if len(classes) >= len(GIVEN) else "there are fewer than classes that have some")


def noexec(report, java, folder, data):
    """Where a folder that must not hold programs can be made, the loader says so."""
    shelf = folder / "noexec"
    shelf.mkdir(exist_ok=True)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec,size=64m", "none", shelf], check=False, capture_output=True).returncode != 0:
        print("left out: the message about noexec, for which a file system must be mounted", flush=True)
        return
    try:
        command = ["sh", "-c", '! "$@"', "sh", java, f"-Dorg.dtg.library.tmpdir={shelf}", "-cp",
                   f"{folder / 'dtg-0.1.0.jar'}:{folder / 'dtg-0.1.0-linux-x86_64.jar'}:{folder / 'examples'}", "Digits", data]
        report.case("a noexec folder is named as such", command, check=lambda text: None if "mounted noexec" in text and str(shelf) in text else "it is not")
    finally:
        subprocess.run(["umount", shelf], check=False)


def linked_in(report, source, folder, env):
    """The natives and the archive inside of a launcher, nothing of dtg loaded."""
    jdk, launcher = env["JAVA_HOME"], folder / "launcher"
    includes = f"-I'{jdk}/include' -I'{jdk}/include/linux'"
    compile_it = (f"cc -std=c11 -D_GNU_SOURCE -DDTG_JNI_STATIC -fno-strict-aliasing {source}/tests/bindings/java_launcher.c {source}/bindings/java/native/*.c {includes}"
                  " $(pkg-config --cflags dtg) $(pkg-config --static --libs dtg | sed 's/-ldtg/-l:libdtg.a/')"
                  f" -L'{jdk}/lib/server' -ljvm -Wl,-rpath,'{jdk}/lib/server' -rdynamic -o {launcher}")
    report.case("a launcher with everything linked in", ["sh", "-c", f'eval "{compile_it}"'], env=env)
    report.case("the launcher runs", [launcher, folder / "classes"], env=env,
                check=lambda text: None if re.fullmatch(r"linked in: 0\.\d+\.\d+\n", text) else "it should print the version and nothing else")


def main():
    prefix, build, source = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    report = Report("bindings_java")
    report.need("javac", JDK)
    report.need("java", JDK)
    report.need("mvn", "apt-get install maven")
    report.need("pkg-config", "apt-get install pkg-config")
    java = shutil.which("java")
    version = major(java)
    if version < 17:
        report.skip("a JDK of 17 or later", JDK)
    folder, binding = build / "java", source / "bindings" / "java"
    data = source / "tests" / "data" / "digits.csv.gz"
    # No LD_LIBRARY_PATH: the jar brings the library along.
    env = {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig"), "JAVA_HOME": home(java), "LD_LIBRARY_PATH": ""}
    maven = ["mvn", "-B", "-q", f"-Ddtg.build.dir={folder}"]
    expected = subprocess.run([build / "example_digits", data], check=True, stdout=subprocess.PIPE, text=True).stdout
    reports = folder / "surefire-reports"
    shutil.rmtree(reports, ignore_errors=True)
    clean = counted(reports)
    if report.case(f"JDK {version}: build, tests under -Xcheck:jni", [*maven, "-Prelease", "-Ddtg.test.args=-Xcheck:jni", "package"], cwd=binding, env=env, check=clean) is None:
        report.finish()
    for jar in ("", "-linux-x86_64", "-sources", "-javadoc"):
        report.case(f"the jar dtg-0.1.0{jar}.jar", ["test", "-s", folder / f"dtg-0.1.0{jar}.jar"])
    report.case("only JNI_* is exported", ["nm", "-D", "--defined-only", folder / "native/META-INF/native/linux-x86_64/libdtg_jni.so"],
                check=lambda text: None if all(line.split()[-1].startswith("JNI_") for line in text.splitlines()) else text)
    report.case("compile the examples", ["javac", "-Xlint:all", "-Werror", "-p", folder / "dtg-0.1.0.jar", "--add-modules", "org.dtg", "-d", folder / "examples",
                *sorted((binding / "examples").rglob("*.java"))])
    javadoc(report, binding, folder)
    use(report, f"JDK {version}", java, folder, [], data, expected)
    fit(report, java, folder, build, source)
    noexec(report, java, folder, data)
    linked_in(report, source, folder, env)
    other = other_jvm(version)
    if other is None:
        print(f"left out: a second JDK, there is only {version}; to install one: {JDK}", flush=True)
        report.finish()
    newer, other_java = other
    deny = ["--illegal-native-access=deny"] if newer >= 24 else []
    arguments = " ".join(["-Xcheck:jni", *deny, *(deny and ["--enable-native-access=ALL-UNNAMED"])])
    shutil.rmtree(reports, ignore_errors=True)
    report.case(f"JDK {newer}: tests under {arguments}", [*maven, f"-Djvm={other_java}", f"-Ddtg.test.args={arguments}", "surefire:test"], cwd=binding, env=env, check=clean)
    use(report, f"JDK {newer}", other_java, folder, deny, data, expected)
    report.finish()


if __name__ == "__main__":
    main()
