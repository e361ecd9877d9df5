//! Element types, and the Rust types that have their layout. Plain values; any thread.

use std::ffi::CStr;
use std::fmt;

use dtg_sys as sys;

/// An element type. The set is open, as it grows with the library; which ops compute on which types is told by the op table.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DType(pub(crate) i32);

macro_rules! dtypes {
    ($($name:ident = $number:ident, $doc:literal;)*) => {
        impl DType { $(#[doc = $doc] pub const $name: Self = Self(sys::$number);)* }
    };
}

dtypes! {
    F32 = DTG_F32, "`f32`";
    F64 = DTG_F64, "`f64`";
    I32 = DTG_I32, "`i32`";
    U8 = DTG_U8, "`u8`";
    I16 = DTG_I16, "`i16`";
    I8 = DTG_I8, "`i8`";
    STRING = DTG_STRING, "byte strings";
    C64 = DTG_C64, "complex numbers of two `f32`";
    I64 = DTG_I64, "`i64`";
    BOOL = DTG_BOOL, "`bool`";
    QI8 = DTG_QI8, "quantised 8-bit";
    QU8 = DTG_QU8, "quantised 8-bit, unsigned";
    QI32 = DTG_QI32, "quantised 32-bit";
    BF16 = DTG_BF16, "bfloat16: `half::bf16` with the feature `half`";
    QI16 = DTG_QI16, "quantised 16-bit";
    QU16 = DTG_QU16, "quantised 16-bit, unsigned";
    U16 = DTG_U16, "`u16`";
    C128 = DTG_C128, "complex numbers of two `f64`";
    F16 = DTG_F16, "IEEE half: `half::f16` with the feature `half`";
    RESOURCE = DTG_RESOURCE, "handles of variables, queues and accumulators";
    VARIANT = DTG_VARIANT, "values of any kind";
    U32 = DTG_U32, "`u32`";
    U64 = DTG_U64, "`u64`";
    F8_E5M2 = DTG_F8_E5M2, "8-bit floating-point, 5 bits of exponent";
    F8_E4M3FN = DTG_F8_E4M3FN, "8-bit floating-point, 4 bits of exponent, no infinities";
    I4 = DTG_I4, "4-bit";
    U4 = DTG_U4, "4-bit, unsigned";
}

impl DType {
    /// The type with TensorFlow's number, for code that reads one from elsewhere; nothing is checked here.
    pub const fn from_number(number: i32) -> Self {
        Self(number)
    }

    /// TensorFlow's number.
    pub const fn number(self) -> i32 {
        self.0
    }

    /// The type of that name, `"float32"`.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = std::ffi::CString::new(name).ok()?;
        // SAFETY: a text that ends with NUL.
        let number = unsafe { sys::dtg_dtype_from_name(name.as_ptr()) };
        (number != 0).then_some(Self(number))
    }

    /// `"float32"`, `"int64"`, ...; `"invalid"` for a number that is no type.
    pub fn name(self) -> &'static str {
        // SAFETY: takes any number and answers with a static text.
        unsafe { CStr::from_ptr(sys::dtg_dtype_name(self.0)) }.to_str().unwrap_or("invalid")
    }

    /// Bytes of one element; None for types without a fixed plain size.
    pub fn size(self) -> Option<usize> {
        // SAFETY: takes any number.
        let size = unsafe { sys::dtg_dtype_size(self.0) };
        (size != 0).then_some(size)
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type that tensors hold: plain bytes with the layout of an element type.
///
/// # Safety
/// The type has the size of [`Element::DTYPE`], no padding and no owner, and every bit pattern that passes [`Element::valid`] is a
/// value of it.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// The element type.
    const DTYPE: DType;

    /// Whether these bytes, a whole number of elements, are values of the type. Only `bool` has others.
    fn valid(_bytes: &[u8]) -> bool {
        true
    }
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident,)*) => {$(
        // SAFETY: the element type is defined as this one, and any bits are a value.
        unsafe impl Element for $rust { const DTYPE: DType = DType::$dtype; }
    )*};
}

elements! {
    f32 => F32, f64 => F64, i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
}

#[cfg(feature = "half")]
elements! { half::f16 => F16, half::bf16 => BF16, }

// SAFETY: one byte that is 0 or 1, which `valid` looks at: a file may hold anything.
unsafe impl Element for bool {
    const DTYPE: DType = DType::BOOL;

    fn valid(bytes: &[u8]) -> bool {
        bytes.iter().all(|byte| *byte <= 1)
    }
}
