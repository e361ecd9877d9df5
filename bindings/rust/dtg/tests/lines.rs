//! Errors of whatever builds name the line of the program that called it, also where the call goes through a module or a closure, and so do
//! the nodes that formulas add. One test at a time.

mod common;

use common::world;
use dtg::{
    Activation, Argument, Attention, BatchNorm, Conv, Csv, DType, Dataset, Dense, Error, ErrorKind, Graph, JsonLines, Lambda, Loss,
    LossKind, MapOptions, Mesh, MeshOptions, Metric, MetricKind, Model, Module, Optimizer, Partitioner, Recurrent, Reduction,
    Replication, Result, Scope, Split, Strategy, StrategyOptions, Trainer, TrainerOptions, Value, VariableSpec, ops,
};

/// The error names that line, once, and in front.
#[track_caller]
fn told<T>(result: Result<T>, line: u32) -> Error {
    let Err(error) = result else { panic!("it was accepted") };
    let place = format!("at dtg/tests/lines.rs:{line}: ");
    assert!(error.message().starts_with(&place), "line {line}: {error}");
    assert_eq!(error.message().matches(".rs:").count(), 1, "{error}");
    error
}

fn model() -> (Model, Value) {
    let model = Model::new(Graph::new().unwrap(), 1).unwrap();
    let x = model.placeholder("x", DType::F32, Some(&[4, 4])).unwrap();
    (model, x)
}

#[test]
fn layers_losses_and_training_name_the_line() {
    let _world = world();
    let (model, x) = model();
    let many = model.dense(x, &Dense { units: 2, ..Default::default() }).unwrap();
    let (none, sgd) = (Dense::default(), Optimizer::sgd(0.1));
    let error = told(model.dense(x, &none), line!());
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("0 units"), "{error}");
    told(model.conv1d(x, &Conv::default()), line!());
    told(model.flatten(Graph::new().unwrap().scalar(1.0f32).unwrap()), line!());
    told(model.batch_norm(model.scalar(1.0f32).unwrap(), &BatchNorm::default()), line!());
    told(model.recurrent(x, &Recurrent::default()), line!());
    told(model.attention(x, x, &Attention::default()), line!());
    told(model.mean_squared_error(x, many), line!());
    told(model.loss(x, many, &Loss { kind: LossKind::Huber, ..Default::default() }), line!());
    told(model.metric(None, x, &Metric { kind: MetricKind::Accuracy, ..Default::default() }), line!());
    told(model.minimize(many, &sgd), line!());
    told(model.minimize_towers(&[], &sgd), line!());
    told(model.minimize_replicated(many, &sgd, &Replication::default()), line!());
    told(model.apply_gradients(&sgd, &[]), line!());
    told(model.dropout(x, 2.0, x, None), line!());
    told(model.add_variable(&VariableSpec::new("")), line!());
    told(model.add_variable(&VariableSpec { dims: &[-1], ..VariableSpec::new("w") }), line!());
    told(model.find_variable("dense/kernl"), line!());
    told(model.add_sharded_variable(&VariableSpec::new(""), Partitioner::FixedShards(2)), line!());
}

#[test]
fn meshes_strategies_and_trainers_name_the_line() {
    let _world = world();
    let (model, x) = model();
    let many = model.dense(x, &Dense { units: 2, ..Default::default() }).unwrap();
    let sgd = Optimizer::sgd(0.1);
    told(Mesh::new(&model, &MeshOptions { model: -2, ..Default::default() }), line!());
    let mesh = Mesh::new(&model, &MeshOptions { devices: &["CPU:0"], ..Default::default() }).unwrap();
    told(mesh.minimize(&sgd), line!());
    told(mesh.result(0), line!());
    told(mesh.build(&[], 0, false, |_| Ok(vec![])), line!());
    told(Strategy::new(&model, &StrategyOptions { devices: &["CPU:-1"], ..Default::default() }), line!());
    let strategy = Strategy::new(&model, &StrategyOptions { devices: &["CPU:0"], ..Default::default() }).unwrap();
    let inner = line!() + 1;
    let build = |_, _: &[Value]| model.dense(x, &Dense::default()).map(|y| [y]);
    told(strategy.run(&[], build), inner);
    let [losses] = strategy.run(&[], |_, _| Ok([many])).unwrap();
    told(strategy.minimize(losses, Reduction::Mean, &sgd), line!());
    drop((mesh, strategy));
    told(Trainer::new(model, &TrainerOptions::new(&[x], many)), line!());
}

