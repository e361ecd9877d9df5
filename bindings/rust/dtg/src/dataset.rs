//! Data sets: pipelines that hand out elements, one or more tensors each. One thread at a time uses a data set; it may move.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};

use dtg_sys as sys;

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, check};
use crate::graph::{PartialShape, partial_shape};
use crate::handle::{Handle, c_string, string};
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
    /// `DataLoss`, which names line and column.
    #[default]
    Refuse,
    /// Dropped.
    Drop,
    /// NaN, which makes losses NaN, or -1 in columns of names.
    Keep,
    /// The mean of the column takes its place; an error in columns of names that lack some.
    Mean,
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
    /// What is known of the columns, as JSON: the [`Dataset::schema`] of another data set, or rules of one's own, as dtg/data.h tells:
    /// `{"rules": [{"name": "age", "missing": "mean"}, {"name": "kind", "names": ["cat", "dog"]}]}`.
    pub schema: Option<&'a str>,
}

/// How a data set is cut in two; write `..Default::default()` for what is not said.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Split {
    /// The share of rows that is held out, between 0 and 1; 0: 0.2. Not looked at with folds.
    pub fraction: f64,
    /// Decides which row goes where.
    pub seed: u64,
    /// 0: none; k from 2 up: the rows are dealt out to k folds of like size, and one of them is held out.
    pub folds: i32,
    /// Which one, from 0.
    pub fold: i32,
    /// Each class is cut alike, to a row: the component of one whole number or bool per row that holds them.
    pub classes: Option<usize>,
}

/// What a normalization does to each feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum NormalizationKind {
    /// To mean 0 and deviation 1.
    #[default]
    Standard,
    /// To 0 at the least and 1 at the greatest.
    Range,
}

