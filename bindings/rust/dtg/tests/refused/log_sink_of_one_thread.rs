//! error E0277. A log sink is called from any thread.
pub fn f(lines: std::rc::Rc<()>) {
    drop(dtg::RuntimeOptions::new().log(dtg::LogLevel::Info, move |_, _, _| drop(lines.clone())));
}
