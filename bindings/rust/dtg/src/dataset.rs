//! Data sets: pipelines that hand out elements, one or more tensors each. One thread at a time uses a data set; it may move.

use std::ffi::c_void;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

use dtg_sys as sys;

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, built, check, placed};
use crate::graph::{PartialShape, partial_shape};
use crate::handle::{Handle, Texts, columns, name_of, string};
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

/// What happens to the rows of a CSV file in which a value is missing: a field is empty, or NA, N/A, NaN, nan, null, NULL, None or ?.
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
    /// The mean of the column takes its place, of all rows, also of those that a split holds out later: where that matters, read a file of
    /// its own for training, and the others with its schema. An error in columns of names that lack some, and in the label, if no schema
    /// says so.
    Mean,
}

impl Missing {
    fn number(self) -> i32 {
        match self {
            Self::Refuse => sys::DTG_MISSING_REFUSE,
            Self::Drop => sys::DTG_MISSING_DROP,
            Self::Keep => sys::DTG_MISSING_KEEP,
            Self::Mean => sys::DTG_MISSING_MEAN,
        }
    }
}

/// How a CSV file is read; write `..Default::default()` for what is not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Csv<'a> {
    /// The column to predict: elements are then {all other columns as a float32 vector, label}. None: one scalar per column.
    pub label: Option<&'a str>,
    /// The columns to read, in this order. None: all; a list without one is `InvalidArgument`.
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

/// How JSON lines are read; write `..Default::default()` for what is not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct JsonLines<'a> {
    /// The column to predict: elements are then {all other columns as a float32 vector, label}. None: one component per column.
    pub label: Option<&'a str>,
    /// The columns to read, in this order. None: all; a list without one is `InvalidArgument`.
    pub columns: Option<&'a [&'a str]>,
    /// What happens to rows in which a value is missing.
    pub missing: Missing,
    /// Bad rows are passed over and counted, see [`Dataset::bad_rows`]; otherwise they are an error.
    pub skip_bad_rows: bool,
    /// What is known of the columns, as JSON; see [`Csv::schema`].
    pub schema: Option<&'a str>,
}

/// How Arrow tables are read; write `..Default::default()` for what is not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Arrow<'a> {
    /// The column to predict: elements are then {all other columns as a float32 vector, label}. None: one component per column.
    pub label: Option<&'a str>,
    /// The columns to read, in this order. None: all; a list without one is `InvalidArgument`.
    pub columns: Option<&'a [&'a str]>,
    /// What happens to rows in which a value is missing.
    pub missing: Missing,
    /// What is known of the columns, as JSON; see [`Csv::schema`].
    pub schema: Option<&'a str>,
}

/// One component that [`Dataset::tfrecord`] reads of each tf.Example.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Feature<'a> {
    /// Its name.
    pub name: &'a str,
    /// `F32` of a float_list, `I64` of an int64_list, `U8` of the one string of a bytes_list.
    pub dtype: DType,
    /// Empty: one value.
    pub shape: &'a [i64],
    /// What stands in all of its values where an example lacks it. None: that is an error.
    pub default: Option<f64>,
    /// Any number of `shape`, `[n, shape...]`, and none where an example lacks it.
    pub variable: bool,
}

impl<'a> Feature<'a> {
    /// A feature that every example has, of that shape.
    #[must_use]
    pub fn new(name: &'a str, dtype: DType, shape: &'a [i64]) -> Self {
        Self { name, dtype, shape, default: None, variable: false }
    }

    // As C takes it: JSON.
    fn words(&self) -> String {
        let mut words = String::from("{\"name\": \"");
        for c in self.name.chars() {
            match c {
                '"' | '\\' => words.extend(['\\', c]),
                c if c < ' ' => words += &format!("\\u{:04x}", u32::from(c)),
                c => words.push(c),
            }
        }
        words += &format!("\", \"dtype\": \"{}\", \"shape\": {:?}, \"variable\": {}", self.dtype, self.shape, self.variable);
        if let Some(default) = self.default {
            words += &format!(", \"default\": {default:?}");
        }
        words + "}"
    }
}

/// How a data set is cut in two; write `..Default::default()` for what is not said.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Split {
    /// The share of rows that is held out, between 0 and 1; 0: 0.2, or folds: there are not both.
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

