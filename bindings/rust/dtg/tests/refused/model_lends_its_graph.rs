//! error E0596. A model keeps its graph: nobody swaps it for another one.
pub fn f(model: &mut dtg::Model, other: &mut dtg::Graph) {
    std::mem::swap(&mut **model, other);
}
