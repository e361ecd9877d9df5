//! One node being added to a graph: its op, inputs, attributes, name, device and order. One thread has it until it is built.

use std::panic::Location;

use dtg_sys as sys;

use crate::control::Function;
use crate::dtype::DType;
use crate::error::{Result, check};
use crate::expr::Operand;
use crate::graph::{Graph, Value};
use crate::handle::{given, name_of};
use crate::tensor::Tensor;

/// What an attribute holds. Made by `into()` from what it looks like: `3i64`, `0.5`, `true`, `DType::F32`, `"SAME"`, lists of them;
/// [`Attr::shape`] and [`Attr::tensor`] for the others.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Attr {
    /// A number.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// An element type.
    Type(DType),
    /// A shape: -1 leaves a dimension open, None everything.
    Shape(Option<Vec<i64>>),
    /// Bytes, mostly text.
    Bytes(Vec<u8>),
    /// A tensor, shared with the graph.
    Tensor(Tensor),
    /// Numbers.
    Ints(Vec<i64>),
    /// Floating-point numbers.
    Floats(Vec<f64>),
    /// Truth values.
    Bools(Vec<bool>),
    /// Element types.
    Types(Vec<DType>),
    /// Shapes.
    Shapes(Vec<Option<Vec<i64>>>),
    /// Byte strings.
    Strings(Vec<Vec<u8>>),
    /// A function, shared; what it captured is given to the node as inputs ([`Function::captures`]).
    Function(Function),
    /// Functions.
    Functions(Vec<Function>),
}

impl Attr {
    /// A shape of known rank; -1 leaves a dimension open.
    pub fn shape(dims: &[i64]) -> Self {
        Self::Shape(Some(dims.to_vec()))
    }

    /// A tensor, which the graph shares from then on.
    pub fn tensor(tensor: &Tensor) -> Self {
        Self::Tensor(tensor.clone())
    }
}

macro_rules! attrs {
    ($($from:ty => |$value:ident| $attr:expr;)*) => {$(
        impl From<$from> for Attr {
            fn from($value: $from) -> Self { $attr }
        }
    )*};
}

attrs! {
    i64 => |value| Self::Int(value);
    f64 => |value| Self::Float(value);
    bool => |value| Self::Bool(value);
    DType => |value| Self::Type(value);
    &str => |value| Self::Bytes(value.as_bytes().to_vec());
    &[u8] => |value| Self::Bytes(value.to_vec());
    &Tensor => |value| Self::tensor(value);
    &[i64] => |value| Self::Ints(value.to_vec());
    &[f64] => |value| Self::Floats(value.to_vec());
    &[bool] => |value| Self::Bools(value.to_vec());
    &[DType] => |value| Self::Types(value.to_vec());
    Option<&[i64]> => |value| Self::Shape(value.map(<[i64]>::to_vec));
    &[Option<&[i64]>] => |value| Self::Shapes(value.iter().map(|shape| shape.map(<[i64]>::to_vec)).collect());
    &[&str] => |value| Self::Strings(value.iter().map(|text| text.as_bytes().to_vec()).collect());
}

/// A node to add: `graph.node("MatMul").input(a).input(b).attr("transpose_b", true).build()`.
#[derive(Debug)]
#[must_use = "a node is added by build()"]
pub struct Node<'g> {
    graph: &'g Graph,
    op: &'static str,
    location: &'static Location<'static>,
    name: Option<String>,
    device: Option<String>,
    inputs: Vec<Value>,
    controls: Vec<Value>,
    colocate: Vec<Value>,
    attrs: Vec<(&'static str, Attr)>,
}

impl<'g> Node<'g> {
    pub(crate) fn begin(graph: &'g Graph, op: &'static str, location: &'static Location<'static>) -> Self {
        let (name, device) = (None, None);
        Self {
            graph,
            op,
            location,
            name,
            device,
            inputs: Vec::new(),
            controls: Vec::new(),
            colocate: Vec::new(),
            attrs: Vec::new(),
        }
    }

