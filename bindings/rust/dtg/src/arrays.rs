//! Tensors as `ndarray` arrays and the other way round (feature `ndarray`). Views borrow the tensor, so they cannot outlive it.

use ndarray::{Array, ArrayBase, ArrayView, ArrayViewD, ArrayViewMutD, Data, Dimension, IxDyn, ShapeError};

use crate::dtype::Element;
use crate::error::{Error, ErrorKind, Result};
use crate::tensor::Tensor;

fn refused(error: &ShapeError) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("a tensor as an array: {error}"))
}

impl Tensor {
    /// The elements as an array, without a copy. Errors: `InvalidArgument` when they are of another type.
    ///
    /// ```
    /// # use dtg::Tensor;
    /// let tensor = Tensor::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
    /// assert_eq!(tensor.view::<f32>()?[[1, 0]], 3.0);
    /// # Ok::<(), dtg::Error>(())
    /// ```
    pub fn view<T: Element>(&self) -> Result<ArrayViewD<'_, T>> {
        ArrayView::from_shape(IxDyn(&self.dims()), self.as_slice()?).map_err(|error| refused(&error))
    }

    /// The elements as an array for writing. Errors: as [`Tensor::as_mut_slice`].
    pub fn view_mut<T: Element>(&mut self) -> Result<ArrayViewMutD<'_, T>> {
        let dims = self.dims();
        ArrayViewMutD::from_shape(IxDyn(&dims), self.as_mut_slice()?).map_err(|error| refused(&error))
    }

    /// A tensor of an array's elements, which are copied in row-major order whatever the array's is.
    pub fn from_array<T: Element, S: Data<Elem = T>, D: Dimension>(array: &ArrayBase<S, D>) -> Result<Self> {
        match array.as_slice() {
            Some(elements) => Self::from_slice(array.shape(), elements),
            None => Self::from_vec(array.shape(), array.iter().copied().collect()),
        }
    }

    /// A tensor around the elements of an array, which are not copied where they lie in row-major order.
    pub fn from_owned_array<T: Element, D: Dimension>(array: Array<T, D>) -> Result<Self> {
        if !array.is_standard_layout() {
            return Self::from_array(&array);
        }
        let dims = array.shape().to_vec();
        let (mut elements, offset) = array.into_raw_vec_and_offset();
        elements.drain(..offset.unwrap_or(0));
        elements.truncate(dims.iter().product());
        Self::from_vec(&dims, elements)
    }
}
