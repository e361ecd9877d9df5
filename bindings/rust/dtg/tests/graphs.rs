//! Graphs: nodes, attributes, scopes, gradients, bytes. One test at a time.

mod common;

use common::{refused, world};
use dtg::{
    Attr, Cluster, DType, DeviceSetter, ErrorKind, Gradient, Graph, Model, Scope, Session, SetterStrategy, Tensor, VariableSpec,
    ops,
};

#[test]
fn nodes_are_added_and_asked() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let x = graph.placeholder("x", DType::F32, Some(&[-1, 3])).unwrap();
    let any = graph.placeholder("any", DType::I32, None).unwrap();
    assert_eq!((graph.shape(x).unwrap(), graph.shape(any).unwrap()), (Some(vec![-1, 3]), None));
    let y = graph.node("Mul").input(x).inputs(&[x]).name("y").device("/device:CPU:0").control(any).build().unwrap();
    assert_eq!((graph.name(y).unwrap(), graph.op(y).unwrap(), graph.device(y).unwrap()), ("y", "Mul", "/device:CPU:0"));
    assert_eq!((graph.dtype(y).unwrap(), graph.num_outputs(y).unwrap(), graph.output(y, 0).unwrap()), (DType::F32, 1, y));
    assert_eq!((graph.node_count(), graph.node_at(2).unwrap(), graph.find("y:0").unwrap()), (3, y, y));
    refused(graph.node_at(3), ErrorKind::OutOfRange, "3");
    refused(graph.find("z"), ErrorKind::NotFound, "z");
    refused(graph.output(y, 1), ErrorKind::OutOfRange, "1");

    let other = Graph::new().unwrap();
    refused(other.name(y), ErrorKind::InvalidArgument, "");
    let error = refused(graph.node("Mul").input(x).input(any).build(), ErrorKind::InvalidArgument, "");
    assert!(error.message().contains("graphs.rs:"), "the place in this program is not in: {error}");
    refused(graph.node("Mull").input(x).input(x).build(), ErrorKind::NotFound, "Mul");
    let no_op = graph.node("NoOp").control(y).build().unwrap();
    refused(graph.dtype(no_op), ErrorKind::InvalidArgument, "");
    assert_eq!(graph.node("NoOp").build_all().unwrap(), []);
}

#[test]
fn attributes_of_every_kind() {
    let _world = world();
    let graph = Graph::new().unwrap();
    // list(type), list(shape), int, string
    let types = [DType::F32, DType::I64];
    let queue = ops::fifo_queue_v2(&graph, &types).shapes(&[Some(&[2]), Some(&[])]).capacity(3).shared_name("q").build().unwrap();
    assert_eq!(graph.dtype(queue).unwrap(), DType::RESOURCE);
    let both = ops::queue_dequeue_v2(&graph, queue, &types).build().unwrap();
    assert_eq!((both.len(), graph.dtype(both[0]).unwrap(), graph.dtype(both[1]).unwrap()), (2, DType::F32, DType::I64));
    let (three, one) = (graph.vector(&[1.0f32, 2.0, 3.0]).unwrap(), graph.scalar(1i64).unwrap());
    let wrong = ops::queue_enqueue_v2(&graph, queue, &[three, one]).build().unwrap();
    let session = Session::connect("local", &graph).unwrap();
    refused(session.run_target(wrong), ErrorKind::InvalidArgument, "[3]");
    drop(session);
    // shape, type, list(string)
    let handle = graph
        .node("VarHandleOp")
        .attr("dtype", DType::F32)
        .attr("shape", Attr::shape(&[4]))
        .attr("allowed_devices", &["a", "b"][..])
        .build();
    assert_eq!(graph.dtype(handle.unwrap()).unwrap(), DType::RESOURCE);
    // bool, list(int), float
    let image = graph.placeholder("image", DType::F32, Some(&[1, 5, 5, 2])).unwrap();
    let filter = graph.placeholder("filter", DType::F32, Some(&[3, 3, 2, 4])).unwrap();
    let convolved = ops::conv2d(&graph, image, filter, &[1, 1, 1, 1], "SAME").dilations(&[1, 1, 1, 1]).build().unwrap();
    assert_eq!(graph.shape(convolved).unwrap(), Some(vec![1, 5, 5, 4]));
    let leaky = graph.node("LeakyRelu").input(image).attr("alpha", 0.3).build().unwrap();
    assert_eq!(graph.op(leaky).unwrap(), "LeakyRelu");
    // tensor
    let constant = ops::const_(&graph, &Tensor::from_slice(&[2], &[1i32, 2]).unwrap(), DType::I32).build().unwrap();
    assert_eq!(graph.shape(constant).unwrap(), Some(vec![2]));
    // Several outputs.
    let labels = graph.placeholder("labels", DType::I64, Some(&[1])).unwrap();
    let logits = graph.placeholder("logits", DType::F32, Some(&[1, 3])).unwrap();
    let [loss, gradient] = ops::sparse_softmax_cross_entropy_with_logits(&graph, logits, labels).build().unwrap();
    assert_eq!((graph.shape(loss).unwrap(), graph.shape(gradient).unwrap()), (Some(vec![1]), Some(vec![1, 3])));
    refused(
        graph.node("MatMul").input(image).input(image).attr("transpose_c", true).build(),
        ErrorKind::InvalidArgument,
        "transpose_c",
    );
    refused(graph.node("LeakyRelu").input(image).attr("alpha", "much").build(), ErrorKind::InvalidArgument, "alpha");
}

