//! error E0277. One thread at a time uses a data set.
pub fn f(data: &dtg::Dataset) {
    std::thread::scope(|scope| {
        scope.spawn(|| data.cardinality());
    });
}
