//! error E0382. A session that is gone cannot be used.
pub fn f(session: dtg::Session) {
    drop(session);
    drop(session.devices());
}
