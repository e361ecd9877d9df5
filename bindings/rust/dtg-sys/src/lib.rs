//! The C ABI of libdtg, as the headers in `dtg/*.h` declare it; they are its documentation (conventions, ownership, threads).
//! Programs want the crate `dtg`, which is safe; this one is for what that leaves out. Which threads may call what is said per
//! function by the headers, and nothing here adds to it.
//!
//! The declarations are generated from the headers, and a test holds them against the headers with a C compiler: sizes, offsets,
//! numbers and every signature.
//!
//! How libdtg is found when this crate is built: `DTG_LIB_DIR` (and `DTG_STATIC=1` for the archive), otherwise pkg-config.
#![no_std]
#![allow(non_camel_case_types)]

#[rustfmt::skip]
#[allow(missing_debug_implementations)]
mod bindings;

pub use bindings::*;
