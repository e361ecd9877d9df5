//! Tensors from and to other libraries of the process, without a copy, by DLPack. The structs are DLPack's own and are only named here.
//! Any thread.

use std::ptr::{NonNull, null_mut};

use dtg_sys as sys;

use crate::error::{Error, ErrorKind, Result, check};
use crate::handle::Handle;
use crate::tensor::Tensor;

impl Tensor {
    /// A tensor around the memory of a `DLManagedTensorVersioned` (DLPack 1), which it takes over; on failure `managed` stays the
    /// caller's. The elements can be read, and not written through the tensor. Errors: `InvalidArgument` (strides of another order, no
    /// or misaligned data), `Unimplemented` (another major version, another device, element types that are not there).
    ///
    /// # Safety
    /// `managed` is what its name says, its memory is not written while the tensor or a clone of it is there, and its deleter may be
    /// called once from any thread without calling back into the library.
    pub unsafe fn from_dlpack(managed: NonNull<sys::DLManagedTensorVersioned>) -> Result<Self> {
        // SAFETY: the caller says so.
        unsafe { Handle::create(|out| sys::dtg_tensor_from_dlpack(managed.as_ptr(), out)) }.map(Self::adopt_shared)
    }

    /// The same for a `DLManagedTensor`, the form before versions.
    ///
    /// # Safety
    /// As for [`Tensor::from_dlpack`].
    pub unsafe fn from_dlpack_unversioned(managed: NonNull<sys::DLManagedTensor>) -> Result<Self> {
        // SAFETY: the caller says so.
        unsafe { Handle::create(|out| sys::dtg_tensor_from_dlpack_unversioned(managed.as_ptr(), out)) }.map(Self::adopt_shared)
    }

    /// The tensor's memory for another library, marked read-only. It holds a reference until its deleter is called, by the receiver,
    /// once. Errors: `Unimplemented` (element types that DLPack has no code for).
    pub fn to_dlpack(&self) -> Result<NonNull<sys::DLManagedTensorVersioned>> {
        let mut out = null_mut();
        // SAFETY: an open tensor, shared from now on.
        unsafe { check(sys::dtg_tensor_to_dlpack(self.share(), 0, &mut out)) }?;
        given(out)
    }

    /// The tensor's memory for another library, which may write to it. Errors: `Unimplemented`, `FailedPrecondition` (others read it).
    pub fn into_dlpack(mut self) -> Result<NonNull<sys::DLManagedTensorVersioned>> {
        self.require_writable("give away")?;
        let mut out = null_mut();
        // SAFETY: an open tensor that nobody else has, and that this function gives up.
        unsafe { check(sys::dtg_tensor_to_dlpack(self.raw(), 1, &mut out)) }?;
        given(out)
    }

    /// The same as a `DLManagedTensor`, the form before versions, for receivers that know no other. It cannot say read-only.
    pub fn into_dlpack_unversioned(mut self) -> Result<NonNull<sys::DLManagedTensor>> {
        self.require_writable("give away")?;
        let mut out = null_mut();
        // SAFETY: an open tensor that nobody else has, and that this function gives up.
        unsafe { check(sys::dtg_tensor_to_dlpack_unversioned(self.raw(), &mut out)) }?;
        given(out)
    }
}

fn given<T>(managed: *mut T) -> Result<NonNull<T>> {
    NonNull::new(managed)
        .ok_or_else(|| Error::found(ErrorKind::Internal, "libdtg reported success and gave no tensor; please report it"))
}
