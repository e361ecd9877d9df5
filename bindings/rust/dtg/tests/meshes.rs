//! Meshes and variables in shards: the numbers of plain layers, whatever the grid or the number of shards, and misuse. One test at a time.

mod common;

use common::{refused, world};
use dtg::{
    Activation, Attention, DType, Dense, Embedding, ErrorKind, Graph, Initializer, Mesh, MeshOptions, Model, Optimizer,
    Partitioner, Result, SessionOptions, TableCut, Tensor, Training, Value, VariableSpec, Zero, ops,
};

fn wide() -> Dense<'static> {
    Dense { units: 6, activation: Activation::Tanh, ..Default::default() }
}
fn narrow() -> Dense<'static> {
    Dense { units: 4, ..Default::default() }
}
fn heads() -> Attention<'static> {
    Attention { heads: 3, key_width: 2, causal: true, ..Default::default() }
}
fn table() -> Embedding<'static> {
    Embedding { rows: 7, width: 4, ..Default::default() }
}

/// Losses of four steps of a model that `build` makes from the ids of rows.
fn losses(devices: i32, build: impl FnOnce(&Model, Value) -> Result<(Value, Training)>) -> Vec<f32> {
    let model = Model::new(Graph::new().unwrap(), 5).unwrap();
    let ids = model.placeholder("ids", DType::I32, Some(&[4, 3])).unwrap();
    let (loss, training) = build(&model, ids).unwrap();
    let init = model.init().unwrap();
    let session = SessionOptions::new().emu_devices(devices).connect("local", &model).unwrap();
    session.run_target(init).unwrap();
    (0..4)
        .map(|step| {
            let batch: Vec<i32> = (0..12).map(|i| (i * 5 + step) % 7).collect();
            let batch = Tensor::from_slice(&[4, 3], &batch).unwrap();
            let out = session.run().feed(ids, &batch).fetch(loss).target(training.train).call().unwrap();
            out.slice::<f32>(0).unwrap()[0]
        })
        .collect()
}

fn plain() -> Vec<f32> {
    losses(1, |model, ids| {
        let x = model.embedding(ids, &table())?;
        behind(model, x)
    })
}

fn behind(model: &Model, x: Value) -> Result<(Value, Training)> {
    let x = model.attention(x, x, &heads())?;
    let x = model.dense(model.dense(x, &wide())?, &narrow())?;
    let loss = model.mean_squared_error(ops::zeros_like(model, x).build()?, x)?;
    Ok((loss, model.minimize(loss, &Optimizer::adam(0.05))?))
}

fn near(got: &[f32], wanted: &[f32]) {
    assert_eq!(got.len(), wanted.len());
    for (a, b) in got.iter().zip(wanted) {
        assert!((a - b).abs() < 1e-5, "{got:?} and not {wanted:?}");
    }
}

#[test]
fn a_mesh_trains_like_one_device() {
    let _world = world();
    let wanted = plain();
    let names: Vec<String> = (0..8).map(|i| format!("/device:EMU:{i}")).collect();
    let devices: Vec<&str> = names.iter().map(String::as_str).collect();
    for zero in [Zero::None, Zero::States, Zero::Gradients] {
        let got = losses(8, |model, ids| {
            let mesh = Mesh::new(model, &MeshOptions { data: 2, model: 2, pipe: 2, devices: &devices, zero })?;
            mesh.build(&[ids], 2, false, |step| {
                if step.stage == 0 {
                    let x = mesh.embedding(step.batch[0], &table(), TableCut::Columns)?;
                    return Ok(vec![mesh.attention(x, x, &heads())?]);
                }
                let x = mesh.row_dense(&mesh.column_dense(step.inputs[0], &wide())?, &narrow())?;
                Ok(vec![model.mean_squared_error(ops::zeros_like(model, x).build()?, x)?])
            })?;
            Ok((mesh.result(0)?, mesh.minimize(&Optimizer::adam(0.05))?))
        });
        near(&got, &wanted);
    }
}

#[test]
fn what_a_mesh_refuses() {
    let _world = world();
    let model = Model::new(Graph::new().unwrap(), 1).unwrap();
    let options = MeshOptions { data: 2, devices: &["/device:CPU:0"], ..Default::default() };
    refused(Mesh::new(&model, &options), ErrorKind::InvalidArgument, "2 devices");
    let mesh = Mesh::new(&model, &MeshOptions { devices: &["/device:CPU:0"], ..Default::default() }).unwrap();
    refused(mesh.result(0), ErrorKind::FailedPrecondition, "not over");
    // A stage that fails leaves nothing open.
    let x = model.placeholder("x", DType::F32, Some(&[4, 2])).unwrap();
    for _ in 0..2 {
        let failed =
            mesh.build(&[x], 1, false, |step| Ok(vec![model.dense(step.batch[0], &Dense { units: 0, ..Default::default() })?]));
        refused(failed, ErrorKind::InvalidArgument, "units");
        assert_eq!(model.variable_count(), 0);
    }
}

#[test]
fn shards_train_like_one_piece() {
    let _world = world();
    let wanted = plain();
    for shards in [1, 3, 7] {
        let got = losses(1, |model, ids| {
            let x = model.sharded_embedding(ids, &table(), Partitioner::FixedShards(shards))?;
            let found = model.find_sharded_variable("embedding/embeddings")?;
            assert_eq!((found.shards, found.axis, &found.shape[..]), (shards, 0, &[7, 4][..]));
            assert_eq!(model.shard(&found.name, shards - 1)?.name, format!("{}/part_{}", found.name, shards - 1));
            refused(model.shard(&found.name, shards), ErrorKind::OutOfRange, "it has");
            behind(model, x)
        });
        near(&got, &wanted);
    }
}

#[test]
fn a_variable_in_shards() {
    let _world = world();
    let model = Model::new(Graph::new().unwrap(), 5).unwrap();
    let spec = VariableSpec { dims: &[5, 2], initializer: Initializer::Uniform(-1.0, 1.0), ..VariableSpec::new("w") };
    let cut = model.add_sharded_variable(&spec, Partitioner::FixedShards(2)).unwrap();
    let all = model.sharded_value(&cut.name).unwrap();
    let row = model.sharded_lookup(&cut.name, model.scalar(3i32).unwrap()).unwrap();
    let init = model.init().unwrap();
    let session = SessionOptions::new().connect("local", &model).unwrap();
    session.run_target(init).unwrap();
    let out = session.run().fetch(all).fetch(row).call().unwrap();
    assert_eq!(out.slice::<f32>(1).unwrap(), &out.slice::<f32>(0).unwrap()[6..8]);
}
