//! error E0277. One thread at a time uses a trainer; others ask its stopper.
pub fn f(trainer: &dtg::Trainer) {
    std::thread::scope(|scope| {
        scope.spawn(|| trainer.summary());
    });
}
