//! Functions, conditions and loops, their bodies built by closures. A body is a graph of its own that takes what it uses from the graph
//! around; the closure has it alone, so one thread builds.

use dtg_sys as sys;

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, built, check, placed};
use crate::graph::{Graph, Value};
use crate::handle::Handle;

/// What a loop carries, and what a branch or a function gives: one [`Value`], an array of them, or a vector where only the program
/// knows how many.
pub trait Values: Sized {
    /// The values in order.
    fn to_vec(&self) -> Vec<Value>;
    /// As many values, taken from a list. Errors: `InvalidArgument` when the list is of another length.
    fn of(values: &[Value]) -> Result<Self>;
}

impl Values for Value {
    fn to_vec(&self) -> Vec<Value> {
        vec![*self]
    }

    fn of(values: &[Value]) -> Result<Self> {
        <[Value; 1]>::of(values).map(|[value]| value)
    }
}

impl<const N: usize> Values for [Value; N] {
    fn to_vec(&self) -> Vec<Value> {
        self.as_slice().to_vec()
    }

    fn of(values: &[Value]) -> Result<Self> {
        let wrong = |_| invalid(format!("{} values are wanted, there are {}", N, values.len()));
        values.try_into().map_err(wrong)
    }
}

impl Values for Vec<Value> {
    fn to_vec(&self) -> Vec<Value> {
        self.clone()
    }

    fn of(values: &[Value]) -> Result<Self> {
        Ok(values.to_vec())
    }
}

fn invalid(message: String) -> Error {
    Error::found(ErrorKind::InvalidArgument, message)
}

/// What a [`Function`] takes from whoever calls it. In a loop its shape holds in every round.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Argument {
    /// Of the type and shape of that value, also a list or the handle of a variable.
    Like(Value),
    /// Of a type and a shape: -1 leaves a dimension open, None everything.
    Of(DType, Option<Vec<i64>>),
}

/// A body that was ended. It may be called any number of times from the graph that it was made in; nodes keep what they call.
#[derive(Clone)]
pub struct Function {
    handle: Handle<sys::dtg_function>,
    results: usize,
}

impl Function {
    pub(crate) fn raw(&self) -> *mut sys::dtg_function {
        self.handle.raw()
    }

    /// What it took from around, in the order of the arguments that stand for it, which come after those asked for: for nodes that are
    /// added with [`Graph::node`] and the function as an attribute, which must be given them as inputs. [`Graph::call`] sees to that.
    pub fn captures(&self) -> Result<Vec<Value>> {
        let mut count = 0;
        // SAFETY: an open function; nothing is written to an array without room.
        unsafe { check(sys::dtg_function_captures(self.raw(), std::ptr::null_mut(), 0, &mut count)) }?;
        let mut values = vec![Value(Value::NONE); count];
        // SAFETY: an open function, and an array with its length; Value is dtg_value (repr(transparent)).
        unsafe { check(sys::dtg_function_captures(self.raw(), values.as_mut_ptr().cast(), values.len(), &mut count)) }?;
        Ok(values)
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Function({} results)", self.results)
    }
}

impl Graph {
    /// Builds a function; `name` is for errors and traces. `build` gets the body and the arguments and gives the results; values of this
    /// graph and of those around it may be used in it as they are. Errors: those of `build`, `InvalidArgument` (a value of a graph that
    /// is not around), `Unimplemented` (it makes a variable or a queue of its own), `ResourceExhausted` (more than 64 levels).
    ///
    /// ```
    /// use dtg::{Argument, DType, Graph, Session, ops};
    ///
    /// let graph = Graph::new()?;
    /// let three = graph.scalar(3.0f32)?;
    /// let triple = graph.function("triple", &[Argument::Of(DType::F32, Some(vec![]))], |body, v| ops::mul(body, v[0], three).build())?;
    /// let nine = graph.call::<dtg::Value>(&triple, &[three])?;
    /// let session = Session::connect("local", &graph)?;
    /// assert_eq!(session.run().fetch(nine).call()?.scalar::<f32>(0)?, 9.0);
    /// # Ok::<(), dtg::Error>(())
    /// ```
    #[track_caller]
    pub fn function<R: Values>(
        &self,
        name: &str,
        arguments: &[Argument],
        build: impl FnOnce(&Self, &[Value]) -> Result<R>,
    ) -> Result<Function> {
        self.function_of(name, |body| arguments.iter().map(|argument| body.argument(argument)).collect(), build)
    }

