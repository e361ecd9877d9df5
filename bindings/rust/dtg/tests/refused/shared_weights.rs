//! error E0277. One thread at a time uses a set of weights.
pub fn f(weights: &dtg::Weights) {
    std::thread::scope(|scope| {
        scope.spawn(|| weights.len());
    });
}
