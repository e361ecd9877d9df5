//! What a strategy of one's own does in its own way. Hooks are called by the thread that builds, inside the call that builds; they take
//! the model, and whatever else they need, from their surroundings.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::slice::from_raw_parts;

use dtg_sys as sys;

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Value;
use crate::group::Reduction;
use crate::handle::Texts;
use crate::model::Aggregation;

/// Where a custom strategy wants a variable: what [`Hooks::create_variable`] is asked, and what it may change.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VariablePlace {
    /// As asked for, without scopes. To change it changes nothing, as with type, shape and whether optimizers touch it.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// Its shape.
    pub dims: Vec<i64>,
    /// Optimizers change it.
    pub trainable: bool,
    /// Each replica writes its own, and who reads it from outside gets them combined. To be changed.
    pub on_read: bool,
    /// How what the replicas give becomes one value. To be changed.
    pub aggregation: Aggregation,
    /// Where the copies stand: none, as the options say; one, a copy that all replicas share; else one per replica. To be changed.
    pub devices: Vec<String>,
}

type Given<H> = Option<Box<H>>;
type CreateVariable<'m> = dyn Fn(&mut VariablePlace) -> Result<()> + 'm;
type Around<'m> = dyn Fn(usize) -> Result<()> + 'm;
type AroundUpdate<'m> = dyn Fn(&str, usize) -> Result<()> + 'm;
type Reduce<'m> = dyn Fn(Reduction, &[Value]) -> Result<Value> + 'm;
type BatchReduce<'m> = dyn Fn(Reduction, &[&[Value]]) -> Result<Vec<Value>> + 'm;
type ReadVariable<'m> = dyn Fn(&str, &[Value]) -> Result<Value> + 'm;
type Gather<'m> = dyn Fn(&[Value], i32) -> Result<Value> + 'm;
type LocalResults<'m> = dyn Fn(&[Value]) -> Result<Vec<Value>> + 'm;
type Spread<'m> = dyn Fn(Value, usize) -> Result<Vec<Value>> + 'm;

/// The steps of a custom strategy that are its own; whatever is not given is done as by `Mirrored`, or as by `CentralStorage` where a
/// device of variables is given. A hook that fails, or panics, fails the call that builds, and the model is as before. Hooks may add nodes
/// and call every function that their context allows. Semantics: the overridables of tf.distribute.StrategyExtended.
///
/// ```
/// use dtg::{CustomOptions, DType, Graph, Hooks, Initializer, Model, Optimizer, Reduction, Strategy, VariableSpec, ops};
///
/// let model = Model::new(Graph::new()?, 1)?;
/// // The sum of gradients, from the last replica to the first.
/// let hooks = Hooks::new().reduce_to(|_, parts| {
///     parts[1..].iter().try_fold(parts[0], |sum, part| Ok(ops::add_v2(&model, *part, sum).build()?))
/// });
/// let options = CustomOptions { devices: &["CPU:0", "CPU:1"], ..Default::default() };
/// let strategy = Strategy::custom(&model, &options, hooks)?;
/// strategy.scope(|| {
///     let losses = strategy.run(&[], |_, _| {
///         let weight = model.add_variable(&VariableSpec { initializer: Initializer::Constant(8.0), ..VariableSpec::new("w") })?;
///         Ok([ops::square(&model, weight.read).build()?])
///     })?;
///     strategy.minimize(losses[0], Reduction::Sum, &Optimizer::sgd(0.125))
/// })?;
/// # Ok::<(), dtg::Error>(())
/// ```
#[derive(Default)]
pub struct Hooks<'m> {
    create_variable: Given<CreateVariable<'m>>,
    begin_replica: Given<Around<'m>>,
    end_replica: Given<Around<'m>>,
    reduce_to: Given<Reduce<'m>>,
    batch_reduce_to: Given<BatchReduce<'m>>,
    broadcast_to: Given<Spread<'m>>,
    read_variable: Given<ReadVariable<'m>>,
    begin_update: Given<AroundUpdate<'m>>,
    end_update: Given<AroundUpdate<'m>>,
    gather: Given<Gather<'m>>,
    split: Given<Spread<'m>>,
    local_results: Given<LocalResults<'m>>,
    /// The devices that the last variable was given, which the library reads when the hook has returned.
    devices: RefCell<Texts>,
}

impl<'m> Hooks<'m> {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Before a variable is made: where its copies stand.
    #[must_use]
    pub fn create_variable(mut self, hook: impl Fn(&mut VariablePlace) -> Result<()> + 'm) -> Self {
        self.create_variable = Some(Box::new(hook));
        self
    }