/// A source; an error names the line of the program.
///
/// # Safety
/// As for [`Handle::create`].
#[track_caller]
pub(crate) unsafe fn made(make: impl FnOnce(*mut *mut sys::dtg_dataset) -> *mut sys::dtg_error) -> Result<Dataset> {
    // SAFETY: the caller says so.
    placed(unsafe { Handle::create(make) }).map(Dataset::adopt)
}

impl Dataset {
    // ---- sources ----

    /// Slices of tensors along their first dimension, which all must share. The tensors are shared, not copied.
    #[track_caller]
    pub fn tensors(tensors: &[&Tensor]) -> Result<Self> {
        Self::tensors_in(&Runtime::default(), tensors)
    }

    /// As [`Dataset::tensors`], under the memory limit of a runtime.
    #[track_caller]
    pub fn tensors_in(runtime: &Runtime, tensors: &[&Tensor]) -> Result<Self> {
        let raw: Vec<_> = tensors.iter().map(|tensor| tensor.share().cast_const()).collect();
        // SAFETY: an open runtime or NULL; open tensors and their number.
        unsafe { made(|out| sys::dtg_dataset_tensors(runtime.raw(), raw.as_ptr(), raw.len(), out)) }
    }

    /// int64 scalars start, start + step, ... up to, not including, stop.
    #[track_caller]
    pub fn range(start: i64, stop: i64, step: i64) -> Result<Self> {
        Self::range_in(&Runtime::default(), start, stop, step)
    }

    /// As [`Dataset::range`], under the memory limit of a runtime.
    #[track_caller]
    pub fn range_in(runtime: &Runtime, start: i64, stop: i64, step: i64) -> Result<Self> {
        // SAFETY: an open runtime or NULL.
        unsafe { made(|out| sys::dtg_dataset_range(runtime.raw(), start, stop, step, out)) }
    }

    /// IDX files, the format of MNIST and its family, plain or gzip: one component per file. Errors: `NotFound`, `DataLoss`,
    /// `InvalidArgument`, `ResourceExhausted`.
    #[track_caller]
    pub fn idx(paths: &[impl AsRef<Path>]) -> Result<Self> {
        Self::idx_in(&Runtime::default(), paths)
    }

    /// As [`Dataset::idx`], under the memory limit of a runtime.
    #[track_caller]
    pub fn idx_in(runtime: &Runtime, paths: &[impl AsRef<Path>]) -> Result<Self> {
        let raw = placed(Texts::new(paths.iter().map(|path| path.as_ref().as_os_str().as_bytes()), "the path"))?;
        // SAFETY: an open runtime or NULL; texts that end with NUL and their number.
        unsafe { made(|out| sys::dtg_dataset_idx(runtime.raw(), raw.as_ptr(), raw.len(), out)) }
    }

    /// The rows of a CSV file, plain or gzip. Whole numbers are int64, other numbers float32, anything else names, numbered in sorted
    /// order. Errors: `NotFound` (no file, no such column), `DataLoss`, `InvalidArgument`, `ResourceExhausted`.
    #[track_caller]
    pub fn csv(path: impl AsRef<Path>, options: &Csv<'_>) -> Result<Self> {
        Self::csv_in(&Runtime::default(), path, options)
    }

    /// As [`Dataset::csv`], under the memory limit of a runtime.
    #[track_caller]
    pub fn csv_in(runtime: &Runtime, path: impl AsRef<Path>, options: &Csv<'_>) -> Result<Self> {
        let path = path.as_ref().as_os_str().as_bytes();
        let names = placed(columns(options.columns))?;
        let raw = sys::dtg_csv_options {
            label: name_of(options.label).0,
            label_len: options.label.map_or(0, str::len),
            columns: names.or_null(),
            num_columns: names.len(),
            header: match options.header {
                Header::Auto => 0,
                Header::Yes => 1,
                Header::No => 2,
            },
            missing: options.missing.number(),
            delimiter: options.delimiter.map_or(0, i32::from),
            schema: name_of(options.schema).0,
            schema_len: options.schema.map_or(0, str::len),
            ..sys::dtg_csv_options::INIT
        };
        // SAFETY: an open runtime or NULL; a text with its length, options that outlive the call.
        unsafe { made(|out| sys::dtg_dataset_csv(runtime.raw(), path.as_ptr().cast(), path.len(), &raw, out)) }
    }

