//! Formulas of expressions, and modules: what one writes is what is computed. One test at a time.

mod common;

use common::{refused, world};
use dtg::{
    Activation, DType, Dense, Error, ErrorKind, Expr, Flatten, Graph, Lambda, MaxPool2D, Model, Module, Pool2D, Result, Session,
    Tensor, Value,
};

/// The elements of a value, with nothing fed.
fn run<T: dtg::Element>(value: &Expr<'_>) -> Vec<T> {
    let fetch = value.value().unwrap();
    Session::connect("local", value.graph()).unwrap().run().fetch(fetch).call().unwrap().slice::<T>(0).unwrap().to_vec()
}

#[test]
fn a_formula_is_written_as_one() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let x = graph.expr(graph.vector(&[1.0f32, 2.0, 3.0]).unwrap());
    let y = graph.expr(graph.vector(&[4.0f32, 5.0, 6.0]).unwrap());
    assert_eq!(run::<f32>(&(&x * &y)), [4.0, 10.0, 18.0]);
    assert_eq!(run::<f32>(&x.square().mul(&x)), [1.0, 8.0, 27.0]);
    assert_eq!(run::<f32>(&(-(&y - &x) / 2.0 + y.value().unwrap())), [2.5, 3.5, 4.5]);
    assert_eq!(run::<f32>(&(6.0 / &x)), [6.0, 3.0, 2.0]);
    assert_eq!(run::<f32>(&((10 - x.clone()) % 4)), [1.0, 0.0, 3.0]);
    assert_eq!(run::<f32>(&x.sum([0])), [6.0]);
    assert_eq!(run::<f32>(&x.reshape([3, 1]).mat_mul(y.reshape([1, 3])).sum([0, 1])), [90.0]);
    // Names are given by the functions of ops, whose values come back into formulas.
    let named = dtg::ops::exp(&graph, (&x * 0.0).value().unwrap()).name("ones").build().unwrap();
    assert_eq!(run::<f32>(&(graph.expr(named) + &x)), [2.0, 3.0, 4.0]);
}

#[test]
fn numbers_take_the_type_beside_them() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let long = graph.expr(graph.scalar(16_777_217i64).unwrap());
    assert_eq!(run::<i64>(&(&long + 1)), [16_777_218]);
    assert_eq!(run::<i64>(&(-7 / (&long - 16_777_215))), [-3]); // as Rust rounds
    let byte = graph.expr(graph.scalar(200u8).unwrap());
    assert_eq!(run::<u8>(&(&byte + 55)), [255]);
    assert_eq!(run::<f64>(&(graph.expr(graph.scalar(0.1f64).unwrap()) + 0.2)), [0.1 + 0.2]);
    refused((&byte + 256).value(), ErrorKind::InvalidArgument, "uint8");
    refused((&byte - -1).value(), ErrorKind::InvalidArgument, "uint8");
    refused((&long * 0.5).value(), ErrorKind::InvalidArgument, "int64");
    refused((i64::MAX + graph.expr(graph.scalar(1i32).unwrap())).value(), ErrorKind::InvalidArgument, "int32");
}

/// A literal on the left needs no suffix, whatever is called on the result; a variable of a narrower type is widened, without loss.
#[test]
fn numbers_stand_on_the_left() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let x = graph.expr(graph.vector(&[1.0f32, 2.0]).unwrap());
    let n = graph.expr(graph.vector(&[1u8, 2]).unwrap());
    let twice = (2.0 * &x).value().unwrap();
    assert_eq!(graph.dtype(twice).unwrap(), DType::F32);
    assert_eq!(run::<f32>(&graph.expr(twice)), [2.0, 4.0]);
    assert_eq!(run::<f32>(&(2 * &x - 1.0).square()), [1.0, 9.0]);
    assert_eq!(run::<u8>(&(4 / n.clone()).square()), [16, 4]);
    let (tenth, three) = (0.1f32, 3i32);
    assert_eq!(run::<f32>(&(f64::from(tenth) * &x).neg()), [-0.1f32, -0.2]);
    assert_eq!(run::<f32>(&(i64::from(three) % &x).neg()), [0.0, -1.0]);
    refused((2.5 - &n).value(), ErrorKind::InvalidArgument, "uint8");
    refused(((1i64 << 33) - &graph.expr(graph.scalar(1i32).unwrap())).value(), ErrorKind::InvalidArgument, "int32");
}