    /// Before the function of each replica, with its number: for scopes of its own, which [`Hooks::end_replica`] leaves again.
    #[must_use]
    pub fn begin_replica(mut self, hook: impl Fn(usize) -> Result<()> + 'm) -> Self {
        self.begin_replica = Some(Box::new(hook));
        self
    }

    /// Behind the function of each replica.
    #[must_use]
    pub fn end_replica(mut self, hook: impl Fn(usize) -> Result<()> + 'm) -> Self {
        self.end_replica = Some(Box::new(hook));
        self
    }

    /// One value of those of the replicas; also for dense gradients, unless [`Hooks::batch_reduce_to`] is given.
    #[must_use]
    pub fn reduce_to(mut self, hook: impl Fn(Reduction, &[Value]) -> Result<Value> + 'm) -> Self {
        self.reduce_to = Some(Box::new(hook));
        self
    }

    /// The dense gradients of all variables at once: `parts[v][r]` is that of variable v in replica r; as many values as variables, which are
    /// applied to all copies. Gradients that are rows are joined by the library and stay rows.
    #[must_use]
    pub fn batch_reduce_to(mut self, hook: impl Fn(Reduction, &[&[Value]]) -> Result<Vec<Value>> + 'm) -> Self {
        self.batch_reduce_to = Some(Box::new(hook));
        self
    }

    /// A value for each of so many replicas.
    #[must_use]
    pub fn broadcast_to(mut self, hook: impl Fn(Value, usize) -> Result<Vec<Value>> + 'm) -> Self {
        self.broadcast_to = Some(Box::new(hook));
        self
    }

    /// What is read from outside of the variable of that name, which is synchronised on read, of the copies' reads.
    #[must_use]
    pub fn read_variable(mut self, hook: impl Fn(&str, &[Value]) -> Result<Value> + 'm) -> Self {
        self.read_variable = Some(Box::new(hook));
        self
    }

    /// Before each write of [`crate::Strategy::assign`] to a copy, with the variable's name and the copy's number.
    #[must_use]
    pub fn begin_update(mut self, hook: impl Fn(&str, usize) -> Result<()> + 'm) -> Self {
        self.begin_update = Some(Box::new(hook));
        self
    }

    /// Behind it.
    #[must_use]
    pub fn end_update(mut self, hook: impl Fn(&str, usize) -> Result<()> + 'm) -> Self {
        self.end_update = Some(Box::new(hook));
        self
    }

    /// All parts, one behind the other along an axis.
    #[must_use]
    pub fn gather(mut self, hook: impl Fn(&[Value], i32) -> Result<Value> + 'm) -> Self {
        self.gather = Some(Box::new(hook));
        self
    }

    /// A share of a batch for each of so many replicas: the distribution of data.
    #[must_use]
    pub fn split(mut self, hook: impl Fn(Value, usize) -> Result<Vec<Value>> + 'm) -> Self {
        self.split = Some(Box::new(hook));
        self
    }

    /// Which of the values this process has.
    #[must_use]
    pub fn local_results(mut self, hook: impl Fn(&[Value]) -> Result<Vec<Value>> + 'm) -> Self {
        self.local_results = Some(Box::new(hook));
        self
    }

    /// As C has them.
    pub(crate) fn raw(&self) -> sys::dtg_strategy_hooks {
        sys::dtg_strategy_hooks {
            create_variable: self.create_variable.as_ref().map(|_| create_variable as _),
            begin_replica: self.begin_replica.as_ref().map(|_| begin_replica as _),
            end_replica: self.end_replica.as_ref().map(|_| end_replica as _),
            reduce_to: self.reduce_to.as_ref().map(|_| reduce_to as _),
            batch_reduce_to: self.batch_reduce_to.as_ref().map(|_| batch_reduce_to as _),
            broadcast_to: self.broadcast_to.as_ref().map(|_| broadcast_to as _),
            read_variable: self.read_variable.as_ref().map(|_| read_variable as _),
            begin_update: self.begin_update.as_ref().map(|_| begin_update as _),
            end_update: self.end_update.as_ref().map(|_| end_update as _),
            gather: self.gather.as_ref().map(|_| gather as _),
            split: self.split.as_ref().map(|_| split as _),
            local_results: self.local_results.as_ref().map(|_| local_results as _),
            ..sys::dtg_strategy_hooks::INIT
        }
    }
}

impl fmt::Debug for Hooks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooks")
    }
}

