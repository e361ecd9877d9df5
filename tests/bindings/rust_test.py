"""The Rust binding on an installed dtg: declarations against headers, formatting, lints with each feature alone,
documentation, all tests, the examples beside their originals in C, linked dynamically and statically.

    tests/bindings/rust_test.py PREFIX BUILD_DIR SOURCE_DIR

What cargo builds goes to BUILD_DIR/rust. The crates that the binding's features need come from the registry, once."""

import hashlib
import sys

import programs
from report import Report

FEATURES = ["half", "ndarray", "ndarray_016"]


def combinations():
    """No feature, and each alone, as cargo takes it; all together is what everything else is done with."""
    return ["", *FEATURES]


def names_what_is_missing(text):
    wanted = ["dtg-sys: DTG_LIB_DIR is", "there is no libdtg.so in it"]
    return None if all(words in text for words in wanted) else "the reason and the next step are not in the output"


def trains_as_c_does(case, prefix, build, worker, digits):
    """A synchronous job of two workers gives the same weights from Rust as from C."""
    weights = {}
    for language, program in ("Rust", worker), ("C", build / "example_sync_worker"):
        if not program.exists():
            return
        file = build / "rust" / f"{language}.safetensors"
        command = [prefix / "bin" / "dtg", "run", "--local", "--ps", "1", "--workers", "2", "--", program, digits, file]
        check = lambda _, language=language, file=file: compare(weights, language, file)
        case(f"a synchronous job, {language}", *command, timeout=60, check=check)


def compare(weights, language, file):
    weights[language] = hashlib.sha256(file.read_bytes()).hexdigest()
    return None if len(set(weights.values())) == 1 else f"the weights differ: {weights}"


def prints_what_c_prints(report, name, ours, command, environment):
    if ours is None or not command[0].exists():
        return
    check = lambda text: None if text == ours else f"C prints\n{text}Rust\n{ours}"
    report.case(f"rust: {name} prints what C prints", command, env=environment, check=check)


def main():
    prefix, build, source = programs.arguments()
    crates = source / "bindings" / "rust"
    report = Report("bindings_rust")
    report.need("cargo", programs.INSTALL["rust"])
    report.need("cargo-clippy", "rustup component add clippy")
    report.need("rustfmt", "rustup component add rustfmt")
    environment = {
        **programs.environment(prefix),
        "CARGO_TARGET_DIR": str(build / "rust"),
        # Line tables are enough for the backtrace of a test that failed, and quicker to link.
        "CARGO_PROFILE_DEV_DEBUG": "line-tables-only",
        "RUSTDOCFLAGS": "-D warnings",
        "DTG_TEST_DATA": str(source / "tests" / "data"),
    }

    def case(name, *command, extra=None, **options):
        return report.case(f"rust: {name}", command, cwd=crates, env={**environment, **(extra or {})}, **options)

    case("rustfmt", "cargo", "fmt", "--all", "--check")
    case("clippy, all features", "cargo", "clippy", "-q", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings")
    for features in combinations():
        case(f"clippy, features [{features}]", "cargo", "clippy", "-q", "-p", "dtg", "--no-default-features", "--features", features, "--", "-D", "warnings")
    case("tests and examples", "cargo", "test", "-q", "--all-features", "--all-targets")
    # With --all-targets cargo leaves an example's tests under a name of its own, and not the program.
    case("the programs of the examples", "cargo", "build", "-q", "--all-features", "--examples")
    case("examples in the documentation", "cargo", "test", "-q", "--all-features", "--doc")
    case("documentation", "cargo", "doc", "-q", "--no-deps", "--all-features")
    digits = source / "tests" / "data" / "digits.csv.gz"
    ours = case("digits", "cargo", "run", "-q", "--all-features", "--example", "digits", digits)
    prints_what_c_prints(report, "digits", ours, [build / "example_digits", digits], environment)
    fit = case("fit", "cargo", "run", "-q", "--all-features", "--example", "fit", digits)
    prints_what_c_prints(report, "fit", fit, [build / "example_fit", digits], environment)
    case("models as TensorFlow", sys.executable, source / "tests" / "models" / "models_test.py", build / "rust" / "debug" / "examples" / "models")
    programs.writes_as_c(report, build, [build / "rust" / "debug" / "examples" / "models"], environment)
    trains_as_c_does(case, prefix, build, build / "rust" / "debug" / "examples" / "sync_worker", digits)
    # In a folder of its own, for what is linked is built anew when these variables change.
    fixed = {"DTG_LIB_DIR": str(prefix / "lib"), "DTG_STATIC": "1", "CARGO_TARGET_DIR": str(build / "rust" / "static"), "LD_LIBRARY_PATH": ""}
    same = lambda text: None if text == ours else f"it prints\n{text}"
    case("digits, linked statically", "cargo", "run", "-q", "--example", "digits", digits, extra=fixed, check=same)
    missing = {"DTG_LIB_DIR": str(source), "CARGO_TARGET_DIR": str(build / "rust" / "missing")}
    case("without a library", "sh", "-c", "! cargo build -q -p dtg-sys", extra=missing, check=names_what_is_missing)
    report.finish()


if __name__ == "__main__":
    main()