/// The first thing that goes wrong is what is told, with the line of the program.
#[test]
fn a_wrong_formula_says_where() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let x = graph.expr(graph.vector(&[1.0f32, 2.0]).unwrap());
    let y = graph.expr(graph.vector(&[1.0f32, 2.0, 3.0]).unwrap());
    let (line, wrong) = (line!(), &x * &y);
    let error: Error = (wrong.sqrt() + 1.0).value().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains(&format!("formulas.rs:{line}")), "{error}");
    // A number that is none of the type beside it is of no node yet.
    let n = graph.expr(graph.vector(&[1i64, 2]).unwrap());
    let (line, wrong) = (line!(), [&n * 0.5, n.clone() / [0.5], 0.5 - &n, n.maximum(2.5)]);
    for one in wrong {
        let error = (one.square() + 1).value().unwrap_err();
        assert!(error.message().contains(&format!(" at dtg/tests/formulas.rs:{line}: a number in a formula of int64")), "{error}");
        assert_eq!(error.message().matches("formulas.rs").count(), 1, "{error}");
    }
    let wrong = &x * &y;
    let before = graph.node_count();
    drop(wrong.exp());
    assert_eq!(graph.node_count(), before, "nothing is added to what failed");
}

/// Two threads that add to one graph: each call is done or refused, and the graph is whole.
#[test]
fn a_graph_has_one_builder_at_a_time() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let x = graph.scalar(1.0f32).unwrap();
    let build = || {
        let added = (0..2000).map(|_| (graph.expr(x) + x).value());
        added
            .filter(|sum| sum.as_ref().map_err(|error| assert_eq!(error.kind(), ErrorKind::FailedPrecondition, "{error}")).is_ok())
            .count()
    };
    let (here, there) = std::thread::scope(|scope| {
        let other = scope.spawn(build);
        (build(), other.join().unwrap())
    });
    assert_eq!(graph.node_count(), 1 + here + there);
    assert!((graph.expr(x) + x).value().is_ok());
}

/// A module of the program's own, out of those that there are.
struct Twice<M>(M);

impl<M: Module> Module for Twice<M> {
    fn forward(&self, model: &Model, x: Value) -> Result<Value> {
        model.forward(model.forward(x, &self.0)?, &self.0)
    }
}

#[test]
fn modules_are_put_together() {
    let _world = world();
    let model = Model::new(Graph::new().unwrap(), 1).unwrap();
    let x = model.placeholder("x", DType::F32, Some(&[-1, 4, 4, 1])).unwrap();
    let double = Lambda(|model: &Model, x: Value| (model.expr(x) * 2.0).value());
    let network: [&dyn Module; 5] =
        [&MaxPool2D(Pool2D::default()), &Flatten, &Twice(Dense { units: 4, ..Default::default() }), &double, &Activation::Softmax];
    let out = model.forward(x, &network).unwrap();
    assert_eq!(model.shape(out).unwrap(), Some(vec![-1, 4]));
    assert_eq!(model.variable_count(), 4);
    let rows: Vec<Box<dyn Module>> = vec![Box::new(Dense { units: 2, ..Default::default() }), Box::new(Activation::Relu)];
    let ends = model.forward(out, &rows).unwrap();
    let session = Session::connect("local", &model).unwrap();
    session.run_target(model.init().unwrap()).unwrap();
    let fed = Tensor::zeros(DType::F32, &[3, 4, 4, 1]).unwrap();
    let found = session.run().feed(x, &fed).fetch(out).fetch(ends).call().unwrap();
    assert_eq!(found.slice::<f32>(0).unwrap(), [0.25; 12]);
    assert_eq!(found.tensor(1).unwrap().dims(), [3, 2]);
    refused(model.forward(x, &Dense { units: 0, ..Default::default() }), ErrorKind::InvalidArgument, "units");
}