    /// One more input.
    pub fn input(mut self, value: Value) -> Self {
        self.inputs.push(value);
        self
    }

    /// More inputs, such as those of a list argument.
    pub fn inputs(mut self, values: &[Value]) -> Self {
        self.inputs.extend_from_slice(values);
        self
    }

    /// One more input: what stands beside an expression, of the type `like` where it is a number.
    pub(crate) fn operand(self, operand: impl Operand, like: Option<DType>) -> Result<Self> {
        let value = operand.operand(self.graph, like, self.location)?;
        Ok(self.input(value))
    }

    /// An attribute that neither the inputs nor a default decide.
    pub fn attr(mut self, name: &'static str, value: impl Into<Attr>) -> Self {
        self.attrs.push((name, value.into()));
        self
    }

    /// The node's name, which must be free in the current name scope. Without one it is made from the op type.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The device, merged over that of the device scope field by field.
    pub fn device(mut self, device: &str) -> Self {
        self.device = Some(device.into());
        self
    }

    /// A node that must run before this one.
    pub fn control(mut self, node: Value) -> Self {
        self.controls.push(node);
        self
    }

    /// A node whose device this one must share.
    pub fn colocate(mut self, node: Value) -> Self {
        self.colocate.push(node);
        self
    }

    /// Adds the node and gives its first output; for a node without outputs, the node itself. Errors: `NotFound` (no such op; the
    /// message suggests the closest name), `InvalidArgument` (everything else that is wrong, with the node and what was expected). The
    /// graph is unchanged on failure.
    pub fn build(self) -> Result<Value> {
        self.build_array().map(|[value]| value)
    }

    /// As [`Node::build`], for the first N outputs.
    pub fn build_array<const N: usize>(self) -> Result<[Value; N]> {
        let mut outs = [Value(Value::NONE); N];
        self.add(&mut outs)?;
        Ok(outs)
    }

    /// As [`Node::build`], for all outputs, however many; none for a node without outputs.
    pub fn build_all(mut self) -> Result<Vec<Value>> {
        let mut first = [Value(Value::NONE)];
        self.add_by_ref(&mut first)?;
        let count = self.graph.num_outputs(first[0])?;
        (0..count).map(|i| self.graph.output(first[0], i)).collect()
    }

    fn add(mut self, outs: &mut [Value]) -> Result<()> {
        self.add_by_ref(outs)
    }

    fn add_by_ref(&mut self, outs: &mut [Value]) -> Result<()> {
        let stored: Vec<Stored> = self.attrs.iter().map(|(_, attr)| Stored::of(attr)).collect();
        let attrs: Vec<_> = self.attrs.iter().zip(&stored).map(|((name, attr), stored)| stored.raw(name, attr)).collect();
        let location = format!("{}:{}", self.location.file(), self.location.line());
        let ((name, name_len), (device, device_len)) = (name_of(self.name.as_deref()), name_of(self.device.as_deref()));
        let spec = sys::dtg_op_spec {
            r#type: given(self.op.as_bytes()).0,
            type_len: self.op.len(),
            name,
            name_len,
            inputs: Value::raw(&self.inputs),
            num_inputs: self.inputs.len(),
            controls: Value::raw(&self.controls),
            num_controls: self.controls.len(),
            attrs: attrs.as_ptr(),
            num_attrs: attrs.len(),
            device,
            device_len,
            colocate: Value::raw(&self.colocate),
            num_colocate: self.colocate.len(),
            location: location.as_ptr().cast(),
            location_len: location.len(),
            ..sys::dtg_op_spec::INIT
        };
        // SAFETY: an open graph; everything that the spec names outlives the call, with its length. Value is
        // dtg_value (repr(transparent)).
        let added = unsafe { check(sys::dtg_graph_add_op(self.graph.raw(), &spec, outs.as_mut_ptr().cast(), outs.len())) };
        added.map_err(|error| error.at(self.op, self.location))
    }
}

/// Arrays that a dtg_attr points into, where the attribute itself does not have them in that form.
#[derive(Default)]
struct Stored {
    ints: Vec<i64>,
    strings: Vec<*const std::ffi::c_char>,
    functions: Vec<*const sys::dtg_function>,
    lens: Vec<usize>,
}