#[test]
fn scopes_give_and_end() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let first = graph.scalar(1.0f32).unwrap();
    let inner = graph
        .within(Scope::Name("outer"), |graph| {
            graph.within(Scope::Device("/job:ps"), |graph| {
                graph.within(Scope::Controls(&[first]), |graph| graph.node("NoOp").name("inner").build())
            })
        })
        .unwrap();
    assert_eq!((graph.name(inner).unwrap(), graph.device(inner).unwrap()), ("outer/inner", "/job:ps"));
    let plain = graph.within(Scope::Device("/job:ps"), |graph| graph.within(Scope::NoDevice, |graph| graph.scalar(1i32))).unwrap();
    assert_eq!(graph.device(plain).unwrap(), "");
    let beside = graph.within(Scope::Colocate(inner), |graph| graph.scalar(2i32)).unwrap();
    assert_eq!(graph.op(beside).unwrap(), "Const");
    // A scope ends with an error, and with a panic.
    refused(graph.within(Scope::Name("bad"), |graph| graph.node("Nope").build()), ErrorKind::NotFound, "Nope");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        graph.within(Scope::Name("worse"), |_| -> dtg::Result<()> { panic!("no") })
    }));
    assert!(panicked.is_err());
    let root = graph.node("NoOp").name("root").build().unwrap();
    assert_eq!(graph.name(root).unwrap(), "root");
    refused(graph.pop(Scope::Name("")), ErrorKind::FailedPrecondition, "");
    refused(graph.pop(Scope::Device("")), ErrorKind::FailedPrecondition, "");
    refused(graph.push(Scope::Device("/device:CPU:x")), ErrorKind::InvalidArgument, "");
}

