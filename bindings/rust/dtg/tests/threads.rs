//! What the compiler must allow and refuse: which types go between threads, and that nothing outlives what it borrows. The table is told
//! by the types themselves; each program in `refused/` must fail to compile, with the error code that its first line names.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use dtg::*;

struct Probe<T>(PhantomData<T>);

/// The answer for types that are not Sync: an associated constant of the type itself, where it has one, goes before a trait's.
trait NotSync {
    const SYNC: bool = false;
}
impl<T> NotSync for Probe<T> {}
impl<T: Sync> Probe<T> {
    const SYNC: bool = true;
}

/// Everything may move to another thread: for a type that may not, this does not compile.
impl<T: Send> Probe<T> {
    const SEND: bool = true;
}

macro_rules! table {
    ($($type:ty),*) => { [$((stringify!($type), Probe::<$type>::SEND, Probe::<$type>::SYNC)),*] };
}

/// dtg/base.h, convention 5.
#[test]
fn the_thread_table_is_that_of_the_headers() {
    for (name, send, sync) in
        table!(Runtime, Session, Callable, Server, Cluster, Tensor, Graph, Error, Run, Outputs, Value, Stopper)
    {
        assert!(send && sync, "{name} is shared");
    }
    for (name, send, sync) in table!(Model, Trainer, Fitting<'static>, Dataset, Weights, EventWriter, Checkpoint) {
        assert!(send && !sync, "{name} is single: Send {send}, Sync {sync}");
    }
    // They borrow their model, and stay with it.
    for (name, sync) in [("Strategy", Probe::<Strategy<'static>>::SYNC), ("Mesh", Probe::<Mesh<'static>>::SYNC)] {
        assert!(!sync, "{name} is single");
    }
}

/// The crate as cargo has just built it for this test, and where what it needs lies.
fn library() -> (PathBuf, PathBuf) {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let is_ours = |path: &Path| {
        path.file_name().unwrap().to_str().unwrap().starts_with("libdtg-") && path.extension().is_some_and(|end| end == "rlib")
    };
    let built = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| is_ours(path));
    (files.max_by_key(built).expect("libdtg-*.rlib beside the test"), folder)
}

/// What the compiler says about a program; None when it accepts it.
fn complaint(program: &Path) -> Option<String> {
    let (library, folder) = library();
    let out = std::env::temp_dir().join(format!("dtg-rust-refused-{}.rmeta", std::process::id()));
    let result = Command::new(std::env::var("RUSTC").unwrap_or("rustc".into()))
        .args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "-A", "warnings", "-o"])
        .arg(&out)
        .arg("--extern")
        .arg(format!("dtg={}", library.display()))
        .args(["-L", &format!("dependency={}", folder.display())])
        .arg(program)
        .output()
        .expect("rustc");
    drop(std::fs::remove_file(out));
    (!result.status.success()).then(|| String::from_utf8_lossy(&result.stderr).into_owned())
}

#[test]
fn what_must_not_compile_does_not() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refused");
    let mut checked = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let program = entry.unwrap().path();
        let text = std::fs::read_to_string(&program).unwrap();
        let expected =
            text.split("error ").nth(1).and_then(|rest| rest.split(&['.', ' '][..]).next()).expect("the first line names an error");
        let complaint = complaint(&program);
        if expected == "none:" {
            assert_eq!(complaint, None, "{}", program.display());
        } else {
            let complaint = complaint.unwrap_or_else(|| panic!("{} compiles", program.display()));
            let codes: Vec<_> = complaint.lines().filter(|line| line.starts_with("error[")).collect();
            assert!(!codes.is_empty() && codes.iter().all(|code| code.contains(expected)), "{}: {complaint}", program.display());
        }
        checked += 1;
    }
    assert!(checked >= 10, "{checked}");
}
