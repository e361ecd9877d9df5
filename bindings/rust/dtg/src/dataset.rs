//! Data sets: pipelines that hand out elements, one or more tensors each. One thread at a time uses a data set; it may move.

use std::fmt;
use std::ptr::{null, null_mut};

use dtg_sys as sys;

use crate::dtype::DType;
use crate::error::{Result, check};
use crate::graph::{PartialShape, partial_shape};
use crate::handle::{Handle, c_string};
use crate::runtime::Runtime;
use crate::tensor::Tensor;

/// Whether the first line of a CSV file names the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Header {
    /// Found out.
    #[default]
    Auto,
    /// It does.
    Yes,
    /// It does not; columns are c0, c1, ...
    No,
}

/// What happens to the rows of a CSV file in which a value is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Missing {
    /// NaN, or -1 in columns of names.
    #[default]
    Keep,
    /// Dropped.
    Drop,
    /// `DataLoss`.
    Refuse,
}

/// How a CSV file is read; write `..Default::default()` for what is not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Csv<'a> {
    /// The column to predict: elements are then {all other columns as a float32 vector, label}. None: one scalar per column.
    pub label: Option<&'a str>,
    /// The columns to read, in this order. None: all.
    pub columns: Option<&'a [&'a str]>,
    /// Whether the first line names the columns.
    pub header: Header,
    /// What happens to rows in which a value is missing.
    pub missing: Missing,
    /// Default: `,`.
    pub delimiter: Option<u8>,
}

/// A pipeline: a source, then transforms in the order of the calls. Equal seeds give equal orders on every machine. It is an iterator
/// over one epoch, whose items are the elements' tensors; [`Dataset::restart`] begins the next.
///
/// ```
/// use dtg::Dataset;
///
/// let mut data = Dataset::range(0, 10, 1)?.shuffle(0, 7)?.batch(4, false)?;
/// assert_eq!(data.cardinality(), Some(3));
/// let mut seen = Vec::new();
/// for element in data.by_ref() {
///     seen.extend_from_slice(element?[0].as_slice::<i64>()?);
/// }
/// seen.sort();
/// assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
/// data.restart()?;
/// assert!(data.next().is_some());
/// # Ok::<(), dtg::Error>(())
/// ```
pub struct Dataset(Handle<sys::dtg_dataset>);

impl Dataset {
    // ---- sources ----

    /// Slices of tensors along their first dimension, which all must share. The tensors are shared, not copied.
    pub fn tensors(tensors: &[&Tensor]) -> Result<Self> {
        Self::tensors_in(&Runtime::default(), tensors)
    }

    /// As [`Dataset::tensors`], under the memory limit of a runtime.
    pub fn tensors_in(runtime: &Runtime, tensors: &[&Tensor]) -> Result<Self> {
        let raw: Vec<_> = tensors.iter().map(|tensor| tensor.share().cast_const()).collect();
        // SAFETY: an open runtime or NULL; open tensors and their number.
        unsafe { Handle::create(|out| sys::dtg_dataset_tensors(runtime.raw(), raw.as_ptr(), raw.len(), out)) }.map(Self)
    }

    /// int64 scalars start, start + step, ... up to, not including, stop.
    pub fn range(start: i64, stop: i64, step: i64) -> Result<Self> {
        Self::range_in(&Runtime::default(), start, stop, step)
    }

    /// As [`Dataset::range`], under the memory limit of a runtime.
    pub fn range_in(runtime: &Runtime, start: i64, stop: i64, step: i64) -> Result<Self> {
        // SAFETY: an open runtime or NULL.
        unsafe { Handle::create(|out| sys::dtg_dataset_range(runtime.raw(), start, stop, step, out)) }.map(Self)
    }

    /// IDX files, the format of MNIST and its family, plain or gzip: one component per file. Errors: `NotFound`, `DataLoss`,
    /// `InvalidArgument`, `ResourceExhausted`.
    pub fn idx(paths: &[&str]) -> Result<Self> {
        Self::idx_in(&Runtime::default(), paths)
    }

    /// As [`Dataset::idx`], under the memory limit of a runtime.
    pub fn idx_in(runtime: &Runtime, paths: &[&str]) -> Result<Self> {
        let paths = paths.iter().map(|path| c_string(path, "the path")).collect::<Result<Vec<_>>>()?;
        let raw: Vec<_> = paths.iter().map(|path| path.as_ptr()).collect();
        // SAFETY: an open runtime or NULL; texts that end with NUL and their number.
        unsafe { Handle::create(|out| sys::dtg_dataset_idx(runtime.raw(), raw.as_ptr(), raw.len(), out)) }.map(Self)
    }

    /// The rows of a CSV file, plain or gzip. Whole numbers are int64, other numbers float32, anything else names, numbered in sorted
    /// order. Errors: `NotFound` (no file, no such column), `DataLoss`, `InvalidArgument`, `ResourceExhausted`.
    pub fn csv(path: &str, options: &Csv<'_>) -> Result<Self> {
        Self::csv_in(&Runtime::default(), path, options)
    }