#[test]
fn a_device_setter_places_variables() {
    let _world = world();
    let cluster = Cluster::parse("ps=unix:/p0,unix:/p1;worker=unix:/w0").unwrap();
    let setter = DeviceSetter {
        cluster: Some(&cluster),
        worker_device: Some("/job:worker/task:0"),
        strategy: SetterStrategy::GreedyBytes,
        ..Default::default()
    };
    let model = Model::new(Graph::new().unwrap(), 1).unwrap();
    let (large, small, other) = model
        .within(Scope::Setter(&setter), |model| {
            let large = model.add_variable(&VariableSpec { dims: &[100], ..VariableSpec::new("large") })?;
            let small = model.add_variable(&VariableSpec { dims: &[1], ..VariableSpec::new("small") })?;
            let other = model.add_variable(&VariableSpec { dims: &[1], ..VariableSpec::new("other") })?;
            Ok((large, small, other))
        })
        .unwrap();
    let devices = [large, small, other].map(|variable| model.device(variable.handle).unwrap().to_owned());
    assert_eq!(devices, ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:1"]);
    let ops_of_one = DeviceSetter { ps_tasks: 1, ps_ops: Some(&["NoOp"]), ps_device: Some("/job:shelf"), ..Default::default() };
    let node = model.within(Scope::Setter(&ops_of_one), |model| model.node("NoOp").build()).unwrap();
    assert_eq!(model.device(node).unwrap(), "/job:shelf/task:0");
    let nul = DeviceSetter { ps_device: Some("/job:\0"), ..Default::default() };
    refused(model.push(Scope::Setter(&nul)), ErrorKind::InvalidArgument, "NUL");
}

#[test]
fn gradients_come_dense_as_rows_and_not_at_all() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let table = graph.placeholder("table", DType::F32, Some(&[4, 2])).unwrap();
    let x = graph.placeholder("x", DType::F32, Some(&[])).unwrap();
    let alone = graph.placeholder("alone", DType::F32, Some(&[])).unwrap();
    let (ids, axis) = (graph.vector(&[1i64, 1]).unwrap(), graph.scalar(0i32).unwrap());
    let rows = ops::gather_v2(&graph, table, ids, axis).build().unwrap();
    let square = ops::square(&graph, x).build().unwrap();
    let gradients = graph.add_gradients(&[rows, square], &[table, x, alone], None).unwrap();
    let Gradient::Rows { values, .. } = gradients[0] else { panic!("{gradients:?}") };
    assert_eq!(graph.shape(values).unwrap(), Some(vec![2, 2]));
    let Gradient::Dense(slope) = gradients[1] else { panic!("{gradients:?}") };
    assert_eq!(gradients[2], Gradient::None);
    let dense = graph.densify(&gradients[0]).unwrap();
    refused(graph.densify(&Gradient::None), ErrorKind::InvalidArgument, "");
    refused(graph.add_gradients(&[ids], &[x], None), ErrorKind::InvalidArgument, "");
    refused(graph.add_gradients(&[square], &[x], Some(&[])), ErrorKind::InvalidArgument, "grad_ys");
    let three = graph.scalar(3.0f32).unwrap();
    let weighted = graph.add_gradients(&[square], &[x], Some(&[three])).unwrap();
    let Gradient::Dense(weighted) = weighted[0] else { panic!("{weighted:?}") };

    let session = Session::connect("local", &graph).unwrap();
    let (zeros, five) = (Tensor::zeros(DType::F32, &[4, 2]).unwrap(), Tensor::scalar(5.0f32).unwrap());
    let out = session.run().feed(table, &zeros).feed(x, &five).fetch(dense).fetch(slope).fetch(weighted).call().unwrap();
    assert_eq!(out.slice::<f32>(0).unwrap(), [0.0, 0.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!((out.scalar::<f32>(1).unwrap(), out.scalar::<f32>(2).unwrap()), (10.0, 30.0));
}

#[test]
fn a_graph_goes_through_bytes() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let two = graph.scalar(2.0f32).unwrap();
    ops::square(&graph, two).name("four").build().unwrap();
    let bytes = graph.serialize().unwrap();
    let again = Graph::new().unwrap();
    again.import(&bytes).unwrap();
    let four = again.find("four").unwrap();
    let session = Session::connect("local", &again).unwrap();
    assert_eq!(session.run().fetch(four).call().unwrap().scalar::<f32>(0).unwrap(), 4.0);
    refused(again.import(&bytes), ErrorKind::FailedPrecondition, "");
    refused(Graph::new().unwrap().import(&bytes[..bytes.len() / 2]), ErrorKind::DataLoss, "");
    refused(Graph::new().unwrap().import(b""), ErrorKind::DataLoss, "");
}