#[test]
fn nodes_scopes_and_bodies_name_the_line() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let (x, y) = (graph.scalar(1.0f32).unwrap(), graph.vector(&[1i32, 2]).unwrap());
    told(graph.find("z"), line!());
    told(graph.add_gradients(&[y], &[x], None), line!());
    told(graph.add_gradients(&[x], &[x], Some(&[])), line!());
    told(graph.push(Scope::Name("a b")), line!());
    told(graph.pop(Scope::Recompute), line!());
    told(graph.within(Scope::Device("/no/such"), |graph| graph.scalar(1)), line!());
    told(graph.function("f", &[Argument::Of(DType::from_number(77), None)], |_, v| Ok(v[0])), line!());
    let one = graph.function("one", &[], |body, _| body.scalar(1)).unwrap();
    told(graph.call::<[Value; 2]>(&one, &[]), line!());
    told(graph.if_else(x, |body| body.scalar(1), |body| body.scalar(1.0f32)), line!());
    told(graph.while_loop(x, |_, _| Ok(y), |body, _| body.scalar(1)), line!());
    let map = MapOptions::default();
    told(Dataset::range(0, 2, 1).unwrap().map_graph(|_, _| Ok(vec![]), &map), line!());
    // A node that fails in a body has a line already.
    let failed = graph.switch_case(y, 1, |body, _| ops::mat_mul(body, x, x).build()).unwrap_err();
    let line = format!("at dtg/tests/lines.rs:{}: ", line!() - 1);
    assert!(failed.message().contains(&line), "{failed}");
    assert_eq!(failed.message().matches(".rs:").count(), 1, "{failed}");
}

#[test]
fn data_sets_name_the_line() {
    let _world = world();
    let range = || Dataset::range(0, 9, 1).unwrap();
    told(Dataset::csv("/no/such.csv", &Csv::default()), line!());
    told(Dataset::csv("/no/such.csv", &Csv { columns: Some(&["a\0b"]), ..Default::default() }), line!());
    told(Dataset::json_lines("/no/such.jsonl", &JsonLines::default()), line!());
    told(Dataset::idx(&["/no/such"]), line!());
    told(Dataset::npz("/no/such.npz", &[]), line!());
    told(Dataset::tensors(&[]), line!());
    told(Dataset::range(0, 9, 0), line!());
    told(range().batch(0, false), line!());
    told(range().scale(7, 1.0), line!());
    told(range().shuffle(-1, 0).and_then(|data| data.batch(2, false)), line!());
    told(range().zip_with(vec![range()]).and_then(|data| data.concatenate(vec![range()])), line!());
    told(range().split(&Split { fraction: 2.0, ..Default::default() }), line!());
    told(range().map_elements(&[], |_| Ok(vec![])), line!());
}

/// Its own words stay as they are: it is of the program's own.
struct Odd;

impl Module for Odd {
    fn forward(&self, _: &Model, _: Value) -> Result<Value> {
        Err(Error::new(ErrorKind::Internal, "odd"))
    }
}

/// Twice the layer, and the line of the second is the one that is named.
struct Inner;

const INNER: u32 = line!() + 4;

impl Module for Inner {
    fn forward(&self, model: &Model, x: Value) -> Result<Value> {
        model.forward(x, &Dense::default())
    }
}

#[test]
fn modules_name_the_line_that_gave_them() {
    let _world = world();
    let (model, x) = model();
    let none = Dense::default();
    told(model.forward(x, &none), line!());
    told(none.forward(&model, x), line!());
    let row: [&dyn Module; 2] = [&Activation::Relu, &none];
    told(model.forward(x, &row), line!());
    let boxed: Vec<Box<dyn Module>> = vec![Box::new(none)];
    told(model.forward(x, &boxed), line!());
    told(model.forward(x, &[Inner]), INNER);
    told(model.forward(x, &Lambda(|model: &Model, x: Value| model.dense(x, &Dense::default()))), line!());
    assert_eq!(model.forward(x, &Odd).unwrap_err().message(), "odd");
}

/// Whatever a formula adds has the line that it stands on: the constants of its numbers, and their conversions.
#[test]
fn nodes_of_formulas_have_the_line() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let x = graph.expr(graph.vector(&[1.0f64, 2.0]).unwrap());
    let first = line!() + 1;
    let _ = (&x * f64::NAN).value().unwrap();
    let _ = (2.0 * &x - 1i32).value().unwrap();
    let _ = x.maximum(2.5f32).value().unwrap();
    let _ = x.sum([0i64]).value().unwrap();
    let _ = (-&x / [1.0f32, 2.0] % &[2.0, 1.0][..]).value().unwrap();
    let bytes = graph.serialize().unwrap();
    let text = String::from_utf8_lossy(&bytes);
    for line in first..first + 5 {
        assert!(text.contains(&format!("dtg/tests/lines.rs:{line}")), "line {line} is nowhere");
    }
    assert!(!text.contains("dtg/src/"), "{:?}", text.split("dtg/src/").nth(1).map(|at| at.chars().take(20).collect::<String>()));
}
