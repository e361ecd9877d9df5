//! Functions, conditions and loops: what closures build, and how what goes wrong in one comes out. One test at a time.

mod common;

use std::time::Duration;

use common::{refused, world};
use dtg::{
    Activation, Argument, BatchNorm, DType, Dense, ErrorKind, Function, Graph, Model, Optimizer, Result, Session, Tensor, Value,
    VariableSpec, ops,
};

fn one(body: &Graph) -> Result<Value> {
    body.scalar(1.0f32)
}

/// Doubles `x` as often as `n` says and keeps what it was in a list.
fn doubled(graph: &Graph, n: Value, x: Value) -> Result<Value> {
    let (none, any, zero) = (graph.vector::<i32>(&[])?, graph.scalar(-1i32)?, graph.scalar(0i32)?);
    let list = ops::empty_tensor_list(graph, none, any, DType::F32).build()?;
    let [_, _, list] = graph.while_loop(
        [zero, x, list],
        |body, [i, ..]| ops::less(body, i, n).build(),
        |body, [i, x, list]| {
            let one = body.scalar(1i32)?;
            let next = ops::add_v2(body, i, one).build()?;
            Ok([next, ops::add_v2(body, x, x).build()?, ops::tensor_list_push_back(body, list, x).build()?])
        },
    )?;
    ops::tensor_list_stack(graph, list, none, DType::F32).build()
}

#[test]
fn loops_turn_and_lists_grow() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let n = graph.placeholder("n", DType::I32, Some(&[])).unwrap();
    let x = graph.placeholder("x", DType::F32, Some(&[])).unwrap();
    let stack = doubled(&graph, n, x).unwrap();
    let dx = graph.add_gradients(&[stack], &[x], None).unwrap();
    let dtg::Gradient::Dense(dx) = dx[0] else { panic!("{dx:?}") };
    let session = Session::connect("local", &graph).unwrap();
    let (three, begin) = (Tensor::scalar(3i32).unwrap(), Tensor::scalar(1.0f32).unwrap());
    let out = session.run().feed(n, &three).feed(x, &begin).fetch(stack).fetch(dx).call().unwrap();
    assert_eq!(out.slice::<f32>(0).unwrap(), [1.0, 2.0, 4.0]);
    assert_eq!(out.scalar::<f32>(1).unwrap(), 7.0);
}

#[test]
fn branches_and_functions_of_any_number_of_results() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let p = graph.placeholder("p", DType::BOOL, Some(&[])).unwrap();
    let x = graph.placeholder("x", DType::F32, Some(&[])).unwrap();
    let [a, b] =
        graph.if_else(p, |body| Ok([ops::square(body, x).build()?, x]), |body| Ok([x, ops::neg(body, x).build()?])).unwrap();
    let many = graph.switch_case(x, 0, |body, _| one(body));
    refused(many, ErrorKind::InvalidArgument, "");
    let sum: Function = graph
        .function("sum", &[Argument::Like(x), Argument::Of(DType::F32, None)], |body, v| {
            Ok(vec![ops::add_v2(body, v[0], v[1]).build()?, ops::mul(body, v[0], a).build()?])
        })
        .unwrap();
    assert_eq!(sum.captures().unwrap(), [a]);
    let all: Vec<Value> = graph.call(&sum.clone(), &[x, b]).unwrap();
    refused(graph.call::<Value>(&sum, &[x, b]), ErrorKind::InvalidArgument, "1 values are wanted, there are 2");
    refused(graph.call::<[Value; 2]>(&sum, &[x]), ErrorKind::InvalidArgument, "");
    let session = Session::connect("local", &graph).unwrap();
    let (yes, three) = (Tensor::scalar(true).unwrap(), Tensor::scalar(3.0f32).unwrap());
    let out = session.run().feed(p, &yes).feed(x, &three).fetch(all[0]).fetch(all[1]).call().unwrap();
    assert_eq!((out.scalar::<f32>(0).unwrap(), out.scalar::<f32>(1).unwrap()), (6.0, 27.0));
}

#[test]
fn formulas_of_values_from_around() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let p = graph.placeholder("p", DType::BOOL, Some(&[])).unwrap();
    let x = graph.placeholder("x", DType::F32, Some(&[-1, 2])).unwrap();
    let one: Value = graph
        .if_else(
            p,
            |body| {
                assert_eq!((body.dtype(x)?, body.shape(x)?), (DType::F32, Some(vec![-1, 2])));
                (body.expr(x).square() * 1.5 + x).mean([0, 1]).value()
            },
            |body| body.expr(x).sum([0, 1]).value(),
        )
        .unwrap();
    let session = Session::connect("local", &graph).unwrap();
    let (yes, rows) = (Tensor::scalar(true).unwrap(), Tensor::from_slice(&[1, 2], &[1.0f32, 2.0]).unwrap());
    assert_eq!(session.run().feed(p, &yes).feed(x, &rows).fetch(one).call().unwrap().scalar::<f32>(0).unwrap(), 5.25);
}

