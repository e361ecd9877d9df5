//! What a program does to the elements of a data set: functions of a graph, closures, and sources of its own. Closures are called by
//! whoever asks for an element, or on the thread of a `prefetch` behind them; one call at a time for each.

use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};

use dtg_sys as sys;

use crate::control::{Function, Values};
use crate::dataset::{Dataset, made};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, check, contained, placed};
use crate::graph::{Graph, Value};
use crate::handle::Handle;
use crate::runtime::Runtime;
use crate::session::Session;
use crate::tensor::Tensor;

/// How elements are given to a function of a graph; write `..Default::default()` for what is not said.
#[derive(Debug, Clone, Copy, Default)]
pub struct MapOptions<'a> {
    /// Elements worked on at once, on the compute threads, up to 1,024; they come in the order of the source anyway. None: one, by
    /// whoever asks for it; 0: as many as there are compute threads.
    pub parallel: Option<i32>,
    /// The function gets one argument more, its last: int64 `[2]`, the numbers of the epoch and of the element in it, for the stateless
    /// random ops.
    pub seed: bool,
    /// The graph that the function is built in, whose values it may use, and the session that tells, now, what they are, also what was
    /// read of variables. None: a graph of its own.
    pub around: Option<(&'a Graph, &'a Session)>,
}

/// What one tensor of every element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Component<'a> {
    /// Its type.
    pub dtype: DType,
    /// Its shape, -1 where that is not the same for all; None: not even the rank is known.
    pub shape: Option<&'a [i64]>,
}

impl<'a> Component<'a> {
    /// Of that type and shape.
    #[must_use]
    pub fn new(dtype: DType, shape: &'a [i64]) -> Self {
        Self { dtype, shape: Some(shape) }
    }

    fn raw(list: &[Self]) -> Vec<sys::dtg_component> {
        let one = |component: &Self| sys::dtg_component {
            dtype: component.dtype.0,
            rank: component.shape.map_or(-1, |dims| i32::try_from(dims.len()).unwrap_or(i32::MAX)),
            dims: component.shape.map_or(null(), <[i64]>::as_ptr),
        };
        list.iter().map(one).collect()
    }
}

type Rows = Box<dyn Iterator<Item = Result<Vec<Tensor>>> + Send>;
type Change = Box<dyn FnMut(&[Tensor]) -> Result<Vec<Tensor>> + Send>;
type Keep = Box<dyn FnMut(&[Tensor]) -> Result<bool> + Send>;

struct Source {
    begin: Box<dyn FnMut(i64) -> Rows + Send>,
    rows: Option<Rows>,
}

impl Dataset {
    /// Elements become what a function of a graph gives for them: its arguments are the components. It may stand before
    /// [`Dataset::batch`] or behind it, which is faster. Errors: `InvalidArgument` (an op that is more than a function of its inputs,
    /// which is named; no results), `Unimplemented` (strings). Semantics: Dataset.map, deterministic.
    ///
    /// ```
    /// use dtg::{Dataset, MapOptions, ops};
    ///
    /// let square = |body: &dtg::Graph, x: &[dtg::Value]| ops::mul(body, x[0], x[0]).build();
    /// let mut data = Dataset::range(0, 4, 1)?.map_graph(square, &MapOptions { parallel: Some(2), ..Default::default() })?;
    /// let squares = data.by_ref().map(|x| x?[0].to_scalar::<i64>()).collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(squares, [0, 1, 4, 9]);
    /// # Ok::<(), dtg::Error>(())
    /// ```
    #[track_caller]
    pub fn map_graph<R: Values>(self, build: impl FnOnce(&Graph, &[Value]) -> Result<R>, options: &MapOptions<'_>) -> Result<Self> {
        let function = self.function("map", build, options)?;
        let raw = options.raw();
        // SAFETY: an open data set, owned, an open function, options that outlive the call.
        placed(self.with(|data| unsafe { sys::dtg_dataset_map(data, function.raw(), &raw) }))
    }

    /// The elements for which a function of a graph, which gives one bool, gives true. Else as [`Dataset::map_graph`]. Semantics:
    /// Dataset.filter.
    #[track_caller]
    pub fn filter_graph(self, build: impl FnOnce(&Graph, &[Value]) -> Result<Value>, options: &MapOptions<'_>) -> Result<Self> {
        let function = self.function("filter", build, options)?;
        let raw = options.raw();
        // SAFETY: an open data set, owned, an open function, options that outlive the call.
        placed(self.with(|data| unsafe { sys::dtg_dataset_filter(data, function.raw(), &raw) }))
    }