/// A pipeline: a source, then transforms in the order of the calls. Equal seeds give equal orders on every machine. It is an iterator
/// over one epoch, whose items are the elements' tensors. After the end it goes on with the next epoch, so that a second loop over
/// `by_ref()` trains on one; [`Dataset::restart`] begins it earlier.
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
pub struct Dataset(Handle<sys::dtg_dataset>, bool); // true: the iterator has told the end of an epoch

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
        unsafe { Handle::create(|out| sys::dtg_dataset_tensors(runtime.raw(), raw.as_ptr(), raw.len(), out)) }
            .map(|handle| Self(handle, false))
    }

    /// int64 scalars start, start + step, ... up to, not including, stop.
    pub fn range(start: i64, stop: i64, step: i64) -> Result<Self> {
        Self::range_in(&Runtime::default(), start, stop, step)
    }

    /// As [`Dataset::range`], under the memory limit of a runtime.
    pub fn range_in(runtime: &Runtime, start: i64, stop: i64, step: i64) -> Result<Self> {
        // SAFETY: an open runtime or NULL.
        unsafe { Handle::create(|out| sys::dtg_dataset_range(runtime.raw(), start, stop, step, out)) }
            .map(|handle| Self(handle, false))
    }

    /// IDX files, the format of MNIST and its family, plain or gzip: one component per file. Errors: `NotFound`, `DataLoss`,
    /// `InvalidArgument`, `ResourceExhausted`.
    pub fn idx(paths: &[impl AsRef<Path>]) -> Result<Self> {
        Self::idx_in(&Runtime::default(), paths)
    }

    /// As [`Dataset::idx`], under the memory limit of a runtime.
    pub fn idx_in(runtime: &Runtime, paths: &[impl AsRef<Path>]) -> Result<Self> {
        let paths =
            paths.iter().map(|path| c_string(path.as_ref().as_os_str().as_bytes(), "the path")).collect::<Result<Vec<_>>>()?;
        let raw: Vec<_> = paths.iter().map(|path| path.as_ptr()).collect();
        // SAFETY: an open runtime or NULL; texts that end with NUL and their number.
        unsafe { Handle::create(|out| sys::dtg_dataset_idx(runtime.raw(), raw.as_ptr(), raw.len(), out)) }
            .map(|handle| Self(handle, false))
    }

    /// The rows of a CSV file, plain or gzip. Whole numbers are int64, other numbers float32, anything else names, numbered in sorted
    /// order. Errors: `NotFound` (no file, no such column), `DataLoss`, `InvalidArgument`, `ResourceExhausted`.
    pub fn csv(path: impl AsRef<Path>, options: &Csv<'_>) -> Result<Self> {
        Self::csv_in(&Runtime::default(), path, options)
    }

    /// As [`Dataset::csv`], under the memory limit of a runtime.
    pub fn csv_in(runtime: &Runtime, path: impl AsRef<Path>, options: &Csv<'_>) -> Result<Self> {
        let path = path.as_ref().as_os_str().as_bytes();
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
                Missing::Refuse => sys::DTG_MISSING_REFUSE,
                Missing::Drop => sys::DTG_MISSING_DROP,
                Missing::Keep => sys::DTG_MISSING_KEEP,
                Missing::Mean => sys::DTG_MISSING_MEAN,
            },
            delimiter: options.delimiter.map_or(0, i32::from),
            schema: options.schema.map_or(null(), |schema| schema.as_ptr().cast()),
            schema_len: options.schema.map_or(0, str::len),
            ..sys::dtg_csv_options::INIT
        };
        // SAFETY: an open runtime or NULL; a text with its length, options that outlive the call.
        unsafe { Handle::create(|out| sys::dtg_dataset_csv(runtime.raw(), path.as_ptr().cast(), path.len(), &raw, out)) }
            .map(|handle| Self(handle, false))
    }

    pub(crate) fn raw(&self) -> *mut sys::dtg_dataset {
        self.0.raw()
    }

    /// For a trainer, which begins it where it wants to; who loops over it afterwards begins anew.
    pub(crate) fn lend(&mut self) -> *mut sys::dtg_dataset {
        self.1 = true;
        self.raw()
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

    /// The same order in every epoch.
    pub fn shuffle_once(self, buffer: i64, seed: u64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_shuffle_once(data, buffer, seed) })
    }

    /// A component as float32, (x - shift) / scale for each feature along its last dimension, by the text that
    /// [`Dataset::fit_normalization`] found: fit on what is trained on, apply to that and to everything else.
    pub fn normalize(self, component: usize, normalization: &str) -> Result<Self> {
        let (text, length) = (normalization.as_ptr().cast(), normalization.len());
        // SAFETY: an open data set, owned, a text with its length.
        self.with(|data| unsafe { sys::dtg_dataset_normalize(data, component, text, length) })
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

    // ---- parts, and what is found out ----

    /// Two data sets without a row in common: one to train on, one that is held out to test with. Which row goes where is decided by the
    /// seed alone; the order within both is that of `self`, which stays as it was. Elements must be rows of tensors or files, so split before
    /// batch, prefetch and repeat, and before [`Dataset::normalize`]. Errors: `InvalidArgument` (numbers out of range, no such rows or
    /// classes, a part without rows).
    pub fn split(&mut self, how: &Split) -> Result<(Self, Self)> {
        let raw = sys::dtg_split {
            fraction: how.fraction,
            seed: how.seed,
            folds: how.folds,
            fold: how.fold,
            stratify: how.classes.is_some().into(),
            classes: how.classes.unwrap_or(0),
            ..sys::dtg_split::INIT
        };
        let mut held_out = null_mut();
        // SAFETY: an open data set, borrowed mutably; both answers are ours.
        let train = unsafe { Handle::create(|out| sys::dtg_dataset_split(self.raw(), &raw, out, &mut held_out)) }?;
        // SAFETY: where the first answer was given, so was the second.
        let held_out = unsafe { Handle::adopt(held_out) }
            .ok_or_else(|| Error::new(ErrorKind::Internal, "libdtg split a data set and gave one part; please report it"))?;
        Ok((Self(train, false), Self(held_out, false)))
    }

    /// The numbers for [`Dataset::normalize`] and [`Model::normalize`](crate::Model::normalize), as JSON, found by one look at all of a
    /// component; the data set stays where it stood. Ask before batch. Keep the text with the weights by
    /// [`Model::set_metadata`](crate::Model::set_metadata). Errors: `InvalidArgument` (no elements, or one that is NaN or infinite),
    /// `OutOfRange`.
    pub fn fit_normalization(&mut self, component: usize, kind: NormalizationKind) -> Result<String> {
        let kind = match kind {
            NormalizationKind::Standard => sys::DTG_NORMALIZE_STANDARD,
            NormalizationKind::Range => sys::DTG_NORMALIZE_RANGE,
        };
        // SAFETY: an open data set, borrowed mutably.
        unsafe { string(|out| sys::dtg_dataset_fit_normalization(self.raw(), component, kind, out)) }
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

    /// What was found out about the columns of a CSV file, as JSON: give it to the reading of other files ([`Csv::schema`]), so that names
    /// have the same numbers and missing values the same means there; keep it with the weights by
    /// [`Model::set_metadata`](crate::Model::set_metadata). Errors: `FailedPrecondition` (not from a CSV file).
    pub fn schema(&self) -> Result<String> {
        // SAFETY: an open data set.
        unsafe { string(|out| sys::dtg_dataset_schema(self.raw(), out)) }
    }

    /// Begins the next epoch, wherever this one stands.
    pub fn restart(&mut self) -> Result<()> {
        self.1 = false;
        // SAFETY: an open data set, borrowed mutably.
        unsafe { check(sys::dtg_dataset_restart(self.raw())) }
    }

    /// Where the data set stands: elements since its last restart, then the epoch of each stage. Checkpoints keep it. Errors:
    /// `FailedPrecondition` (a transform was added after elements had been taken).
    pub fn place(&self) -> Result<Vec<i64>> {
        let mut count = 0;
        // SAFETY: an open data set.
        unsafe { check(sys::dtg_dataset_position(self.raw(), null_mut(), 0, &mut count)) }?;
        let mut numbers = vec![0; count];
        // SAFETY: an open data set; up to `count` numbers are written.
        unsafe { check(sys::dtg_dataset_position(self.raw(), numbers.as_mut_ptr(), count, &mut count)) }?;
        Ok(numbers)
    }

    /// Goes to a position of a data set with the same stages, seeds and sources: what comes next is what came next there. Errors:
    /// `InvalidArgument` (no such position; nothing has changed), `DataLoss` (there are fewer elements now).
    pub fn move_to(&mut self, position: &[i64]) -> Result<()> {
        // SAFETY: an open data set, borrowed mutably; a slice with its length.
        unsafe { check(sys::dtg_dataset_move_to(self.raw(), position.as_ptr(), position.len())) }
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
        // Who goes on after the end means the next epoch.
        if self.1 {
            if let Err(error) = self.restart() {
                return Some(Err(error));
            }
        }
        let next = self.next_element().transpose();
        self.1 = next.is_none();
        next
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dataset({} components)", self.component_count())
    }
}
