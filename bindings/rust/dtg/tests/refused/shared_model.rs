//! error E0277. One thread at a time uses a model.
pub fn f(model: &dtg::Model) {
    std::thread::scope(|scope| {
        scope.spawn(|| model.variable_count());
    });
}
