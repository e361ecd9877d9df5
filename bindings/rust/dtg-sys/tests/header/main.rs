//! Holds the declarations against the headers. A C program is written that asserts, for every struct, its size and the offset and
//! size of each field, for every constant its number, and that declares every function once more as the Rust side calls it: a C
//! compiler refuses it where anything differs. Single-threaded; needs a C compiler (`CC`, otherwise `cc`).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[rustfmt::skip]
mod layout;

const INCLUDE: &str = env!("DTG_INCLUDE", "dtg-sys found libdtg without its headers; set DTG_INCLUDE_DIR");

/// The assertions as C.
fn program() -> String {
    let mut text = String::from("#include <dtg/dtg.h>\n");
    for (name, size, fields) in layout::LAYOUTS {
        let _ = writeln!(text, "_Static_assert(sizeof({name}) == {size}, \"size of {name}\");");
        for (field, offset, width) in *fields {
            let _ = writeln!(text, "_Static_assert(offsetof({name}, {field}) == {offset}, \"offset of {name}.{field}\");");
            let _ = writeln!(text, "_Static_assert(sizeof((({name} *)0)->{field}) == {width}, \"size of {name}.{field}\");");
        }
    }
    for (name, number) in layout::NUMBERS {
        // SIZE_MAX does not fit a C literal without its suffix.
        let suffix = if *number > i64::MAX as i128 { "u" } else { "" };
        let _ = writeln!(text, "_Static_assert({name} == {number}{suffix}, \"{name}\");");
    }
    for (_, address, prototype) in layout::PROTOTYPES {
        assert!(!address.is_null());
        let _ = writeln!(text, "{prototype};");
    }
    text
}

/// What a C compiler says about a program; empty when it agrees.
fn complaints(text: &str) -> String {
    use std::io::Write as _;
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut child = Command::new(&compiler)
        .args(["-std=c11", "-fsyntax-only", "-Werror", "-I", INCLUDE, "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("starting the C compiler {compiler}: {error}"));
    child.stdin.take().expect("a pipe was asked for").write_all(text.as_bytes()).expect("the compiler reads its input");
    let output = child.wait_with_output().expect("the compiler ends");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn declarations_are_those_of_the_headers() {
    let said = complaints(&program());
    assert!(said.is_empty(), "bindings.rs is not what the headers say; run bindings/generate/main.py:\n{said}");
}

/// The test above would also pass if the compiler looked at nothing.
#[test]
fn a_wrong_declaration_is_found() {
    for (right, wrong) in [
        ("_Static_assert(sizeof(dtg_attr) == ", "_Static_assert(sizeof(dtg_attr) == 1"),
        ("_Static_assert(DTG_F64 == 2", "_Static_assert(DTG_F64 == 3"),
        ("int64_t dtg_tensor_count(", "int32_t dtg_tensor_count("),
        ("offsetof(dtg_run_args, timeout_ns) == ", "offsetof(dtg_run_args, timeout_ns) == 1"),
    ] {
        let text = program();
        assert!(text.contains(right), "{right}");
        assert!(!complaints(&text.replacen(right, wrong, 1)).is_empty(), "not found: {wrong}");
    }
}

/// The headers of the ABI; sugar.h and what goes with it is code over them, not exported.
fn headers() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(Path::new(INCLUDE).join("dtg")).expect("the headers");
    let files = folder.map(|entry| entry.expect("an entry").path());
    files.filter(|file| !file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("sugar"))).collect()
}

/// Every function that a header exports is declared: one that was added to the headers alone is found here.
#[test]
fn no_function_is_missing() {
    let mut exported = BTreeSet::new();
    for file in headers() {
        let text = std::fs::read_to_string(&file).expect("a header");
        // A line such as `DTG_ERR dtg_graph_create(...`, not a comment that names one.
        for line in text.lines().filter(|line| line.starts_with("DTG_ERR ") || line.starts_with("DTG_API ")) {
            let head = line.split('(').next().unwrap_or_default();
            let name = head.rsplit([' ', '*']).next().unwrap_or_default();
            exported.insert(name.to_owned());
        }
    }
    let declared: BTreeSet<String> = layout::PROTOTYPES.iter().map(|(name, _, _)| (*name).to_owned()).collect();
    assert!(exported.len() > 100, "only {} functions were found in {INCLUDE}", exported.len());
    assert_eq!(exported, declared);
}

#[test]
fn the_library_is_of_the_version_that_was_declared() {
    // SAFETY: takes nothing, touches nothing.
    let loaded = unsafe { dtg_sys::dtg_abi_version() };
    assert_eq!(loaded, dtg_sys::DTG_VERSION_MAJOR << 16 | dtg_sys::DTG_VERSION_MINOR);
}