impl Stored {
    fn of(attr: &Attr) -> Self {
        let mut stored = Self::default();
        match attr {
            Attr::Shape(Some(dims)) => stored.ints.clone_from(dims),
            Attr::Ints(values) => stored.ints.clone_from(values),
            Attr::Bools(values) => stored.ints.extend(values.iter().map(|value| i64::from(*value))),
            Attr::Types(values) => stored.ints.extend(values.iter().map(|value| i64::from(value.0))),
            Attr::Shapes(shapes) => {
                for shape in shapes {
                    stored.ints.extend(shape.iter().flatten());
                    stored.lens.push(shape.as_ref().map_or(sys::DTG_STRLEN, Vec::len));
                }
            }
            Attr::Strings(strings) => {
                stored.strings.extend(strings.iter().map(|text| text.as_ptr().cast()));
                stored.lens.extend(strings.iter().map(Vec::len));
            }
            Attr::Function(function) => stored.functions.push(function.raw()),
            Attr::Functions(functions) => stored.functions.extend(functions.iter().map(|function| function.raw().cast_const())),
            _ => {}
        }
        stored
    }

    /// The attribute as C has it, pointing into `attr` and `self`.
    fn raw(&self, name: &str, attr: &Attr) -> sys::dtg_attr {
        let base = sys::dtg_attr { name: given(name.as_bytes()).0, name_len: name.len(), ..sys::dtg_attr::INIT };
        let ints = |kind, count| sys::dtg_attr { kind, ints: self.ints.as_ptr(), count, ..base };
        let functions = |kind| sys::dtg_attr { kind, functions: self.functions.as_ptr(), count: self.functions.len(), ..base };
        match attr {
            Attr::Int(value) => sys::dtg_attr { kind: sys::DTG_ATTR_INT, i: *value, ..base },
            Attr::Float(value) => sys::dtg_attr { kind: sys::DTG_ATTR_FLOAT, f: *value, ..base },
            Attr::Bool(value) => sys::dtg_attr { kind: sys::DTG_ATTR_BOOL, i: (*value).into(), ..base },
            Attr::Type(value) => sys::dtg_attr { kind: sys::DTG_ATTR_TYPE, i: value.0.into(), ..base },
            Attr::Shape(None) => ints(sys::DTG_ATTR_SHAPE, sys::DTG_STRLEN),
            Attr::Shape(Some(dims)) => ints(sys::DTG_ATTR_SHAPE, dims.len()),
            Attr::Bytes(text) => sys::dtg_attr { kind: sys::DTG_ATTR_STRING, s: text.as_ptr().cast(), s_len: text.len(), ..base },
            Attr::Tensor(tensor) => sys::dtg_attr { kind: sys::DTG_ATTR_TENSOR, tensor: tensor.raw(), ..base },
            Attr::Ints(values) => ints(sys::DTG_ATTR_LIST_INT, values.len()),
            Attr::Floats(values) => {
                sys::dtg_attr { kind: sys::DTG_ATTR_LIST_FLOAT, floats: values.as_ptr(), count: values.len(), ..base }
            }
            Attr::Bools(values) => ints(sys::DTG_ATTR_LIST_BOOL, values.len()),
            Attr::Types(values) => ints(sys::DTG_ATTR_LIST_TYPE, values.len()),
            Attr::Shapes(shapes) => sys::dtg_attr { lens: self.lens.as_ptr(), ..ints(sys::DTG_ATTR_LIST_SHAPE, shapes.len()) },
            Attr::Strings(strings) => sys::dtg_attr {
                kind: sys::DTG_ATTR_LIST_STRING,
                strings: self.strings.as_ptr(),
                lens: self.lens.as_ptr(),
                count: strings.len(),
                ..base
            },
            Attr::Function(_) => functions(sys::DTG_ATTR_FUNC),
            Attr::Functions(_) => functions(sys::DTG_ATTR_LIST_FUNC),
        }
    }
}
