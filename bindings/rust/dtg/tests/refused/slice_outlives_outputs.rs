//! error E0515. Elements are borrowed from the outputs of their run.
pub fn f(session: &dtg::Session, value: dtg::Value) -> &'static [f32] {
    session.run().fetch(value).call().unwrap().slice::<f32>(0).unwrap()
}
