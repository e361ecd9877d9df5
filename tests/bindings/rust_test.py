"""The Rust binding on an installed dtg: declarations against headers, formatting, lints in every combination of features,
documentation, all tests, and the examples.

    tests/bindings/rust_test.py PREFIX BUILD_DIR SOURCE_DIR

What cargo builds goes to BUILD_DIR/rust. The crates that the binding's features need come from the registry, once."""

import itertools
import pathlib
import sys

from report import Report

FEATURES = ["half", "ndarray"]


def combinations():
    """Every set of features but the full one, as cargo takes it."""
    for size in range(len(FEATURES)):
        for chosen in itertools.combinations(FEATURES, size):
            yield ",".join(chosen)


def main():
    prefix, build, source = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    crates = source / "bindings" / "rust"
    report = Report("bindings_rust")
    report.need("cargo", "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh")
    environment = {
        "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig"),
        "LD_LIBRARY_PATH": str(prefix / "lib"),
        "CARGO_TARGET_DIR": str(build / "rust"),
        "CARGO_TERM_COLOR": "never",
        # Line tables are enough for the backtrace of a test that failed, and quicker to link.
        "CARGO_PROFILE_DEV_DEBUG": "line-tables-only",
        "RUSTDOCFLAGS": "-D warnings",
        "DTG_TEST_DATA": str(source / "tests" / "data"),
    }

    def case(name, *command, **options):
        return report.case(f"rust: {name}", command, cwd=crates, env=environment, **options)

    case("rustfmt", "cargo", "fmt", "--all", "--check")
    case("clippy, all features", "cargo", "clippy", "-q", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings")
    for features in combinations():
        case(f"clippy, features [{features}]", "cargo", "clippy", "-q", "-p", "dtg", "--no-default-features", "--features", features, "--", "-D", "warnings")
    case("tests and examples", "cargo", "test", "-q", "--all-features", "--all-targets")
    case("examples in the documentation", "cargo", "test", "-q", "--all-features", "--doc")
    case("documentation", "cargo", "doc", "-q", "--no-deps", "--all-features")
    digits = source / "tests" / "data" / "digits.csv.gz"
    ours = case("digits", "cargo", "run", "-q", "--all-features", "--example", "digits", digits)
    theirs = build / "example_digits"
    if ours is not None and theirs.exists():
        report.case("rust: digits prints what C prints", [theirs, digits], env=environment, check=lambda text: None if text == ours else f"C prints\n{text}Rust\n{ours}")
    report.finish()


if __name__ == "__main__":
    main()