    /// As [`Dataset::csv`], under the memory limit of a runtime.
    pub fn csv_in(runtime: &Runtime, path: &str, options: &Csv<'_>) -> Result<Self> {
        let columns =
            options.columns.unwrap_or_default().iter().map(|name| c_string(name, "the column")).collect::<Result<Vec<_>>>()?;
        let names: Vec<_> = columns.iter().map(|name| name.as_ptr()).collect();
        let raw = sys::dtg_csv_options {
            label: options.label.map_or(null(), |label| label.as_ptr().cast()),
            label_len: options.label.map_or(0, str::len),
            columns: if options.columns.is_some() { names.as_ptr() } else { null() },
            num_columns: names.len(),
            header: match options.header {
                Header::Auto => 0,
                Header::Yes => 1,
                Header::No => 2,
            },
            missing: match options.missing {
                Missing::Keep => 0,
                Missing::Drop => 1,
                Missing::Refuse => 2,
            },
            delimiter: options.delimiter.map_or(0, i32::from),
            ..sys::dtg_csv_options::INIT
        };
        // SAFETY: an open runtime or NULL; a text with its length, options that outlive the call.
        unsafe { Handle::create(|out| sys::dtg_dataset_csv(runtime.raw(), path.as_ptr().cast(), path.len(), &raw, out)) }.map(Self)
    }

    fn raw(&self) -> *mut sys::dtg_dataset {
        self.0.raw()
    }

    // ---- transforms. Errors: InvalidArgument for arguments out of range ----

    /// The pipeline with one more transform.
    fn with(self, add: impl FnOnce(*mut sys::dtg_dataset) -> *mut sys::dtg_error) -> Result<Self> {
        // SAFETY: the answer of a function of the ABI.
        unsafe { check(add(self.raw())) }?;
        Ok(self)
    }

    /// Draws at random from a buffer of that many elements; 0: from the whole epoch. Every epoch has an order of its own.
    pub fn shuffle(self, buffer: i64, seed: u64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_shuffle(data, buffer, seed) })
    }

    /// Stacks `size` elements along a new first dimension; a shorter last batch is handed out or dropped.
    pub fn batch(self, size: i64, drop_remainder: bool) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_batch(data, size, drop_remainder.into()) })
    }

    /// Keeps elements index, index + count, ...: what one of `count` workers trains on.
    pub fn shard(self, count: i64, index: i64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_shard(data, count, index) })
    }

    /// The same for the batches of one job: a worker that finds fewer elements than workers reports `InvalidArgument` at its first
    /// element, instead of training alone.
    pub fn auto_shard(self, count: i64, index: i64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_auto_shard(data, count, index) })
    }

    /// Cuts every batch along the first dimension into `parts` batches of ceil(rows / parts) rows.
    pub fn rebatch(self, parts: i64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_rebatch(data, parts) })
    }

    /// `count` epochs as one; negative: for ever.
    pub fn repeat(self, count: i64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_repeat(data, count) })
    }

    /// The first `count` elements. (Not [`Iterator::take`], which takes them from this epoch alone.)
    pub fn take_first(self, count: i64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_take(data, count) })
    }

    /// All but the first `count` elements. (Not [`Iterator::skip`], which skips them in this epoch alone.)
    pub fn skip_first(self, count: i64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_skip(data, count) })
    }

    /// A component as float32, divided by `divisor` (255 for pixels).
    pub fn scale(self, component: usize, divisor: f64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_scale(data, component, divisor) })
    }

    /// A component as float32, float64, int32 or int64.
    pub fn cast(self, component: usize, dtype: DType) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_cast(data, component, dtype.0) })
    }

    /// Keeps up to `count` elements ready, made by a thread of the data set's own.
    pub fn prefetch(self, count: i64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_prefetch(data, count) })
    }

    // ---- reading ----

    /// The tensors of the next element; None at the end of the data. Errors: those of the source.
    pub fn next_element(&mut self) -> Result<Option<Vec<Tensor>>> {
        let mut tensors = vec![null_mut(); self.component_count()];
        let mut more = 0;
        // SAFETY: an open data set, borrowed mutably; one place per component.
        unsafe { check(sys::dtg_dataset_next(self.raw(), tensors.as_mut_ptr(), tensors.len(), &mut more)) }?;
        if more == 0 {
            return Ok(None);
        }
        // SAFETY: tensors of ours. Their elements may be those of a tensor that the data set slices.
        Ok(Some(tensors.into_iter().filter_map(|tensor| unsafe { Handle::adopt(tensor) }).map(Tensor::adopt_shared).collect()))
    }

    /// Begins the next epoch, wherever this one stands.
    pub fn restart(&mut self) -> Result<()> {
        // SAFETY: an open data set, borrowed mutably.
        unsafe { check(sys::dtg_dataset_restart(self.raw())) }
    }

    /// Elements (batches, after batch) per epoch; None when there is no end or it is not known before they are read.
    pub fn cardinality(&self) -> Option<usize> {
        // SAFETY: an open data set.
        usize::try_from(unsafe { sys::dtg_dataset_cardinality(self.raw()) }).ok()
    }

    /// Tensors per element.
    pub fn component_count(&self) -> usize {
        // SAFETY: an open data set.
        unsafe { sys::dtg_dataset_component_count(self.raw()) }
    }

    /// Type and shape of a component of every element. Errors: `OutOfRange`.
    pub fn component(&self, i: usize) -> Result<(DType, PartialShape)> {
        let mut dtype = 0;
        let shape = partial_shape(|dims, cap, rank| {
            // SAFETY: an open data set; up to `cap` dimensions are written.
            unsafe { check(sys::dtg_dataset_component(self.raw(), i, &mut dtype, dims, cap, rank)) }
        })?;
        Ok((DType(dtype), shape))
    }
}

impl Iterator for Dataset {
    type Item = Result<Vec<Tensor>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_element().transpose()
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dataset({} components)", self.component_count())
    }
}