#[test]
fn shapes_that_change_are_declared() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let (start, zero) = (graph.vector(&[7i32]).unwrap(), graph.scalar(0i32).unwrap());
    let few = |body: &Graph, x: Value| {
        let (size, four) = (ops::size(body, x).build()?, body.scalar(4i32)?);
        ops::less(body, size, four).build()
    };
    let longer = |body: &Graph, x: Value| ops::concat_v2(body, &[x, x], zero).build();
    refused(graph.while_loop(start, few, longer), ErrorKind::InvalidArgument, "declare a wider one");
    let open = [Argument::Of(DType::I32, Some(vec![-1]))];
    let end = graph.while_loop_as(start, &open, few, longer).unwrap();
    refused(graph.while_loop_as(start, &[], few, longer), ErrorKind::InvalidArgument, "1 values are wanted, there are 0");
    let session = Session::connect("local", &graph).unwrap();
    assert_eq!(session.run().fetch(end).call().unwrap().slice::<i32>(0).unwrap(), [7, 7, 7, 7]);
}

#[test]
fn a_loop_without_end_ends_with_its_deadline() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let zero = graph.scalar(0i32).unwrap();
    let out = graph.while_loop(zero, |body, _| body.scalar(true), |body, i| ops::neg(body, i).build()).unwrap();
    let session = Session::connect("local", &graph).unwrap();
    let ended = session.run().fetch(out).timeout(Duration::from_millis(20)).call();
    refused(ended, ErrorKind::DeadlineExceeded, "");
}

/// Errors of closures come out as they are, and nothing stays open.
#[test]
fn what_goes_wrong_in_a_body() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let yes = graph.scalar(true).unwrap();
    let other = Graph::new().unwrap();
    let foreign = one(&other).unwrap();
    let unknown = graph.if_else(yes, |body| body.node("MatMull").build(), one);
    refused(unknown, ErrorKind::NotFound, "MatMul");
    refused(graph.if_else(yes, one, |body| body.node("Neg").build()), ErrorKind::InvalidArgument, "control.rs:");
    refused(graph.if_else(yes, one, |body| body.scalar(1i32)), ErrorKind::InvalidArgument, "int32");
    refused(graph.if_else(yes, one, |_| Ok(foreign)), ErrorKind::InvalidArgument, "");
    refused(graph.if_else(foreign, one, one), ErrorKind::InvalidArgument, "");
    let mut kept = None;
    graph
        .if_else(
            yes,
            |body| {
                let v = one(body)?;
                kept = Some(v);
                Ok(v)
            },
            one,
        )
        .unwrap();
    refused(ops::neg(&graph, kept.unwrap()).build(), ErrorKind::InvalidArgument, "");
    refused(graph.if_else(yes, one, |body| ops::neg(body, kept.unwrap()).build()), ErrorKind::InvalidArgument, "");
    refused(graph.while_loop(vec![yes], |_, v| Ok(v[0]), |_, _| Ok(vec![])), ErrorKind::InvalidArgument, "");
    refused(
        graph.function("f", &[Argument::Of(DType::from_number(999), None)], |_, v| Ok(v[0])),
        ErrorKind::InvalidArgument,
        "element type",
    );
    let theirs = other.function("f", &[], |body, _| one(body)).unwrap();
    refused(graph.call::<Value>(&theirs, &[]), ErrorKind::InvalidArgument, "called only from that one");
    let own = graph.function("f", &[], |body, _| ops::var_handle_op(body, DType::F32, Some(&[])).build());
    refused(own, ErrorKind::Unimplemented, "");
}

fn dense<'a>(name: Option<&'a str>, weights_of: Option<&'a str>) -> Dense<'a> {
    Dense { name, units: 3, activation: Activation::Tanh, weights_of, ..Default::default() }
}

/// x through a layer four times, in a loop.
fn looped(model: &Model, x: Value, layer: &Dense<'_>) -> Result<Value> {
    let [_, end] = model.while_loop(
        [model.scalar(0i32)?, x],
        |body, [i, _]| body.expr(i).less(4).value(),
        |body, [i, x]| Ok([(body.expr(i) + 1).value()?, model.inside(body)?.dense(x, layer)?]),
    )?;
    Ok(end)
}

fn rows(model: &Model) -> Value {
    model.constant(&Tensor::from_slice(&[2, 3], &[1.0f32, -2.0, 0.5, 3.0, 0.25, -1.0]).unwrap()).unwrap()
}

#[test]
fn a_loop_uses_a_layer_that_was_made_outside() {
    let _world = world();
    let model = Model::new(Graph::new().unwrap(), 3).unwrap();
    let x = rows(&model);
    let first = model.dense(x, &dense(Some("mix"), None)).unwrap();
    let again = dense(None, Some("mix"));
    let unrolled = (0..3).fold(first, |x, _| model.dense(x, &again).unwrap());
    let end = looped(&model, x, &again).unwrap();
    assert_eq!(model.variable_count(), 2);
    let session = Session::connect("local", &model).unwrap();
    session.run_target(model.init().unwrap()).unwrap();
    let out = session.run().fetch(end).fetch(unrolled).call().unwrap();
    assert_eq!(out.slice::<f32>(0).unwrap(), out.slice::<f32>(1).unwrap());
    assert!(out.slice::<f32>(0).unwrap().iter().all(|value| *value != 0.0));
}

