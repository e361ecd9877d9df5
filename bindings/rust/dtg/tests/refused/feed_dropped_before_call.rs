//! error E0505. A tensor that is fed is there until the run has ended.
pub fn f(session: &dtg::Session, value: dtg::Value, tensor: dtg::Tensor) {
    let run = session.run().feed(value, &tensor).fetch(value);
    drop(tensor);
    drop(run.call());
}
