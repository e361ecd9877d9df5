//! DLPack out and in, by the struct as its specification has it. One test at a time.

mod common;

use std::ffi::c_void;
use std::ptr::NonNull;

use common::{refused, world};
use dtg::{ErrorKind, Tensor, sys};

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: [i32; 2],
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// DLManagedTensorVersioned.
#[repr(C)]
struct Versioned {
    version: [u32; 2],
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// DLManagedTensor.
#[repr(C)]
struct Unversioned {
    tensor: DlTensor,
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Unversioned)>,
}

const READ_ONLY: u64 = 1;

fn versioned(managed: NonNull<sys::DLManagedTensorVersioned>) -> &'static mut Versioned {
    // SAFETY: the struct of DLPack 1, alive until its deleter is called.
    unsafe { managed.cast::<Versioned>().as_mut() }
}

#[test]
fn memory_goes_out_and_comes_back() {
    let _world = world();
    let tensor = Tensor::from_slice(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let address = tensor.as_bytes().as_ptr();
    let managed = tensor.to_dlpack().unwrap();
    drop(tensor); // the memory stays
    let seen = versioned(managed);
    assert_eq!((seen.version[0], seen.tensor.ndim, seen.tensor.code, seen.tensor.bits, seen.tensor.lanes), (1, 2, 2, 32, 1));
    assert_eq!((seen.tensor.data.cast_const().cast(), seen.flags & READ_ONLY), (address, READ_ONLY));

    // SAFETY: what to_dlpack gave, not written by anybody.
    let mut back = unsafe { Tensor::from_dlpack(managed) }.unwrap();
    assert_eq!((back.dims(), back.as_bytes().as_ptr()), (vec![2, 3], address));
    assert_eq!(back.as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    refused(back.as_mut_slice::<f32>(), ErrorKind::FailedPrecondition, "copy()");
    assert_eq!(back.copy().unwrap().as_mut_slice::<f32>().unwrap().len(), 6);
}

#[test]
fn only_the_one_owner_gives_away() {
    let _world = world();
    let tensor = Tensor::from_slice(&[2], &[1i64, 2]).unwrap();
    let clone = tensor.clone();
    refused(clone.into_dlpack(), ErrorKind::FailedPrecondition, "copy()");
    refused(tensor.clone().into_dlpack_unversioned(), ErrorKind::FailedPrecondition, "copy()");

    let managed = tensor.copy().unwrap().into_dlpack().unwrap();
    let seen = versioned(managed);
    assert_eq!((seen.flags & READ_ONLY, seen.tensor.code, seen.tensor.bits), (0, 0, 64));
    // SAFETY: the receiver ends it, once.
    unsafe { seen.deleter.unwrap()(seen) };

    let managed = tensor.copy().unwrap().into_dlpack_unversioned().unwrap();
    // SAFETY: the struct from before versions; nobody writes.
    let back = unsafe {
        assert_eq!(managed.cast::<Unversioned>().as_ref().tensor.ndim, 1);
        Tensor::from_dlpack_unversioned(managed).unwrap()
    };
    assert_eq!(back.as_slice::<i64>().unwrap(), [1, 2]);
}

#[test]
fn what_is_refused_stays_the_callers() {
    let _world = world();
    let managed = Tensor::from_slice(&[2], &[1.0f32, 2.0]).unwrap().into_dlpack().unwrap();
    let seen = versioned(managed);
    seen.version[0] = 2;
    // SAFETY: as above; refused, so it is still ours.
    refused(unsafe { Tensor::from_dlpack(managed) }, ErrorKind::Unimplemented, "2");
    seen.version[0] = 1;
    // SAFETY: ours to end.
    unsafe { seen.deleter.unwrap()(seen) };
}
