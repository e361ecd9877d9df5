//! Tensors as `ndarray` arrays and the other way round (features `ndarray` and `ndarray_016`). Views borrow the tensor, so they cannot
//! outlive it.

#[cfg(feature = "ndarray")]
use ndarray::{Array, ArrayBase, ArrayViewD, ArrayViewMutD, Data, Dimension};

use crate::dtype::Element;
use crate::error::{Error, ErrorKind, Result};
use crate::tensor::Tensor;

/// Conversions for one version of the crate: a reference to an array is copied, an array itself where it must be; a view of a tensor is no
/// copy, an array of its own is one.
macro_rules! arrays {
    ($feature:literal, $module:ident, $ndarray:ident) => {
        #[cfg(feature = $feature)]
        mod $module {
            use $ndarray::{Array, ArrayBase, ArrayD, ArrayView, ArrayViewD, ArrayViewMutD, Data, Dimension, IxDyn, ShapeError};

            use super::*;

            fn refused(error: &ShapeError) -> Error {
                Error::found(ErrorKind::InvalidArgument, format!("a tensor as an array: {error}"))
            }

            impl<'t, T: Element> TryFrom<&'t Tensor> for ArrayViewD<'t, T> {
                type Error = Error;
                fn try_from(tensor: &'t Tensor) -> Result<Self> {
                    ArrayView::from_shape(IxDyn(&tensor.dims()), tensor.as_slice()?).map_err(|error| refused(&error))
                }
            }

            impl<T: Element> TryFrom<&Tensor> for ArrayD<T> {
                type Error = Error;
                fn try_from(tensor: &Tensor) -> Result<Self> {
                    Self::from_shape_vec(IxDyn(&tensor.dims()), tensor.as_slice()?.to_vec()).map_err(|error| refused(&error))
                }
            }

            impl<'t, T: Element> TryFrom<&'t mut Tensor> for ArrayViewMutD<'t, T> {
                type Error = Error;
                fn try_from(tensor: &'t mut Tensor) -> Result<Self> {
                    let dims = tensor.dims();
                    ArrayViewMutD::from_shape(IxDyn(&dims), tensor.as_mut_slice()?).map_err(|error| refused(&error))
                }
            }

            impl<T: Element, S: Data<Elem = T>, D: Dimension> TryFrom<&ArrayBase<S, D>> for Tensor {
                type Error = Error;
                fn try_from(array: &ArrayBase<S, D>) -> Result<Self> {
                    match array.as_slice() {
                        Some(elements) => Self::from_slice(array.shape(), elements),
                        None => Self::from_vec(array.shape(), array.iter().copied().collect()),
                    }
                }
            }

            impl<T: Element, D: Dimension> TryFrom<Array<T, D>> for Tensor {
                type Error = Error;
                fn try_from(array: Array<T, D>) -> Result<Self> {
                    if !array.is_standard_layout() {
                        return Self::try_from(&array);
                    }
                    let dims = array.shape().to_vec();
                    let (mut elements, offset) = array.into_raw_vec_and_offset();
                    elements.drain(..offset.unwrap_or(0));
                    elements.truncate(dims.iter().product());
                    Self::from_vec(&dims, elements)
                }
            }
        }
    };
}

arrays! { "ndarray", newest, ndarray }
arrays! { "ndarray_016", before, ndarray_016 }

/// Short forms of the conversions, for the newest version.
#[cfg(feature = "ndarray")]
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
        self.try_into()
    }

    /// The elements as an array for writing. Errors: as [`Tensor::as_mut_slice`].
    pub fn view_mut<T: Element>(&mut self) -> Result<ArrayViewMutD<'_, T>> {
        self.try_into()
    }

    /// A tensor of an array's elements, which are copied in row-major order whatever the array's is.
    pub fn from_array<T: Element, S: Data<Elem = T>, D: Dimension>(array: &ArrayBase<S, D>) -> Result<Self> {
        array.try_into()
    }

    /// A tensor around the elements of an array, which are not copied where they lie in row-major order.
    pub fn from_owned_array<T: Element, D: Dimension>(array: Array<T, D>) -> Result<Self> {
        array.try_into()
    }
}
