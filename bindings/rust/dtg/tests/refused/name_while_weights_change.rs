//! error E0502. Names are valid until the set changes.
pub fn f(weights: &mut dtg::Weights, tensor: &dtg::Tensor) -> usize {
    let names = weights.names();
    drop(weights.set("a", tensor));
    names.len()
}
