//! error E0277. One thread at a time uses an event writer.
pub fn f(writer: &mut dtg::EventWriter) {
    let writer = std::sync::Arc::new(writer);
    fn sync<T: Sync>(_: T) {}
    sync(writer);
}
