//! Event writers: files that TensorBoard reads. One thread at a time uses a writer; it may move.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use dtg_sys as sys;

use crate::error::{Result, check};
use crate::handle::{Handle, or_default};
use crate::tensor::Tensor;

/// How an [`EventWriter`] writes; write `..Default::default()` for what is not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct EventWriterOptions {
    /// How long records may wait in memory. Default: 2 s.
    pub flush_every: Option<Duration>,
    /// Of a run that continues from a checkpoint: what older files of the directory say about this step and later ones is dropped by
    /// readers. 0: a new run.
    pub resumed_at_step: i64,
}

/// A new event file in a directory, which TensorBoard takes for a run: writers of different roles need different ones. Dropping it
/// flushes too, but cannot say whether that worked.
///
/// ```
/// use dtg::EventWriter;
///
/// let directory = std::env::temp_dir().join(format!("doc-events-{}", std::process::id()));
/// let mut writer = EventWriter::open(directory.to_str().unwrap(), &Default::default())?;
/// writer.scalar("loss", 1, 0.5)?;
/// writer.close()?;
/// # std::fs::remove_dir_all(directory).unwrap();
/// # Ok::<(), dtg::Error>(())
/// ```
pub struct EventWriter(Handle<sys::dtg_event_writer>);

impl EventWriter {
    /// Opens a new file in a directory, which is made if need be. Errors: those of the disk.
    pub fn open(directory: impl AsRef<Path>, options: &EventWriterOptions) -> Result<Self> {
        let directory = directory.as_ref().as_os_str().as_bytes();
        let raw = sys::dtg_event_writer_options {
            flush_every_ns: or_default(options.flush_every),
            resumed_at_step: options.resumed_at_step,
            ..sys::dtg_event_writer_options::INIT
        };
        // SAFETY: a text with its length, options that outlive the call.
        unsafe { Handle::create(|out| sys::dtg_event_writer_open(directory.as_ptr().cast(), directory.len(), &raw, out)) }.map(Self)
    }

    fn raw(&mut self) -> *mut sys::dtg_event_writer {
        self.0.raw()
    }

    /// One point of the curve `tag`. After a failed write this and every later call answers with that error.
    pub fn scalar(&mut self, tag: &str, step: i64, value: f64) -> Result<()> {
        // SAFETY: an open writer, borrowed mutably; a text with its length.
        unsafe { check(sys::dtg_event_writer_scalar(self.raw(), tag.as_ptr().cast(), tag.len(), step, value)) }
    }

    /// The distribution of the finite elements of a float32 tensor. Errors: `InvalidArgument`.
    pub fn histogram(&mut self, tag: &str, step: i64, tensor: &Tensor) -> Result<()> {
        // SAFETY: an open writer, borrowed mutably; a text with its length, an open tensor that is read during the call.
        unsafe { check(sys::dtg_event_writer_histogram(self.raw(), tag.as_ptr().cast(), tag.len(), step, tensor.raw())) }
    }

    /// A text in Markdown.
    pub fn text(&mut self, tag: &str, step: i64, markdown: &str) -> Result<()> {
        let (text, length) = (markdown.as_ptr().cast(), markdown.len());
        // SAFETY: an open writer, borrowed mutably; texts with their lengths.
        unsafe { check(sys::dtg_event_writer_text(self.raw(), tag.as_ptr().cast(), tag.len(), step, text, length)) }
    }

    /// Hands what waits in memory to the system.
    pub fn flush(&mut self) -> Result<()> {
        // SAFETY: an open writer, borrowed mutably.
        unsafe { check(sys::dtg_event_writer_flush(self.raw())) }
    }

    /// Flushes and closes; later calls fail.
    pub fn close(&mut self) -> Result<()> {
        // SAFETY: an open writer, borrowed mutably.
        unsafe { check(sys::dtg_event_writer_close(self.raw())) }
    }
}

impl fmt::Debug for EventWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventWriter")
    }
}
