//! error E0502. A run that writes into a tensor has it alone.
pub fn f(session: &dtg::Session, value: dtg::Value, tensor: &mut dtg::Tensor) {
    let run = session.run().fetch_into(value, tensor);
    drop(tensor.as_slice::<f32>());
    drop(run.call());
}
