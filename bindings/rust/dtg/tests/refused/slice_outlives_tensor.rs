//! error E0505. Elements are borrowed from their tensor.
pub fn f(tensor: dtg::Tensor) -> dtg::Result<f32> {
    let elements = tensor.as_slice::<f32>()?;
    drop(tensor);
    Ok(elements[0])
}