    /// NumPy's .npy files, plain or gzip: one component per file, with equal numbers of rows. A tensor has the type of its array. Errors:
    /// `NotFound`, `DataLoss` (not NumPy's, cut), `Unimplemented` (big-endian numbers, Python objects, texts, dates, structures),
    /// `InvalidArgument`, `ResourceExhausted`.
    #[track_caller]
    pub fn npy(paths: &[impl AsRef<Path>]) -> Result<Self> {
        Self::npy_in(&Runtime::default(), paths)
    }

    /// As [`Dataset::npy`], under the memory limit of a runtime.
    #[track_caller]
    pub fn npy_in(runtime: &Runtime, paths: &[impl AsRef<Path>]) -> Result<Self> {
        let raw = placed(Texts::new(paths.iter().map(|path| path.as_ref().as_os_str().as_bytes()), "the path"))?;
        // SAFETY: an open runtime or NULL; texts that end with NUL and their number.
        unsafe { made(|out| sys::dtg_dataset_npy(runtime.raw(), raw.as_ptr(), raw.len(), out)) }
    }

    /// Arrays of a .npz file, one component per name, in that order; without names all of them. Errors: those of [`Dataset::npy`], and
    /// `NotFound` for a name that is not there, with those that are.
    #[track_caller]
    pub fn npz(path: impl AsRef<Path>, names: &[&str]) -> Result<Self> {
        Self::npz_in(&Runtime::default(), path, names)
    }

    /// As [`Dataset::npz`], under the memory limit of a runtime.
    #[track_caller]
    pub fn npz_in(runtime: &Runtime, path: impl AsRef<Path>, names: &[&str]) -> Result<Self> {
        let path = path.as_ref().as_os_str().as_bytes();
        let raw = placed(Texts::new(names, "the name"))?;
        // SAFETY: an open runtime or NULL; a text with its length, texts that end with NUL and their number.
        unsafe { made(|out| sys::dtg_dataset_npz(runtime.raw(), path.as_ptr().cast(), path.len(), raw.as_ptr(), raw.len(), out)) }
    }

