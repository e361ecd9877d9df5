//! Variables in shards: tables that are too large for one machine, or that several are to serve. They are built like layers, by the thread
//! that builds the model.

use dtg_sys as sys;

use crate::coordinator::Partitioner;
use crate::dtype::DType;
use crate::error::{Result, built, placed};
use crate::graph::Value;
use crate::layers::Embedding;
use crate::model::{Model, Variable, VariableSpec, variable};

/// A variable in shards: one variable for people and files, and several, `name/part_0` and so on, for the graph. Every optimizer trains the
/// shards as it trains other variables; checkpoints hold one tensor, which a model with another number of shards restores.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sharded {
    /// Of the whole, scopes included.
    pub name: String,
    /// Its type.
    pub dtype: DType,
    /// The shape of the whole.
    pub shape: Vec<i64>,
    /// That it is cut along.
    pub axis: i32,
    /// How many there are.
    pub shards: i64,
}

#[track_caller]
fn sharded(ask: impl FnOnce(*mut sys::dtg_sharded) -> *mut sys::dtg_error) -> Result<Sharded> {
    let mut out = sys::dtg_sharded::INIT;
    // SAFETY: a struct of its size; what it borrows from the graph is copied here.
    unsafe {
        built(ask(&mut out))?;
        let name = std::slice::from_raw_parts(out.name.cast::<u8>(), out.name_len);
        Ok(Sharded {
            name: String::from_utf8_lossy(name).into_owned(),
            dtype: DType(out.dtype),
            shape: out.dims.iter().take(out.rank).copied().collect(),
            axis: out.axis,
            shards: out.shards,
        })
    }
}

// SAFETY of all calls below: an open model, and structs and texts that outlive the call.
impl Model {
    /// Adds a variable in as many shards as the partitioner says; under a device setter they stand on one parameter server after the other.
    /// First values are those of the whole, however it is cut.
    #[track_caller]
    pub fn add_sharded_variable(&self, spec: &VariableSpec<'_>, partitioner: Partitioner) -> Result<Sharded> {
        let (raw, how) = (placed(spec.raw())?, partitioner.raw(0));
        // SAFETY: see above.
        sharded(|out| unsafe { sys::dtg_model_add_sharded_variable(self.raw(), &raw, &how, out) })
    }

    /// The variable in shards of that name. Errors: `NotFound`.
    #[track_caller]
    pub fn find_sharded_variable(&self, name: &str) -> Result<Sharded> {
        // SAFETY: see above.
        sharded(|out| unsafe { sys::dtg_model_find_sharded_variable(self.raw(), name.as_ptr().cast(), name.len(), out) })
    }

    /// Shard `i` of a variable in shards. Errors: `NotFound`, `OutOfRange`.
    #[track_caller]
    pub fn shard(&self, name: &str, i: i64) -> Result<Variable> {
        // SAFETY: see above.
        variable(|out| unsafe { sys::dtg_sharded_shard(self.raw(), name.as_ptr().cast(), name.len(), i, out) })
    }

    /// All of a variable in shards as one value; each run that uses it moves all of them.
    #[track_caller]
    pub fn sharded_value(&self, name: &str) -> Result<Value> {
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_sharded_value(model, name.as_ptr().cast(), name.len(), out) })
    }

    /// Row `ids[...]` of a variable in shards, looked up where the shards stand. Gradients are rows.
    #[track_caller]
    pub fn sharded_lookup(&self, name: &str, ids: Value) -> Result<Value> {
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_sharded_lookup(model, name.as_ptr().cast(), name.len(), ids.0, out) })
    }

    /// [`Model::embedding`] with its table in shards.
    #[track_caller]
    pub fn sharded_embedding(&self, ids: Value, layer: &Embedding<'_>, partitioner: Partitioner) -> Result<Value> {
        let (raw, how) = (layer.raw(), partitioner.raw(0));
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_sharded_embedding(model, ids.0, &raw, &how, out) })
    }
}
