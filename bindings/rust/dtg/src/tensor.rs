//! Tensors: element type, shape and plain row-major memory. Shared between threads for reading; only the one owner of a tensor that
//! nobody else was given may write.

use std::ffi::c_void;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use dtg_sys as sys;

use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Handle;

/// A value: an array of elements of one type.
///
/// Cloning shares the elements. They can be written while this is the only owner: not after a clone, nor after the tensor became
/// part of a graph, a data set, a set of weights or an asynchronous run, all of which share it. [`Tensor::copy`] makes a new one.
///
/// ```
/// use dtg::Tensor;
///
/// let mut tensor = Tensor::from_slice(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// tensor.as_mut_slice::<f32>()?[5] = 7.0;
/// assert_eq!(tensor.dims(), [2, 3]);
/// assert_eq!(tensor.as_slice::<f32>()?, [1.0, 2.0, 3.0, 4.0, 5.0, 7.0]);
/// assert!(tensor.as_slice::<f64>().is_err());
/// # Ok::<(), dtg::Error>(())
/// ```
pub struct Tensor {
    handle: Handle<sys::dtg_tensor>,
    /// Somebody else may read the elements from now on, and there is no telling until when.
    shared: AtomicBool,
}

impl Tensor {
    pub(crate) fn adopt(handle: Handle<sys::dtg_tensor>) -> Self {
        Self { handle, shared: AtomicBool::new(false) }
    }

    /// One whose elements belong to others as well.
    pub(crate) fn adopt_shared(handle: Handle<sys::dtg_tensor>) -> Self {
        Self { handle, shared: AtomicBool::new(true) }
    }

    /// A tensor of these elements, which are copied. Errors: `InvalidArgument` when they are not as many as the dimensions say.
    pub fn from_slice<T: Element>(dims: &[usize], elements: &[T]) -> Result<Self> {
        let dims = counted(dims, T::DTYPE, elements.len())?;
        // SAFETY: the bytes of the slice are read before the call returns (no free function), and dims outlive it.
        let handle = unsafe {
            Handle::create(|out| {
                let data = elements.as_ptr().cast_mut().cast::<c_void>();
                sys::dtg_tensor_create(
                    T::DTYPE.0,
                    dims.as_ptr(),
                    dims.len(),
                    data,
                    size_of_val(elements),
                    None,
                    std::ptr::null_mut(),
                    out,
                )
            })
        }?;
        Ok(Self::adopt(handle))
    }

    /// A tensor around the elements of a vector, which are not copied: they are freed with the tensor. Errors: as [`Tensor::from_slice`].
    pub fn from_vec<T: Element>(dims: &[usize], elements: Vec<T>) -> Result<Self> {
        unsafe extern "C" fn free<T>(_data: *mut c_void, _nbytes: usize, user: *mut c_void) {
            // SAFETY: the vector that from_vec leaked, given back once. Elements have no destructors that could do anything.
            drop(unsafe { Box::from_raw(user.cast::<Vec<T>>()) });
        }
        let dims = counted(dims, T::DTYPE, elements.len())?;
        let nbytes = size_of_val(elements.as_slice());
        let owner = Box::into_raw(Box::new(elements));
        // SAFETY: the elements live until `free` is called, nobody else can reach them, and T may be freed on any thread.
        let made = unsafe {
            Handle::create(|out| {
                let data = (*owner).as_mut_ptr().cast::<c_void>();
                sys::dtg_tensor_create(T::DTYPE.0, dims.as_ptr(), dims.len(), data, nbytes, Some(free::<T>), owner.cast(), out)
            })
        };
        if made.is_err() {
            // SAFETY: on failure the free function is not called (dtg/tensor.h), so the vector is still ours.
            drop(unsafe { Box::from_raw(owner) });
        }
        made.map(Self::adopt)
    }

    /// A tensor of strings, of any bytes, which are copied. It never changes.
    ///
    /// ```
    /// use dtg::Tensor;
    ///
    /// let tensor = Tensor::from_strings(&[2], &["one", "two"])?;
    /// assert_eq!(tensor.to_strings()?, ["one", "two"]);
    /// # Ok::<(), dtg::Error>(())
    /// ```
    pub fn from_strings<S: AsRef<[u8]>>(dims: &[usize], strings: &[S]) -> Result<Self> {
        let dims = counted(dims, DType::STRING, strings.len())?;
        let pointers: Vec<_> = strings.iter().map(|s| s.as_ref().as_ptr().cast::<std::ffi::c_char>()).collect();
        let lengths: Vec<usize> = strings.iter().map(|s| s.as_ref().len()).collect();
        // SAFETY: one pointer and length for each element, all of which outlive the call, which copies.
        unsafe {
            Handle::create(|out| {
                sys::dtg_tensor_create_strings(dims.as_ptr(), dims.len(), pointers.as_ptr(), lengths.as_ptr(), out)
            })
        }
        .map(Self::adopt)
    }

