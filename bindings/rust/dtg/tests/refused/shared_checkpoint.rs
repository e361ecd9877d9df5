//! error E0277. One thread at a time uses a checkpoint.
pub fn f(sets: &dtg::Checkpoint) {
    std::thread::scope(|scope| {
        scope.spawn(|| sets.status().is_ok());
    });
}