    /// The tf.Example messages of TFRecord files, plain or gzip, in the order of the files. They are read as they are needed, so errors of
    /// theirs are those of the elements: `NotFound`, `DataLoss` (a bad checksum or a torn file, with record and byte; a feature that is
    /// lacking or other than said).
    #[track_caller]
    pub fn tfrecord(paths: &[impl AsRef<Path>], features: &[Feature<'_>]) -> Result<Self> {
        Self::tfrecord_in(&Runtime::default(), paths, features)
    }

    /// As [`Dataset::tfrecord`], under the memory limit of a runtime.
    #[track_caller]
    pub fn tfrecord_in(runtime: &Runtime, paths: &[impl AsRef<Path>], features: &[Feature<'_>]) -> Result<Self> {
        let raw = placed(Texts::new(paths.iter().map(|path| path.as_ref().as_os_str().as_bytes()), "the path"))?;
        let words = format!("[{}]", features.iter().map(Feature::words).collect::<Vec<_>>().join(", "));
        // SAFETY: an open runtime or NULL; texts that end with NUL and their number, a text with its length.
        unsafe {
            made(|out| sys::dtg_dataset_tfrecord(runtime.raw(), raw.as_ptr(), raw.len(), words.as_ptr().cast(), words.len(), out))
        }
    }

    /// The rows of a file of JSON lines, one object per line, plain or gzip. Whole numbers and bools are int64, other numbers float32,
    /// texts names, numbered in sorted order, lists of numbers components of that shape. Errors: `NotFound`, `DataLoss` (a bad row, with
    /// file, line and column), `InvalidArgument`, `ResourceExhausted`.
    #[track_caller]
    pub fn json_lines(path: impl AsRef<Path>, options: &JsonLines<'_>) -> Result<Self> {
        Self::json_lines_in(&Runtime::default(), path, options)
    }

    /// As [`Dataset::json_lines`], under the memory limit of a runtime.
    #[track_caller]
    pub fn json_lines_in(runtime: &Runtime, path: impl AsRef<Path>, options: &JsonLines<'_>) -> Result<Self> {
        let path = path.as_ref().as_os_str().as_bytes();
        let names = placed(columns(options.columns))?;
        let raw = sys::dtg_json_lines_options {
            label: name_of(options.label).0,
            label_len: options.label.map_or(0, str::len),
            columns: names.or_null(),
            num_columns: names.len(),
            missing: options.missing.number(),
            skip_bad_rows: options.skip_bad_rows.into(),
            schema: name_of(options.schema).0,
            schema_len: options.schema.map_or(0, str::len),
            ..sys::dtg_json_lines_options::INIT
        };
        // SAFETY: an open runtime or NULL; a text with its length, options that outlive the call.
        unsafe { made(|out| sys::dtg_dataset_json_lines(runtime.raw(), path.as_ptr().cast(), path.len(), &raw, out)) }
    }

    /// The rows of a stream of tables through the Arrow C data interface, such as an `FFI_ArrowArrayStream` of the crate `arrow`. Numbers and
    /// bools keep their type, fixed-size lists of them are components of that shape, texts and dictionaries of texts are numbered in
    /// sorted order; a column that comes in one piece without missing values is not copied. Errors: `NotFound`, `DataLoss` (a missing
    /// value, with row and column; the stream's own errors), `InvalidArgument`, `Unimplemented` (other types, by name),
    /// `ResourceExhausted`.
    ///
    /// # Safety
    /// `stream` points to a filled ArrowArrayStream of that interface, whose arrays are what its schema says. It is taken over, also where
    /// this fails: its `release` is NULL afterwards.
    #[track_caller]
    pub unsafe fn arrow(stream: *mut c_void, options: &Arrow<'_>) -> Result<Self> {
        // SAFETY: the caller says so.
        unsafe { Self::arrow_in(&Runtime::default(), stream, options) }
    }

    /// As [`Dataset::arrow`], under the memory limit of a runtime.
    ///
    /// # Safety
    /// As for [`Dataset::arrow`].
    #[track_caller]
    pub unsafe fn arrow_in(runtime: &Runtime, stream: *mut c_void, options: &Arrow<'_>) -> Result<Self> {
        let names = placed(columns(options.columns))?;
        let raw = sys::dtg_arrow_options {
            label: name_of(options.label).0,
            label_len: options.label.map_or(0, str::len),
            columns: names.or_null(),
            num_columns: names.len(),
            missing: options.missing.number(),
            schema: name_of(options.schema).0,
            schema_len: options.schema.map_or(0, str::len),
            ..sys::dtg_arrow_options::INIT
        };
        // SAFETY: an open runtime or NULL; a stream as the caller says, options that outlive the call.
        unsafe { made(|out| sys::dtg_dataset_arrow(runtime.raw(), stream.cast(), &raw, out)) }
    }

    pub(crate) fn adopt(handle: Handle<sys::dtg_dataset>) -> Self {
        Self(handle, false)
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
    #[track_caller]
    pub(crate) fn with(self, add: impl FnOnce(*mut sys::dtg_dataset) -> *mut sys::dtg_error) -> Result<Self> {
        // SAFETY: the answer of a function of the ABI.
        unsafe { built(add(self.raw())) }?;
        Ok(self)
    }

    /// Draws at random from a buffer of that many elements; 0: from the whole epoch. Every epoch has an order of its own.
    #[track_caller]
    pub fn shuffle(self, buffer: i64, seed: u64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_shuffle(data, buffer, seed) })
    }

    /// The same order in every epoch.
    #[track_caller]
    pub fn shuffle_once(self, buffer: i64, seed: u64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_shuffle_once(data, buffer, seed) })
    }

    /// A component as float32, (x - shift) / scale for each feature along its last dimension, by the text that
    /// [`Dataset::fit_normalization`] found: fit on what is trained on, apply to that and to everything else.
    #[track_caller]
    pub fn normalize(self, component: usize, normalization: &str) -> Result<Self> {
        let (text, length) = (normalization.as_ptr().cast(), normalization.len());
        // SAFETY: an open data set, owned, a text with its length.
        self.with(|data| unsafe { sys::dtg_dataset_normalize(data, component, text, length) })
    }

    // The others are given up whether that goes well or not.
    #[track_caller]
    fn combine(
        self,
        others: Vec<Dataset>,
        add: impl FnOnce(*mut sys::dtg_dataset, *const *mut sys::dtg_dataset, usize) -> *mut sys::dtg_error,
    ) -> Result<Self> {
        let raw: Vec<_> = others.iter().map(Dataset::raw).collect();
        self.with(|data| add(data, raw.as_ptr(), raw.len()))
    }

    /// The components of all, side by side, until the first ends. No element may have been taken from any since its last restart.
    #[track_caller]
    pub fn zip_with(self, others: Vec<Dataset>) -> Result<Self> {
        // SAFETY: open data sets, owned, and their number.
        self.combine(others, |data, all, count| unsafe { sys::dtg_dataset_zip(data, all, count) })
    }

    /// The elements of the others after its own; components must be of equal number and types, and tables mean the same by their names and
    /// columns: read the second by the schema of the first.
    #[track_caller]
    pub fn concatenate(self, others: Vec<Dataset>) -> Result<Self> {
        // SAFETY: open data sets, owned, and their number.
        self.combine(others, |data, all, count| unsafe { sys::dtg_dataset_concatenate(data, all, count) })
    }

    /// `block` elements of each in turn, itself first, without those that have ended.
    #[track_caller]
    pub fn interleave(self, others: Vec<Dataset>, block: i64) -> Result<Self> {
        // SAFETY: open data sets, owned, and their number.
        self.combine(others, |data, all, count| unsafe { sys::dtg_dataset_interleave(data, all, count, block) })
    }

    /// Keeps the elements of the first epoch in memory and hands them out again in every epoch; a shuffle before it shuffles once.
    #[track_caller]
    pub fn cache(self) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_cache(data) })
    }

    /// Windows of the elements k * shift, k * shift + stride, ..., `size` of them, stacked; those at the end that are not whole are handed out
    /// or dropped.
    #[track_caller]
    pub fn window(self, size: i64, shift: i64, stride: i64, drop_remainder: bool) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_window(data, size, shift, stride, drop_remainder.into()) })
    }

    /// As [`Dataset::batch`] for elements of different sizes: each is made as long as the longest of its batch, with `padding`.
    #[track_caller]
    pub fn padded_batch(self, size: i64, drop_remainder: bool, padding: f64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_padded_batch(data, size, drop_remainder.into(), padding) })
    }

    /// Padded batches of elements of like length, the first dimension of a component: rising `boundaries` make a bucket more than there are
    /// of them, each with a size of its batches.
    #[track_caller]
    pub fn bucket_batch(
        self,
        component: usize,
        boundaries: &[i64],
        sizes: &[i64],
        drop_remainder: bool,
        padding: f64,
    ) -> Result<Self> {
        let (edges, count) = (boundaries.as_ptr(), boundaries.len());
        let drop = drop_remainder.into();
        // SAFETY: an open data set, owned, and two slices with their lengths.
        self.with(|data| unsafe {
            sys::dtg_dataset_bucket_batch(data, component, edges, count, sizes.as_ptr(), sizes.len(), drop, padding)
        })
    }

    /// Stacks `size` elements along a new first dimension; a shorter last batch is handed out or dropped.
    #[track_caller]
    pub fn batch(self, size: i64, drop_remainder: bool) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_batch(data, size, drop_remainder.into()) })
    }

    /// Keeps elements index, index + count, ...: what one of `count` workers trains on.
    #[track_caller]
    pub fn shard(self, count: i64, index: i64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_shard(data, count, index) })
    }

    /// The same for the batches of one job: a worker that finds fewer elements than workers reports `InvalidArgument` at its first
    /// element, instead of training alone.
    #[track_caller]
    pub fn auto_shard(self, count: i64, index: i64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_auto_shard(data, count, index) })
    }

    /// Cuts every batch along the first dimension into `parts` batches of ceil(rows / parts) rows.
    #[track_caller]
    pub fn rebatch(self, parts: i64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_rebatch(data, parts) })
    }

    /// `count` epochs as one; negative: for ever.
    #[track_caller]
    pub fn repeat(self, count: i64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_repeat(data, count) })
    }

    /// The first `count` elements. (Not [`Iterator::take`], which takes them from this epoch alone.)
    #[track_caller]
    pub fn take_first(self, count: i64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_take(data, count) })
    }

    /// All but the first `count` elements. (Not [`Iterator::skip`], which skips them in this epoch alone.)
    #[track_caller]
    pub fn skip_first(self, count: i64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_skip(data, count) })
    }

    /// A component as float32, divided by `divisor` (255 for pixels).
    #[track_caller]
    pub fn scale(self, component: usize, divisor: f64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_scale(data, component, divisor) })
    }

    /// A component as float32, float64, int32 or int64.
    #[track_caller]
    pub fn cast(self, component: usize, dtype: DType) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_cast(data, component, dtype.0) })
    }

    /// Keeps up to `count` elements ready, made by a thread of the data set's own.
    #[track_caller]
    pub fn prefetch(self, count: i64) -> Result<Self> {
        // SAFETY: an open data set, owned.
        self.with(|data| unsafe { sys::dtg_dataset_prefetch(data, count) })
    }

    // ---- parts, and what is found out ----

    /// Two data sets without a row in common: one to train on, one that is held out to test with. Which row goes where is decided by the
    /// seed alone; the order within both is that of `self`, which stays as it was. Elements must be rows of tensors or files, so split before
    /// batch, prefetch and repeat, and before [`Dataset::normalize`]. Errors: `InvalidArgument` (numbers out of range, no such rows or
    /// classes, a part without rows).
    #[track_caller]
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
        let train = unsafe { placed(Handle::create(|out| sys::dtg_dataset_split(self.raw(), &raw, out, &mut held_out))) }?;
        // SAFETY: where the first answer was given, so was the second.
        let held_out = unsafe { Handle::adopt(held_out) }
            .ok_or_else(|| Error::found(ErrorKind::Internal, "libdtg split a data set and gave one part; please report it"))?;
        Ok((Self(train, false), Self(held_out, false)))
    }

    /// The numbers for [`Dataset::normalize`] and [`Model::normalize`](crate::Model::normalize), as JSON, found by one look at all of a
    /// component; the data set stays where it stood. Ask before batch, and after a split what is trained on: the numbers of all rows would tell
    /// the training of what is held out. Keep the text with the weights by [`Model::set_metadata`](crate::Model::set_metadata). Errors:
    /// `InvalidArgument` (no elements, or one that is NaN or infinite), `OutOfRange`.
    #[track_caller]
    pub fn fit_normalization(&mut self, component: usize, kind: NormalizationKind) -> Result<String> {
        let kind = match kind {
            NormalizationKind::Standard => sys::DTG_NORMALIZE_STANDARD,
            NormalizationKind::Range => sys::DTG_NORMALIZE_RANGE,
        };
        // SAFETY: an open data set, borrowed mutably.
        unsafe { placed(string(|out| sys::dtg_dataset_fit_normalization(self.raw(), component, kind, out))) }
    }

    // ---- reading ----

    /// The tensors of the next element; None at the end of the data, and until [`Dataset::restart`], of which the log tells whoever asks
    /// again, once. Errors: those of the source.
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

    /// What was found out about the columns of a CSV file or of JSON lines, as JSON: give it to the reading of other files ([`Csv::schema`]), so that names
    /// have the same numbers and missing values the same means there; keep it with the weights by
    /// [`Model::set_metadata`](crate::Model::set_metadata). Errors: `FailedPrecondition` (not from a CSV file).
    pub fn schema(&self) -> Result<String> {
        // SAFETY: an open data set.
        unsafe { string(|out| sys::dtg_dataset_schema(self.raw(), out)) }
    }

    /// How many rows the source passed over as bad, and why, for the first ten of them, a line each.
    pub fn bad_rows(&self) -> Result<(i64, String)> {
        let mut count = 0;
        // SAFETY: an open data set, a place for the count.
        let why = unsafe { string(|out| sys::dtg_dataset_bad_rows(self.raw(), &mut count, out)) }?;
        Ok((count, why))
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
        self.1 = false; // who iterates goes on there
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