    /// The bytes of string `i`, row by row. Errors: `InvalidArgument` (not of strings), `OutOfRange`.
    pub fn string_bytes(&self, i: usize) -> Result<&[u8]> {
        if self.dtype() != DType::STRING {
            return Err(Error::found(ErrorKind::InvalidArgument, format!("a string of a tensor of {}", self.dtype())));
        }
        if i >= self.count() {
            return Err(Error::found(ErrorKind::OutOfRange, format!("string {i} of {}", self.count())));
        }
        let mut nbytes = 0;
        // SAFETY: an open tensor of strings that has this one; they never change, and live as long as the borrow.
        unsafe {
            let data = sys::dtg_tensor_string(self.raw(), i, &mut nbytes);
            Ok(if nbytes == 0 { &[] } else { std::slice::from_raw_parts(data.cast(), nbytes) })
        }
    }

    /// All strings. Errors: `InvalidArgument` where they are no UTF-8, or the tensor is not of strings.
    pub fn to_strings(&self) -> Result<Vec<String>> {
        (0..self.count())
            .map(|i| {
                let bytes = self.string_bytes(i)?;
                String::from_utf8(bytes.to_vec())
                    .map_err(|e| Error::found(ErrorKind::InvalidArgument, format!("string {i}: {e}; take string_bytes")))
            })
            .collect()
    }

    /// A tensor without dimensions.
    pub fn scalar<T: Element>(value: T) -> Result<Self> {
        Self::from_slice(&[], &[value])
    }

    /// A tensor of zeros.
    pub fn zeros(dtype: DType, dims: &[usize]) -> Result<Self> {
        let dims = signed(dims)?;
        // SAFETY: dims outlive the call.
        unsafe { Handle::create(|out| sys::dtg_tensor_allocate(dtype.0, dims.as_ptr(), dims.len(), out)) }.map(Self::adopt)
    }

    /// A new tensor with the same elements, owned alone.
    pub fn copy(&self) -> Result<Self> {
        if self.dtype() == DType::STRING {
            let strings = (0..self.count()).map(|i| self.string_bytes(i)).collect::<Result<Vec<_>>>()?;
            return Self::from_strings(&self.dims(), &strings);
        }
        let mut copy = Self::zeros(self.dtype(), &self.dims())?;
        copy.as_mut_bytes()?.copy_from_slice(self.as_bytes());
        Ok(copy)
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        // SAFETY: an open tensor.
        DType(unsafe { sys::dtg_tensor_dtype(self.raw()) })
    }

    /// The sizes of the dimensions; empty for a scalar.
    pub fn dims(&self) -> Vec<usize> {
        // SAFETY: an open tensor; every index is below its rank.
        unsafe {
            (0..sys::dtg_tensor_rank(self.raw()))
                .map(|i| usize::try_from(sys::dtg_tensor_dim(self.raw(), i)).unwrap_or(0))
                .collect()
        }
    }

    /// The number of elements.
    pub fn count(&self) -> usize {
        // SAFETY: an open tensor.
        usize::try_from(unsafe { sys::dtg_tensor_count(self.raw()) }).unwrap_or(0)
    }

    /// The bytes of the elements; empty for types without plain memory.
    pub fn as_bytes(&self) -> &[u8] {
        let mut nbytes = 0;
        // SAFETY: the memory is the tensor's for as long as the borrow, and nobody writes meanwhile: writing takes a mutable borrow.
        unsafe {
            let data = sys::dtg_tensor_data(self.raw(), &mut nbytes);
            // An empty tensor may give a pointer that must not be read.
            if nbytes == 0 { &[] } else { std::slice::from_raw_parts(data.cast(), nbytes) }
        }
    }

