//! Weight sets: named tensors, in memory and in safetensors files. One thread at a time uses a set; it may move.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use dtg_sys as sys;

use crate::error::{Result, borrowed, check};
use crate::handle::Handle;
use crate::runtime::Runtime;
use crate::tensor::Tensor;

/// Named tensors and texts about them.
///
/// ```
/// use dtg::{Tensor, Weights};
///
/// let mut weights = Weights::new()?;
/// weights.set("dense/bias", &Tensor::from_slice(&[2], &[0.5f32, -0.5])?)?;
/// weights.set_metadata("step", "1000")?;
/// let path = std::env::temp_dir().join(format!("doc-weights-{}.safetensors", std::process::id()));
/// weights.save(path.to_str().unwrap())?;
/// let again = Weights::load(path.to_str().unwrap())?;
/// assert_eq!(again.get("dense/bias")?.as_slice::<f32>()?, [0.5, -0.5]);
/// assert_eq!(again.metadata("step"), Some("1000"));
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), dtg::Error>(())
/// ```
pub struct Weights(Handle<sys::dtg_weights>);

impl Weights {
    /// An empty set.
    pub fn new() -> Result<Self> {
        // SAFETY: writes a set that is ours on success.
        unsafe { Handle::create(|out| sys::dtg_weights_create(out)) }.map(Self)
    }

    /// Everything in a safetensors file, of which nothing is trusted. Errors: `NotFound`, `DataLoss`, `Unimplemented` (an element type
    /// that dtg does not have), `ResourceExhausted`.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::load_in(&Runtime::default(), path)
    }

    /// As [`Weights::load`], under the memory limit of a runtime.
    pub fn load_in(runtime: &Runtime, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().as_os_str().as_bytes();
        // SAFETY: an open runtime or NULL; a text with its length.
        unsafe { Handle::create(|out| sys::dtg_weights_load(runtime.raw(), path.as_ptr().cast(), path.len(), out)) }.map(Self)
    }

    fn raw(&self) -> *mut sys::dtg_weights {
        self.0.raw()
    }

    /// Writes the set to a file, atomically. Errors: those of the disk, `Unimplemented` (a type that the format does not have).
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref().as_os_str().as_bytes();
        // SAFETY: an open set; a text with its length.
        unsafe { check(sys::dtg_weights_save(self.raw(), path.as_ptr().cast(), path.len())) }
    }

    /// Adds a tensor, or replaces the one of that name. It is shared with the set.
    pub fn set(&mut self, name: &str, tensor: &Tensor) -> Result<()> {
        // SAFETY: an open set, borrowed mutably; a text with its length, an open tensor.
        unsafe { check(sys::dtg_weights_set(self.raw(), name.as_ptr().cast(), name.len(), tensor.share())) }
    }

    /// The tensor of that name, shared with the set. Errors: `NotFound`.
    pub fn get(&self, name: &str) -> Result<Tensor> {
        // SAFETY: an open set; a text with its length.
        unsafe { Handle::create(|out| sys::dtg_weights_get(self.raw(), name.as_ptr().cast(), name.len(), out)) }
            .map(Tensor::adopt_shared)
    }

    /// The number of tensors.
    pub fn len(&self) -> usize {
        // SAFETY: an open set.
        unsafe { sys::dtg_weights_count(self.raw()) }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names of the tensors: in order of name after loading, of adding otherwise.
    pub fn names(&self) -> Vec<&str> {
        // SAFETY: an open set; a name is valid until the set changes, which takes a mutable borrow.
        (0..self.len()).filter_map(|i| unsafe { borrowed(sys::dtg_weights_name(self.raw(), i)) }?.to_str().ok()).collect()
    }

    /// Sets a text of the file's metadata.
    pub fn set_metadata(&mut self, key: &str, value: &str) -> Result<()> {
        let (key, key_len, value, value_len) = (key.as_ptr().cast(), key.len(), value.as_ptr().cast(), value.len());
        // SAFETY: an open set, borrowed mutably; texts with their lengths.
        unsafe { check(sys::dtg_weights_set_metadata(self.raw(), key, key_len, value, value_len)) }
    }

    /// A text of the metadata.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        // SAFETY: an open set; the text is valid until the set changes, which takes a mutable borrow.
        unsafe { borrowed(sys::dtg_weights_metadata(self.raw(), key.as_ptr().cast(), key.len())) }?.to_str().ok()
    }
}

impl fmt::Debug for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Weights").field(&self.names()).finish()
    }
}