// ---- as C calls them ---------------------------------------------------------------------------------------

/// The end of a hook: an error, or a panic, which ends here, becomes one of the library's.
///
/// # Safety
/// `user` is that of the options: hooks that live as long as their strategy.
unsafe fn ask<'a>(user: *mut c_void, call: impl FnOnce(&'a Hooks<'a>) -> Result<()>) -> *mut sys::dtg_error {
    // SAFETY: the caller says so.
    let hooks = unsafe { &*user.cast::<Hooks<'a>>() };
    let told = catch_unwind(AssertUnwindSafe(|| call(hooks))).unwrap_or_else(|thrown| {
        // What was thrown is not dropped: that could panic too.
        std::mem::forget(thrown);
        Err(Error::found(ErrorKind::Internal, "a hook of the strategy panicked"))
    });
    match told {
        Ok(()) => null_mut(),
        // SAFETY: a text with its length.
        Err(error) => unsafe { sys::dtg_error_create(error.code(), error.message().as_ptr().cast(), error.message().len()) },
    }
}

/// The hook that C was given: it is there.
fn given<H: ?Sized>(hook: &Given<H>) -> Result<&H> {
    hook.as_deref().ok_or_else(|| Error::found(ErrorKind::Internal, "libdtg asked for a hook that was not given; please report it"))
}

/// # Safety
/// An array of that length, which lives for 'a.
unsafe fn values<'a>(data: *const sys::dtg_value, count: usize) -> &'a [Value] {
    // SAFETY: the caller says so; Value has the layout of a dtg_value.
    if count == 0 { &[] } else { unsafe { from_raw_parts(data.cast(), count) } }
}

/// # Safety
/// `out` has room for `count` values.
unsafe fn give(made: &[Value], out: *mut sys::dtg_value, count: usize, what: &str) -> Result<()> {
    if made.len() != count {
        return Err(Error::found(ErrorKind::InvalidArgument, format!("{what} gave {} values; it has to give {count}", made.len())));
    }
    for (i, value) in made.iter().enumerate() {
        // SAFETY: there is room.
        unsafe { *out.add(i) = value.0 };
    }
    Ok(())
}

/// # Safety
/// A text of the library's that ends with NUL.
unsafe fn name_of(name: *const c_char) -> String {
    // SAFETY: the caller says so.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
}

unsafe extern "C" fn create_variable(
    user: *mut c_void,
    _: *mut sys::dtg_strategy,
    place: *mut sys::dtg_variable_place,
) -> *mut sys::dtg_error {
    // SAFETY: `user` is that of the options, `place` a struct of the library that is ours until we return.
    unsafe {
        ask(user, |hooks| {
            let place = &mut *place;
            let mut asked = VariablePlace {
                name: name_of(place.name),
                dtype: DType::from_number(place.dtype),
                dims: if place.rank == 0 { Vec::new() } else { from_raw_parts(place.dims, place.rank).to_vec() },
                trainable: place.trainable != 0,
                on_read: place.synchronization == sys::DTG_VARIABLE_ON_READ,
                aggregation: Aggregation::of(place.aggregation),
                devices: Vec::new(),
            };
            given(&hooks.create_variable)?(&mut asked)?;
            place.synchronization = if asked.on_read { sys::DTG_VARIABLE_ON_READ } else { sys::DTG_VARIABLE_ON_WRITE };
            place.aggregation = asked.aggregation.number();
            let devices = Texts::new(&asked.devices, "a device")?;
            place.devices = devices.as_ptr();
            place.num_devices = devices.len();
            hooks.devices.replace(devices);
            Ok(())
        })
    }
}

unsafe extern "C" fn begin_replica(user: *mut c_void, _: *mut sys::dtg_strategy, replica: i32) -> *mut sys::dtg_error {
    // SAFETY: `user` is that of the options.
    unsafe { ask(user, |hooks| given(&hooks.begin_replica)?(replica as usize)) }
}

unsafe extern "C" fn end_replica(user: *mut c_void, _: *mut sys::dtg_strategy, replica: i32) -> *mut sys::dtg_error {
    // SAFETY: `user` is that of the options.
    unsafe { ask(user, |hooks| given(&hooks.end_replica)?(replica as usize)) }
}

unsafe extern "C" fn reduce_to(
    user: *mut c_void,
    _: *mut sys::dtg_strategy,
    op: sys::dtg_reduction,
    parts: *const sys::dtg_value,
    count: usize,
    out: *mut sys::dtg_value,
) -> *mut sys::dtg_error {
    // SAFETY: `user` is that of the options; an array of that length, and room for one value.
    unsafe {
        ask(user, |hooks| {
            *out = given(&hooks.reduce_to)?(Reduction::of(op), values(parts, count))?.0;
            Ok(())
        })
    }
}

