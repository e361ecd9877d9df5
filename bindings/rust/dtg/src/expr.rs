//! Values that know their graph, so that formulas are written as formulas: operators, and a method per op (`methods.rs`). One thread at a
//! time adds to a graph; an expression borrows it, and costs nothing but that.

use std::ops::{Add, Div, Mul, Neg, Rem, Sub};
use std::panic::Location;

use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Graph, Value};
use crate::node::{Attr, Node};

/// A value beside its graph, made by [`Graph::expr`]. Operators and methods add a node each and give the next expression. What goes wrong
/// on the way is kept and told at the end, by [`Expr::value`]: the first error, with the line that made it.
///
/// A method takes what an op takes and leaves its options at their defaults; the functions of [`crate::ops`] have the options. `/` and `%`
/// round as Rust's do where the elements are integers. Numbers beside an expression get its element type. On the left stand literals, `f64`
/// and `i64`: `2.0 * &x`, `1 - &x`. Rust could not tell what a literal is if more types stood there; write `f64::from(rate) * &x` where `rate` is
/// an `f32`, and `i64::from(n)` for an `i32`. That loses nothing, and on the right (`&x * rate`) they need it not.
///
/// ```
/// use dtg::{DType, Graph, Session, Tensor};
///
/// let graph = Graph::new()?;
/// let x = graph.expr(graph.placeholder("x", DType::F32, Some(&[-1, 2]))?);
/// let y = x.square().mul(&x) + 1.0; // x³ + 1
/// let mean = (2.0 * &y - &x).mean(&[0, 1]).value()?;
/// let session = Session::connect("local", &graph)?;
/// let fed = Tensor::from_slice(&[1, 2], &[1.0f32, 3.0])?;
/// let out = session.run().feed(x.value()?, &fed).fetch(mean).call()?;
/// assert_eq!(out.scalar::<f32>(0)?, 28.0);
/// # Ok::<(), dtg::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Expr<'g> {
    graph: &'g Graph,
    value: Result<Value>,
}

impl Graph {
    /// A value of this graph as a part of formulas.
    pub fn expr(&self, value: Value) -> Expr<'_> {
        Expr { graph: self, value: Ok(value) }
    }
}

impl<'g> Expr<'g> {
    /// The value, or the first error on the way to it.
    pub fn value(&self) -> Result<Value> {
        self.value.clone()
    }

    /// The graph that it is of.
    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// A node of that op on this value and what `rest` adds, which gets the element type of this value.
    #[track_caller]
    pub(crate) fn apply(&self, op: &'static str, rest: impl FnOnce(DType, Node<'g>) -> Result<Node<'g>>) -> Self {
        let location = Location::caller();
        let add = |x| rest(self.graph.dtype(x)?, Node::begin(self.graph, op, location).input(x))?.build();
        Self { graph: self.graph, value: self.value().and_then(|x| add(x).map_err(|error| error.at(op, location))) }
    }

    #[track_caller]
    fn with(&self, op: &'static str, other: impl Operand) -> Self {
        self.apply(op, |like, node| node.operand(other, Some(like)))
    }

    /// An op on integers, another one on everything else.
    #[track_caller]
    fn rounded(&self, integers: &'static str, others: &'static str, other: impl Operand) -> Self {
        let whole = self.value.as_ref().is_ok_and(|x| self.graph.dtype(*x).is_ok_and(is_integer));
        self.with(if whole { integers } else { others }, other)
    }
}

fn is_integer(dtype: DType) -> bool {
    [DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64].contains(&dtype)
}

/// A line of the program: `std::panic::Location::caller()`.
pub type Place = &'static Location<'static>;

/// What may stand beside an [`Expr`]: other expressions, values of its graph, numbers and lists of numbers.
pub trait Operand {
    /// It as a value of that graph. A number becomes a constant of the type `like`, or keeps its own without one; `place` is the line of the
    /// program that errors of its nodes name.
    fn operand(self, graph: &Graph, like: Option<DType>, place: Place) -> Result<Value>;
}

impl Operand for Value {
    fn operand(self, _: &Graph, _: Option<DType>, _: Place) -> Result<Value> {
        Ok(self)
    }
}

impl Operand for Expr<'_> {
    fn operand(self, _: &Graph, _: Option<DType>, _: Place) -> Result<Value> {
        self.value
    }
}

impl Operand for &Expr<'_> {
    fn operand(self, _: &Graph, _: Option<DType>, _: Place) -> Result<Value> {
        self.value()
    }
}

/// A constant of another type than the number has in Rust. Nothing is lost without a word: what the type cannot hold is an error.
fn converted<T: Element>(graph: &Graph, values: &[T], dims: &[usize], (to, fits): (DType, bool), place: Place) -> Result<Value> {
    if !fits {
        let text = format!("a number in a formula of {to}: it is no {to}; write one that is, or cast the other side");
        return Err(Error::found(ErrorKind::InvalidArgument, text));
    }
    let tensor = crate::Tensor::from_slice(dims, values)?;
    let constant = Node::begin(graph, "Const", place).attr("value", Attr::tensor(&tensor)).attr("dtype", T::DTYPE).build()?;
    if to == T::DTYPE { Ok(constant) } else { Node::begin(graph, "Cast", place).input(constant).attr("DstT", to).build() }
}