    #[track_caller]
    fn function<R: Values>(
        &self,
        name: &str,
        build: impl FnOnce(&Graph, &[Value]) -> Result<R>,
        options: &MapOptions<'_>,
    ) -> Result<Function> {
        let own;
        let graph = match options.around {
            Some((graph, _)) => graph,
            None => {
                own = Graph::new()?;
                &own
            }
        };
        let arguments = |body: &Graph| {
            let mut values = vec![Value(Value::NONE); self.component_count() + usize::from(options.seed)];
            // SAFETY: an open data set and an open body; room for a value of each argument (Value is a dtg_value).
            unsafe { check(sys::dtg_dataset_add_arguments(self.raw(), body.raw(), values.as_mut_ptr().cast(), values.len())) }?;
            Ok(values)
        };
        graph.function_of(name, arguments, build)
    }

    /// Elements become what `change` makes of them: tensors as `components` says. The arguments may be among the results, cloned. An error
    /// is that of the element, with its code and message; a panic is `Internal`. Semantics: Dataset.map of a py_function.
    #[track_caller]
    pub fn map_elements(
        self,
        components: &[Component<'_>],
        change: impl FnMut(&[Tensor]) -> Result<Vec<Tensor>> + Send + 'static,
    ) -> Result<Self> {
        let raw = Component::raw(components);
        let user = Box::into_raw(Box::new(Box::new(change) as Change));
        // SAFETY: an open data set, owned; a closure that is the library's once this has succeeded, and may be called and freed on any
        // thread, one at a time; components that outlive the call.
        let made = self.with(|data| unsafe {
            sys::dtg_dataset_map_host(data, Some(map_one), user.cast(), Some(free::<Change>), raw.as_ptr(), raw.len())
        });
        // SAFETY: on failure `user_free` is not called (dtg/map.h), so the closure is still ours.
        made.inspect_err(|_| drop(unsafe { Box::from_raw(user) }))
    }

    /// The elements that `keep` wants. Else as [`Dataset::map_elements`].
    #[track_caller]
    pub fn filter_elements(self, keep: impl FnMut(&[Tensor]) -> Result<bool> + Send + 'static) -> Result<Self> {
        let user = Box::into_raw(Box::new(Box::new(keep) as Keep));
        // SAFETY: as in map_elements.
        let made =
            self.with(|data| unsafe { sys::dtg_dataset_filter_host(data, Some(filter_one), user.cast(), Some(free::<Keep>)) });
        // SAFETY: as in map_elements.
        made.inspect_err(|_| drop(unsafe { Box::from_raw(user) }))
    }

    /// The elements that a program gives: `epoch` begins an epoch, by its number, from which an order may be made; a place that is gone to
    /// may be in any. `cardinality` is how many there are in each, which is then held to it. Semantics: Dataset.from_generator.
    ///
    /// ```
    /// use dtg::{Component, DType, Dataset, Tensor};
    ///
    /// let rows = |epoch: i64| (0..3).map(move |i| Ok(vec![Tensor::scalar(10 * epoch + i)?]));
    /// let mut data = Dataset::from_epochs(&[Component::new(DType::I64, &[])], Some(3), rows)?.batch(3, false)?;
    /// assert_eq!(data.next_element()?.unwrap()[0].as_slice::<i64>()?, [0, 1, 2]);
    /// data.restart()?;
    /// assert_eq!(data.next_element()?.unwrap()[0].as_slice::<i64>()?, [10, 11, 12]);
    /// # Ok::<(), dtg::Error>(())
    /// ```
    #[track_caller]
    pub fn from_epochs<I>(
        components: &[Component<'_>],
        cardinality: Option<usize>,
        epoch: impl FnMut(i64) -> I + Send + 'static,
    ) -> Result<Self>
    where
        I: IntoIterator<Item = Result<Vec<Tensor>>>,
        I::IntoIter: Send + 'static,
    {
        Self::from_epochs_in(&Runtime::default(), components, cardinality, epoch)
    }

    /// As [`Dataset::from_epochs`], under the memory limit of a runtime.
    #[track_caller]
    pub fn from_epochs_in<I>(
        runtime: &Runtime,
        components: &[Component<'_>],
        cardinality: Option<usize>,
        mut epoch: impl FnMut(i64) -> I + Send + 'static,
    ) -> Result<Self>
    where
        I: IntoIterator<Item = Result<Vec<Tensor>>>,
        I::IntoIter: Send + 'static,
    {
        let raw = Component::raw(components);
        let begin = Box::new(move |number| Box::new(epoch(number).into_iter()) as Rows);
        let user = Box::into_raw(Box::new(Source { begin, rows: None }));
        let source = sys::dtg_host_source {
            user: user.cast(),
            user_free: Some(free::<Source>),
            components: raw.as_ptr(),
            num_components: raw.len(),
            next: Some(source_next),
            restart: Some(source_restart),
            cardinality: cardinality.map_or(-2, |count| i64::try_from(count).unwrap_or(i64::MAX)),
            ..sys::dtg_host_source::INIT
        };
        // SAFETY: an open runtime or NULL; a struct that outlives the call, and a closure as in map_elements.
        let made = unsafe { made(|out| sys::dtg_dataset_host(runtime.raw(), &source, out)) };
        // SAFETY: as in map_elements.
        made.inspect_err(|_| drop(unsafe { Box::from_raw(user) }))
    }
}

impl MapOptions<'_> {
    fn raw(&self) -> sys::dtg_map_options {
        sys::dtg_map_options {
            parallel: self.parallel.unwrap_or(1),
            session: self.around.map_or(null_mut(), |(_, session)| session.raw()),
            ..sys::dtg_map_options::INIT
        }
    }
}

// ---- as C calls them ---------------------------------------------------------------------------------------

/// What was thrown, in words. It is not dropped: that could panic too.
fn thrown(what: Box<dyn Any + Send>) -> Error {
    let said = what.downcast_ref::<&str>().map(|text| (*text).to_owned()).or_else(|| what.downcast_ref::<String>().cloned());
    std::mem::forget(what);
    Error::found(ErrorKind::Internal, format!("a function of the program panicked: {}", said.unwrap_or_default()))
}

/// The end of a call of the program's: an error, or a panic, which ends here, becomes one of the library's.
fn ask(call: impl FnOnce() -> Result<()>) -> *mut sys::dtg_error {
    match catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|what| Err(thrown(what))) {
        Ok(()) => null_mut(),
        // SAFETY: a text with its length.
        Err(error) => unsafe { sys::dtg_error_create(error.code(), error.message().as_ptr().cast(), error.message().len()) },
    }
}

/// # Safety
/// `count` open tensors.
unsafe fn lent(arguments: *const *mut sys::dtg_tensor, count: usize) -> Vec<Tensor> {
    (0..count)
        .filter_map(|i| {
            // SAFETY: the caller says so; the reference that is added is ours.
            unsafe { Handle::adopt(sys::dtg_tensor_retain(*arguments.add(i))) }
        })
        .map(Tensor::adopt_shared)
        .collect()
}

/// # Safety
/// `results` has room for `room` tensors.
unsafe fn give(made: &[Tensor], results: *mut *mut sys::dtg_tensor, room: usize) -> Result<()> {
    if made.len() != room {
        let text = format!("the function gave {} tensors, announced were {room}", made.len());
        return Err(Error::found(ErrorKind::InvalidArgument, text));
    }
    for (i, tensor) in made.iter().enumerate() {
        // SAFETY: there is room; a reference of the library's own to an open tensor.
        unsafe { *results.add(i) = sys::dtg_tensor_retain(tensor.share()) };
    }
    Ok(())
}

unsafe extern "C" fn map_one(
    user: *mut c_void,
    arguments: *const *mut sys::dtg_tensor,
    count: usize,
    results: *mut *mut sys::dtg_tensor,
    room: usize,
) -> *mut sys::dtg_error {
    // SAFETY: `user` is the closure, which nobody else uses now; arrays of that length.
    ask(|| unsafe { give(&(*user.cast::<Change>())(&lent(arguments, count))?, results, room) })
}

unsafe extern "C" fn filter_one(
    user: *mut c_void,
    arguments: *const *mut sys::dtg_tensor,
    count: usize,
    keep: *mut i32,
) -> *mut sys::dtg_error {
    // SAFETY: `user` is the closure, which nobody else uses now; an array of that length, a place for the answer.
    ask(|| unsafe {
        *keep = (*user.cast::<Keep>())(&lent(arguments, count))?.into();
        Ok(())
    })
}

unsafe extern "C" fn source_restart(user: *mut c_void, epoch: i64) -> *mut sys::dtg_error {
    ask(|| {
        // SAFETY: `user` is the source, which nobody else uses now.
        let source = unsafe { &mut *user.cast::<Source>() };
        source.rows = None;
        source.rows = Some((source.begin)(epoch));
        Ok(())
    })
}

unsafe extern "C" fn source_next(
    user: *mut c_void,
    results: *mut *mut sys::dtg_tensor,
    room: usize,
    more: *mut i32,
) -> *mut sys::dtg_error {
    ask(|| {
        // SAFETY: `user` is the source, which nobody else uses now.
        let source = unsafe { &mut *user.cast::<Source>() };
        let Some(row) = source.rows.as_mut().and_then(Iterator::next) else {
            // SAFETY: a place for the answer.
            unsafe { *more = 0 };
            return Ok(());
        };
        // SAFETY: room for that many tensors.
        unsafe { give(&row?, results, room) }
    })
}

unsafe extern "C" fn free<T>(user: *mut c_void) {
    // SAFETY: what was given away, once, by whoever names this function with its type.
    contained(|| drop(unsafe { Box::from_raw(user.cast::<T>()) }));
}