    /// The same with arguments that whoever calls adds to the body.
    #[track_caller]
    pub(crate) fn function_of<R: Values>(
        &self,
        name: &str,
        arguments: impl FnOnce(&Self) -> Result<Vec<Value>>,
        build: impl FnOnce(&Self, &[Value]) -> Result<R>,
    ) -> Result<Function> {
        // SAFETY: an open graph, and a text with its length.
        let body =
            placed(unsafe { Handle::create(|out| sys::dtg_function_begin(self.raw(), name.as_ptr().cast(), name.len(), out)) })?;
        let body = Self::adopt(body);
        let given = placed(arguments(&body))?;
        let results = build(&body, &given)?.to_vec();
        let end = |out| {
            // SAFETY: an open graph of ours, an array with its length, and no controls.
            unsafe { sys::dtg_function_end(body.raw(), Value::raw(&results), results.len(), std::ptr::null(), 0, out) }
        };
        // SAFETY: as above.
        let handle = placed(unsafe { Handle::create(end) })?;
        Ok(Function { handle, results: results.len() })
    }

    #[track_caller]
    fn argument(&self, argument: &Argument) -> Result<Value> {
        let mut out = Value::NONE;
        // SAFETY: an open graph of ours; dimensions with their number.
        unsafe {
            built(match argument {
                Argument::Like(value) => sys::dtg_function_add_argument_like(self.raw(), value.0, &mut out),
                Argument::Of(dtype, shape) => {
                    let (dims, rank) =
                        shape.as_ref().map_or((std::ptr::null(), sys::DTG_STRLEN), |dims| (dims.as_ptr(), dims.len()));
                    sys::dtg_function_add_argument(self.raw(), dtype.0, dims, rank, &mut out)
                }
            })
        }?;
        Ok(Value(out))
    }

    /// Calls a function. Semantics: tf.function. Errors: `InvalidArgument` (arguments or results that do not fit, a function of another
    /// graph).
    #[track_caller]
    pub fn call<R: Values>(&self, function: &Function, arguments: &[Value]) -> Result<R> {
        calling(function.results, |outs, room| {
            // SAFETY: an open graph, an open function, arrays with their lengths.
            unsafe { sys::dtg_graph_add_call(self.raw(), function.raw(), Value::raw(arguments), arguments.len(), outs, room) }
        })
    }

    /// Runs `then` where `condition` is true (a number that is not 0, a tensor that is not empty), else `otherwise`; both give as many
    /// values of the same types. Only the branch that is taken runs. Semantics: tf.cond.
    ///
    /// ```
    /// use dtg::{DType, Graph, Session, Tensor, ops};
    ///
    /// let graph = Graph::new()?;
    /// let x = graph.placeholder("x", DType::F32, Some(&[]))?;
    /// let zero = graph.scalar(0.0f32)?;
    /// let positive = ops::greater(&graph, x, zero).build()?;
    /// let root = graph.if_else(positive, |body| ops::sqrt(body, x).build(), |body| body.scalar(-1.0f32))?;
    /// let session = Session::connect("local", &graph)?;
    /// assert_eq!(session.run().feed(x, &Tensor::scalar(9.0f32)?).fetch(root).call()?.scalar::<f32>(0)?, 3.0);
    /// # Ok::<(), dtg::Error>(())
    /// ```
    #[track_caller]
    pub fn if_else<R: Values>(
        &self,
        condition: Value,
        then: impl FnOnce(&Self) -> Result<R>,
        otherwise: impl FnOnce(&Self) -> Result<R>,
    ) -> Result<R> {
        let yes = self.function("then", &[], |body, _| then(body))?;
        let no = self.function("else", &[], |body, _| otherwise(body))?;
        calling(yes.results, |outs, room| {
            // SAFETY: an open graph, open functions, an array with its length.
            unsafe { sys::dtg_graph_add_if(self.raw(), condition.0, yes.raw(), no.raw(), outs, room) }
        })
    }

