//! error E0277. Only plain elements go into tensors.
pub fn f() {
    drop(dtg::Tensor::from_slice(&[1], &[String::new()]));
}