unsafe extern "C" fn batch_reduce_to(
    user: *mut c_void,
    _: *mut sys::dtg_strategy,
    op: sys::dtg_reduction,
    parts: *const sys::dtg_value,
    num_variables: usize,
    num_parts: usize,
    outs: *mut sys::dtg_value,
) -> *mut sys::dtg_error {
    // SAFETY: `user` is that of the options; an array of as many parts for each variable, and room for a value of each.
    unsafe {
        ask(user, |hooks| {
            let rows: Vec<&[Value]> = values(parts, num_variables * num_parts).chunks(num_parts.max(1)).collect();
            give(&given(&hooks.batch_reduce_to)?(Reduction::of(op), &rows)?, outs, num_variables, "batch_reduce_to")
        })
    }
}

unsafe extern "C" fn broadcast_to(
    user: *mut c_void,
    _: *mut sys::dtg_strategy,
    value: sys::dtg_value,
    outs: *mut sys::dtg_value,
    count: usize,
) -> *mut sys::dtg_error {
    // SAFETY: `user` is that of the options; room for that many values.
    unsafe { ask(user, |hooks| give(&given(&hooks.broadcast_to)?(Value(value), count)?, outs, count, "broadcast_to")) }
}

unsafe extern "C" fn read_variable(
    user: *mut c_void,
    _: *mut sys::dtg_strategy,
    name: *const c_char,
    reads: *const sys::dtg_value,
    count: usize,
    out: *mut sys::dtg_value,
) -> *mut sys::dtg_error {
    // SAFETY: `user` is that of the options; a text, an array of that length, and room for one value.
    unsafe {
        ask(user, |hooks| {
            *out = given(&hooks.read_variable)?(&name_of(name), values(reads, count))?.0;
            Ok(())
        })
    }
}

unsafe extern "C" fn begin_update(
    user: *mut c_void,
    _: *mut sys::dtg_strategy,
    name: *const c_char,
    copy: i32,
) -> *mut sys::dtg_error {
    // SAFETY: `user` is that of the options; a text.
    unsafe { ask(user, |hooks| given(&hooks.begin_update)?(&name_of(name), copy as usize)) }
}

unsafe extern "C" fn end_update(
    user: *mut c_void,
    _: *mut sys::dtg_strategy,
    name: *const c_char,
    copy: i32,
) -> *mut sys::dtg_error {
    // SAFETY: `user` is that of the options; a text.
    unsafe { ask(user, |hooks| given(&hooks.end_update)?(&name_of(name), copy as usize)) }
}

unsafe extern "C" fn gather(
    user: *mut c_void,
    _: *mut sys::dtg_strategy,
    parts: *const sys::dtg_value,
    count: usize,
    axis: i32,
    out: *mut sys::dtg_value,
) -> *mut sys::dtg_error {
    // SAFETY: `user` is that of the options; an array of that length, and room for one value.
    unsafe {
        ask(user, |hooks| {
            *out = given(&hooks.gather)?(values(parts, count), axis)?.0;
            Ok(())
        })
    }
}

unsafe extern "C" fn split(
    user: *mut c_void,
    _: *mut sys::dtg_strategy,
    value: sys::dtg_value,
    outs: *mut sys::dtg_value,
    count: usize,
) -> *mut sys::dtg_error {
    // SAFETY: `user` is that of the options; room for that many values.
    unsafe { ask(user, |hooks| give(&given(&hooks.split)?(Value(value), count)?, outs, count, "split")) }
}

unsafe extern "C" fn local_results(
    user: *mut c_void,
    _: *mut sys::dtg_strategy,
    all: *const sys::dtg_value,
    count: usize,
    outs: *mut sys::dtg_value,
    num_outs: *mut usize,
) -> *mut sys::dtg_error {
    // SAFETY: `user` is that of the options; an array of that length, room for as many values, and for a number.
    unsafe {
        ask(user, |hooks| {
            let made = given(&hooks.local_results)?(values(all, count))?;
            if made.len() > count {
                let text = format!("local_results gave {} values; it has to give some of {count}", made.len());
                return Err(Error::found(ErrorKind::InvalidArgument, text));
            }
            *num_outs = made.len();
            give(&made, outs, made.len(), "local_results")
        })
    }
}