/// The variables of a body's own layer are the model's, outside of the body, and learn what the same layer learns without a loop.
#[test]
fn a_layer_of_a_body_learns() {
    let _world = world();
    let train = |build: &dyn Fn(&Model, Value) -> Result<Value>, kernel: &str| {
        let model = Model::new(Graph::new().unwrap(), 3).unwrap();
        let x = rows(&model);
        let wanted = model.constant(&Tensor::from_slice(&[2, 3], &[0.5f32; 6]).unwrap()).unwrap();
        let loss = model.mean_squared_error(wanted, build(&model, x).unwrap()).unwrap();
        let names: Vec<_> = model.variables().unwrap().into_iter().map(|variable| (variable.name, variable.trainable)).collect();
        assert_eq!(names, [(format!("{kernel}/kernel"), true), (format!("{kernel}/bias"), true)]);
        let training = model.minimize(loss, &Optimizer::sgd(0.3)).unwrap();
        let session = Session::connect("local", &model).unwrap();
        session.run_target(model.init().unwrap()).unwrap();
        let step = || session.run().fetch(loss).target(training.train).call().unwrap().scalar::<f32>(0).unwrap();
        (0..20).map(|_| step()).collect::<Vec<_>>()
    };
    let inside = train(&|model, x| looped(model, x, &dense(None, None)), "body/dense");
    assert!(inside[19] < 0.5 * inside[0], "{inside:?}");
    let unrolled = |model: &Model, x| {
        let first = model.dense(x, &dense(Some("mix"), None))?;
        (0..3).try_fold(first, |x, _| model.dense(x, &dense(None, Some("mix"))))
    };
    for (a, b) in inside.iter().zip(train(&unrolled, "mix")) {
        assert!((a - b).abs() < 1e-4, "{inside:?}");
    }
}

#[test]
fn models_inside_of_the_wrong_graph() {
    let _world = world();
    let model = Model::new(Graph::new().unwrap(), 3).unwrap();
    let other = Graph::new().unwrap();
    refused(model.inside(&model), ErrorKind::InvalidArgument, "control.rs:");
    refused(model.inside(&other), ErrorKind::InvalidArgument, "");
    let theirs = other.function("f", &[], |body, _| {
        refused(model.inside(body), ErrorKind::InvalidArgument, "control.rs:");
        one(body)
    });
    theirs.unwrap();
}

/// What a body cannot have, and what outlives it.
#[test]
fn a_model_inside_takes_layers_until_its_body_ends() {
    let _world = world();
    let model = Model::new(Graph::new().unwrap(), 3).unwrap();
    let x = rows(&model);
    let training = model.placeholder("training", DType::BOOL, Some(&[])).unwrap();
    let mut kept = None;
    let mut build = |body: &Graph| {
        let inside = model.inside(body)?;
        let w = inside.add_variable(&VariableSpec::new("w"))?;
        assert_eq!((w.name.as_str(), model.find_variable("f/w")?.name.as_str()), ("f/w", "f/w"));
        let y = inside.dense(x, &dense(None, None))?;
        let loss = inside.mean_squared_error(y, x)?;
        refused(inside.minimize(loss, &Optimizer::sgd(0.1)), ErrorKind::FailedPrecondition, "");
        refused(inside.init(), ErrorKind::FailedPrecondition, "");
        refused(inside.next_tower(), ErrorKind::FailedPrecondition, "");
        let norm = BatchNorm { training: Some(training), ..Default::default() };
        refused(inside.batch_norm(x, &norm), ErrorKind::Unimplemented, "");
        kept = Some((inside, y));
        Ok(loss)
    };
    let function = model.function("f", &[], |body, _| build(body)).unwrap();
    let (inside, y) = kept.unwrap();
    let count = model.variable_count();
    refused(inside.dense(y, &dense(None, None)), ErrorKind::FailedPrecondition, "");
    refused(inside.dense(x, &dense(None, None)), ErrorKind::FailedPrecondition, "");
    refused(inside.add_variable(&VariableSpec::new("w")), ErrorKind::FailedPrecondition, "");
    refused(model.inside(&inside), ErrorKind::FailedPrecondition, "");
    refused(model.dense(y, &dense(None, None)), ErrorKind::InvalidArgument, "");
    assert_eq!(model.variable_count(), count);
    // What outlives the model keeps what it needs.
    let loss: Value = model.call(&function, &[]).unwrap();
    let session = Session::connect("local", &model).unwrap();
    session.run_target(model.init().unwrap()).unwrap();
    assert!(session.run().fetch(loss).call().unwrap().scalar::<f32>(0).unwrap() > 0.0);
    drop(model);
    refused(inside.dense(x, &dense(None, None)), ErrorKind::FailedPrecondition, "");
}
