//! What a run gives back: tensors, and views into them that cannot outlive them. Plain data; any thread.

use crate::dtype::Element;
use crate::error::{Error, ErrorKind, Result};
use crate::tensor::Tensor;

/// The fetched tensors of a run, in the order of the fetches.
#[derive(Debug)]
pub struct Outputs(Vec<Tensor>);

impl Outputs {
    pub(crate) fn new(tensors: Vec<Tensor>) -> Self {
        Self(tensors)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing was fetched.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tensor `i`. Errors: `OutOfRange`.
    pub fn tensor(&self, i: usize) -> Result<&Tensor> {
        self.0
            .get(i)
            .ok_or_else(|| Error::found(ErrorKind::OutOfRange, format!("output {i} of a run that fetched {}", self.0.len())))
    }

    /// The elements of tensor `i`. Errors: `OutOfRange`, `InvalidArgument` (another type).
    pub fn slice<T: Element>(&self, i: usize) -> Result<&[T]> {
        of_output(i, self.tensor(i)?.as_slice())
    }

    /// The one element of tensor `i`. Errors: `OutOfRange`, `InvalidArgument` (another type, more elements).
    pub fn scalar<T: Element>(&self, i: usize) -> Result<T> {
        of_output(i, self.tensor(i)?.to_scalar())
    }

    /// The tensors.
    pub fn into_vec(self) -> Vec<Tensor> {
        self.0
    }
}

fn of_output<T>(i: usize, read: Result<T>) -> Result<T> {
    read.map_err(|error| error.within(&format!("output {i} of the run")))
}

impl IntoIterator for Outputs {
    type Item = Tensor;
    type IntoIter = std::vec::IntoIter<Tensor>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Outputs {
    type Item = &'a Tensor;
    type IntoIter = std::slice::Iter<'a, Tensor>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
