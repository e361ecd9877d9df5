//! error E0382. A transform takes the data set along, also when it fails.
pub fn f(data: dtg::Dataset) {
    let batched = data.batch(0, false);
    drop((batched, data.cardinality()));
}