    /// Runs one of `branches` branches, that of number `index` (an int32, counted from 0; the last one for every other number). `build`
    /// is called once for each number. Semantics: tf.switch_case.
    ///
    /// ```
    /// use dtg::{DType, Graph, Session, Tensor, ops};
    ///
    /// let graph = Graph::new()?;
    /// let i = graph.placeholder("i", DType::I32, Some(&[]))?;
    /// let power = graph.switch_case(i, 3, |body, branch| body.scalar(10f32.powi(branch as i32)))?;
    /// let session = Session::connect("local", &graph)?;
    /// assert_eq!(session.run().feed(i, &Tensor::scalar(2i32)?).fetch(power).call()?.scalar::<f32>(0)?, 100.0);
    /// # Ok::<(), dtg::Error>(())
    /// ```
    #[track_caller]
    pub fn switch_case<R: Values>(
        &self,
        index: Value,
        branches: usize,
        mut build: impl FnMut(&Self, usize) -> Result<R>,
    ) -> Result<R> {
        let mut made = Vec::with_capacity(branches);
        for i in 0..branches {
            made.push(self.function("case", &[], |body, _| build(body, i))?);
        }
        let raw: Vec<_> = made.iter().map(|function| function.raw().cast_const()).collect();
        calling(made.first().map_or(0, |function| function.results), |outs, room| {
            // SAFETY: an open graph, open functions, arrays with their lengths.
            unsafe { sys::dtg_graph_add_case(self.raw(), index.0, raw.as_ptr(), raw.len(), outs, room) }
        })
    }

    /// Calls `body` on what it gave the last time, first on `start`, for as long as `condition` gives true; gives what there is at the
    /// end. A shape must stay what it is in `start`; where rounds change it, see [`Graph::while_loop_as`]. A loop that does not end is
    /// ended by the run's deadline or by cancelling it. Layers go into a body with [`Model::inside`](crate::Model::inside). Semantics:
    /// tf.while_loop.
    ///
    /// ```
    /// use dtg::{Graph, Session, ops};
    ///
    /// let graph = Graph::new()?;
    /// let (small, half) = (graph.scalar(0.01f32)?, graph.scalar(0.5f32)?);
    /// let start = [graph.scalar(0i32)?, graph.scalar(3.0f32)?];
    /// let [halvings, last] = graph.while_loop(
    ///     start,
    ///     |body, [_, x]| ops::greater(body, x, small).build(),
    ///     |body, [i, x]| {
    ///         let one = body.scalar(1i32)?;
    ///         Ok([ops::add_v2(body, i, one).build()?, ops::mul(body, x, half).build()?])
    ///     },
    /// )?;
    /// let session = Session::connect("local", &graph)?;
    /// let out = session.run().fetch(halvings).fetch(last).call()?;
    /// assert_eq!((out.scalar::<i32>(0)?, out.scalar::<f32>(1)?), (9, 0.005859375));
    /// # Ok::<(), dtg::Error>(())
    /// ```
    #[track_caller]
    pub fn while_loop<V: Values>(
        &self,
        start: V,
        condition: impl FnOnce(&Self, V) -> Result<Value>,
        body: impl FnOnce(&Self, V) -> Result<V>,
    ) -> Result<V> {
        let arguments: Vec<_> = start.to_vec().into_iter().map(Argument::Like).collect();
        self.while_loop_as(start, &arguments, condition, body)
    }

    /// As [`Graph::while_loop`], with what holds in every round for each variable.
    #[track_caller]
    pub fn while_loop_as<V: Values>(
        &self,
        start: V,
        arguments: &[Argument],
        condition: impl FnOnce(&Self, V) -> Result<Value>,
        body: impl FnOnce(&Self, V) -> Result<V>,
    ) -> Result<V> {
        let start = start.to_vec();
        let test = self.function("condition", arguments, |inside, v| condition(inside, V::of(v)?))?;
        let round = self.function("body", arguments, |inside, v| body(inside, V::of(v)?))?;
        calling(start.len(), |outs, _| {
            // SAFETY: an open graph, open functions; as many outputs as there are values at the start.
            unsafe { sys::dtg_graph_add_while(self.raw(), Value::raw(&start), start.len(), test.raw(), round.raw(), outs) }
        })
    }
}

/// The outputs of a node that calls functions.
#[track_caller]
fn calling<R: Values>(count: usize, add: impl FnOnce(*mut sys::dtg_value, usize) -> *mut sys::dtg_error) -> Result<R> {
    let mut outs = vec![Value(Value::NONE); count];
    // SAFETY: the answer of a function of the ABI; Value is dtg_value (repr(transparent)).
    unsafe { built(add(outs.as_mut_ptr().cast(), outs.len())) }?;
    placed(R::of(&outs))
}