    /// The elements. Errors: `InvalidArgument` when they are of another type.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        let bytes = self.as_bytes();
        self.expect::<T>(bytes)?;
        if bytes.is_empty() {
            return Ok(&[]);
        }
        // SAFETY: the type is T, the bytes are values of it, and C aligns them to the size of an element.
        Ok(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>()) })
    }

    /// The one element of a scalar or of any tensor that holds just one.
    pub fn to_scalar<T: Element>(&self) -> Result<T> {
        match self.as_slice::<T>()? {
            [element] => Ok(*element),
            elements => Err(Error::found(
                ErrorKind::InvalidArgument,
                format!("the scalar of a tensor {self:?}: it has {} elements; read it with as_slice", elements.len()),
            )),
        }
    }

    /// The elements for writing. Errors: `InvalidArgument` (another type), `FailedPrecondition` (others read them too).
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        self.expect::<T>(self.as_bytes())?;
        let bytes = self.as_mut_bytes()?;
        if bytes.is_empty() {
            return Ok(&mut []);
        }
        // SAFETY: as in as_slice, and the borrow is mutable.
        Ok(unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len() / size_of::<T>()) })
    }

    fn as_mut_bytes(&mut self) -> Result<&mut [u8]> {
        self.require_writable("write to")?;
        let nbytes = self.as_bytes().len();
        if nbytes == 0 {
            return Ok(&mut []);
        }
        // SAFETY: an open tensor.
        let data = unsafe { sys::dtg_tensor_mutable_data(self.raw()) };
        if data.is_null() {
            return Err(self.not_alone("write to"));
        }
        // SAFETY: the only owner, borrowed mutably, so that nobody else looks at the memory.
        Ok(unsafe { std::slice::from_raw_parts_mut(data.cast(), nbytes) })
    }

    fn expect<T: Element>(&self, bytes: &[u8]) -> Result<()> {
        if self.dtype() != T::DTYPE {
            return Err(Error::found(
                ErrorKind::InvalidArgument,
                format!(
                    "read a tensor {self:?} as {}: its elements are {}; ask for that type or cast in the graph",
                    T::DTYPE,
                    self.dtype()
                ),
            ));
        }
        if !T::valid(bytes) {
            return Err(Error::found(
                ErrorKind::DataLoss,
                format!("read a tensor {self:?}: it holds bytes that are no values of its type; read as_bytes"),
            ));
        }
        Ok(())
    }

    pub(crate) fn raw(&self) -> *mut sys::dtg_tensor {
        self.handle.raw()
    }

    /// The tensor for somebody in C who keeps it.
    pub(crate) fn share(&self) -> *mut sys::dtg_tensor {
        self.shared.store(true, Ordering::Relaxed);
        self.raw()
    }

    /// Fails when others may read the elements.
    #[inline]
    pub(crate) fn require_writable(&mut self, what: &str) -> Result<()> {
        if *self.shared.get_mut() { Err(self.not_alone(what)) } else { Ok(()) }
    }

    #[cold]
    fn not_alone(&self, what: &str) -> Error {
        Error::found(
            ErrorKind::FailedPrecondition,
            format!(
                "{what} a tensor {self:?}: it was cloned, or given to a graph, a data set, weights, an asynchronous run or another library, which share it; copy() it first"
            ),
        )
    }
}

/// Sizes as C has them, which so many elements fill; C would tell it in bytes.
fn counted(dims: &[usize], dtype: DType, given: usize) -> Result<Vec<i64>> {
    let sizes = signed(dims)?;
    let wanted = dims.iter().try_fold(1usize, |count, dim| count.checked_mul(*dim));
    if wanted == Some(given) {
        return Ok(sizes);
    }
    let wanted = wanted.map_or("more than can be counted".to_owned(), |count| count.to_string());
    let text = format!("a tensor of {dtype}, shape {dims:?}: it has {wanted} elements, {given} were given");
    Err(Error::found(ErrorKind::InvalidArgument, text))
}

/// Sizes as C has them.
fn signed(dims: &[usize]) -> Result<Vec<i64>> {
    let signed = dims.iter().map(|dim| i64::try_from(*dim)).collect::<Result<Vec<_>, _>>();
    signed.map_err(|_| {
        Error::found(ErrorKind::InvalidArgument, format!("a tensor of shape {dims:?}: no dimension can be as large as that"))
    })
}

impl Clone for Tensor {
    fn clone(&self) -> Self {
        self.share();
        Self::adopt_shared(self.handle.clone())
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype(), self.dims())
    }
}