/// The bits of an integer type, without its sign.
fn whole_bits(dtype: DType) -> Option<u32> {
    let signed = [DType::I8, DType::I16, DType::I32, DType::I64].contains(&dtype);
    dtype.size().filter(|_| is_integer(dtype)).map(|bytes| bytes as u32 * 8 - u32::from(signed))
}

fn holds(dtype: DType, value: i64) -> bool {
    let Some(bits) = whole_bits(dtype) else { return dtype != DType::BOOL && dtype != DType::STRING };
    let signed = [DType::I8, DType::I16, DType::I32, DType::I64].contains(&dtype);
    let high = if bits >= 63 { i64::MAX } else { (1 << bits) - 1 };
    value <= high && value >= if signed { -high - 1 } else { 0 }
}

macro_rules! numbers {
    ($($number:ty => |$value:ident, $like:ident| $fits:expr;)*) => {$(
        impl Operand for $number {
            fn operand(self, graph: &Graph, like: Option<DType>, place: Place) -> Result<Value> {
                let ($value, $like) = (self, like.unwrap_or(<$number>::DTYPE));
                converted(graph, &[self], &[], ($like, $fits), place)
            }
        }

        impl Operand for &[$number] {
            fn operand(self, graph: &Graph, like: Option<DType>, place: Place) -> Result<Value> {
                let $like = like.unwrap_or(<$number>::DTYPE);
                let fits = self.iter().all(|&$value| $fits);
                converted(graph, self, &[self.len()], ($like, fits), place)
            }
        }

        impl<const N: usize> Operand for &[$number; N] {
            fn operand(self, graph: &Graph, like: Option<DType>, place: Place) -> Result<Value> {
                self.as_slice().operand(graph, like, place)
            }
        }

        impl<const N: usize> Operand for [$number; N] {
            fn operand(self, graph: &Graph, like: Option<DType>, place: Place) -> Result<Value> {
                self.as_slice().operand(graph, like, place)
            }
        }
    )*};
}

/// Numbers with a point belong to types with a point.
fn is_real(dtype: DType) -> bool {
    [DType::F32, DType::F64, DType::F16, DType::BF16, DType::C64, DType::C128].contains(&dtype)
}

numbers! {
    f32 => |_value, like| is_real(like);
    f64 => |_value, like| is_real(like);
    i32 => |value, like| holds(like, value.into());
    i64 => |value, like| holds(like, value);
}

macro_rules! operators {
    ($($trait:ident, $function:ident => |$left:ident, $right:ident| $node:expr;)*) => {$(
        impl<'g, R: Operand> $trait<R> for Expr<'g> {
            type Output = Expr<'g>;
            #[track_caller]
            fn $function(self, $right: R) -> Expr<'g> {
                let $left = &self;
                $node
            }
        }

        impl<'g, R: Operand> $trait<R> for &Expr<'g> {
            type Output = Expr<'g>;
            #[track_caller]
            fn $function(self, $right: R) -> Expr<'g> {
                let $left = self;
                $node
            }
        }

        // One type with a point and one without, no more: then the compiler knows what a literal is, and what can be called on the result.
        operators! { @number $trait, $function, f64 }
        operators! { @number $trait, $function, i64 }
    )*};
    (@number $trait:ident, $function:ident, $number:ty) => {
        impl<'g> $trait<Expr<'g>> for $number {
            type Output = Expr<'g>;
            #[track_caller]
            fn $function(self, right: Expr<'g>) -> Expr<'g> {
                self.$function(&right)
            }
        }

        impl<'g> $trait<&Expr<'g>> for $number {
            type Output = Expr<'g>;
            #[track_caller]
            fn $function(self, right: &Expr<'g>) -> Expr<'g> {
                let location = Location::caller();
                let like = |x| self.operand(right.graph, Some(right.graph.dtype(x)?), location);
                let value = right.value().and_then(|x| like(x).map_err(|error| error.at(stringify!($trait), location)));
                let left = Expr { graph: right.graph, value };
                $trait::$function(left, right)
            }
        }
    };
}

operators! {
    Add, add => |left, right| left.with("AddV2", right);
    Sub, sub => |left, right| left.with("Sub", right);
    Mul, mul => |left, right| left.with("Mul", right);
    Div, div => |left, right| left.rounded("TruncateDiv", "RealDiv", right);
    Rem, rem => |left, right| left.with("TruncateMod", right);
}

impl<'g> Neg for Expr<'g> {
    type Output = Expr<'g>;
    #[track_caller]
    fn neg(self) -> Expr<'g> {
        self.apply("Neg", |_, node| Ok(node))
    }
}

impl<'g> Neg for &Expr<'g> {
    type Output = Expr<'g>;
    #[track_caller]
    fn neg(self) -> Expr<'g> {
        self.apply("Neg", |_, node| Ok(node))
    }
}
