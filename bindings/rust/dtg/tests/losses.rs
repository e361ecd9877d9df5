//! Losses and metrics: a value that is known, weights, rows of sampled classes that learn, a metric over batches, and what is refused. One
//! test at a time.

mod common;

use common::world;
use dtg::{
    DType, Graph, Loss, LossKind, LossReduction, Metric, MetricKind, Model, Optimizer, SampledKind, SampledLoss, Session, Tensor,
};

fn near(found: f32, expected: f64) {
    assert!((f64::from(found) - expected).abs() < 1e-5, "{found}, and {expected} was expected");
}

#[test]
fn losses_are_what_they_say() {
    let _world = world();
    let model = Model::new(Graph::new().unwrap(), 3).unwrap();
    let logits = model.placeholder("logits", DType::F32, Some(&[-1, 3])).unwrap();
    let labels = model.placeholder("labels", DType::I32, Some(&[-1])).unwrap();
    let weights = model.placeholder("weights", DType::F32, Some(&[-1])).unwrap();
    let plain = Loss { kind: LossKind::SparseCategoricalCrossentropy, from_logits: true, ..Default::default() };
    let sparse = Loss { sample_weights: Some(weights), ..plain };
    let mean = model.loss(labels, logits, &sparse).unwrap();
    let sum = model.loss(labels, logits, &Loss { reduction: LossReduction::Sum, ..sparse }).unwrap();
    let ignoring = model.loss(labels, logits, &Loss { ignore_class: Some(2), ..plain }).unwrap();
    let triplet = model.triplet_loss(logits, logits, logits, 0.25).unwrap();
    let many = SampledLoss { kind: SampledKind::SampledSoftmax, classes: 50, samples: 6, ..Default::default() };
    let words = model.sampled_loss(labels, logits, &many).unwrap();
    let table = model.find_variable("sampled_softmax/weights").unwrap();
    let total = model.regularize(words, &[], 0.0, 1e-4).unwrap();
    let total = model.regularize(total, &[table.handle], 0.0, 1e-4).unwrap();
    let train = model.minimize(total, &Optimizer::sgd(0.5)).unwrap().train;
    let metric = Metric { kind: MetricKind::Loss, loss: Some(&plain), sample_weights: Some(weights), ..Default::default() };
    let metric = model.metric(Some(labels), logits, &metric).unwrap();
    let init = model.init().unwrap();
    let session = Session::connect("local", &model).unwrap();
    session.run_target(init).unwrap();
    let zeros = Tensor::from_slice(&[4, 3], &[0f32; 12]).unwrap();
    let classes = Tensor::from_slice(&[4], &[0i32, 1, 2, 1]).unwrap();
    let counts = Tensor::from_slice(&[4], &[1f32, 1.0, 2.0, 0.0]).unwrap();
    let run = || session.run().feed(logits, &zeros).feed(labels, &classes).feed(weights, &counts);
    let value = |of| run().fetch(of).call().unwrap().scalar::<f32>(0).unwrap();
    near(value(mean), 3f64.ln());
    near(value(sum), 4.0 * 3f64.ln());
    near(value(ignoring), 3f64.ln());
    near(value(triplet), 0.25);
    let first = value(total);
    for _ in 0..30 {
        drop(run().target(train).call().unwrap());
    }
    let last = value(total);
    assert!(last < first, "{first}, then {last}");
    near(run().fetch(metric.result).target(metric.update).call().unwrap().scalar::<f32>(0).unwrap(), 3f64.ln());
    let error = model.loss(logits, labels, &plain).unwrap_err();
    assert!(error.to_string().contains("labels and logits look swapped"), "{error}");
}

#[test]
fn metrics_go_on_over_batches() {
    let _world = world();
    let model = Model::new(Graph::new().unwrap(), 3).unwrap();
    let scores = model.placeholder("scores", DType::F32, Some(&[-1])).unwrap();
    let labels = model.placeholder("labels", DType::F32, Some(&[-1])).unwrap();
    let area = model.metric(Some(labels), scores, &Metric { kind: MetricKind::Auc, ..Default::default() }).unwrap();
    let precision = Metric { kind: MetricKind::Precision, threshold: 0.25, ..Default::default() };
    let precision = model.metric(Some(labels), scores, &precision).unwrap();
    let mean = model.metric(None, scores, &Metric::default()).unwrap();
    let session = Session::connect("local", &model).unwrap();
    for each in [&area, &precision, &mean] {
        session.run_target(each.reset).unwrap();
    }
    for (p, y) in [(vec![0.1f32, 0.8, 0.3], vec![0f32, 1.0, 0.0]), (vec![0.9], vec![1.0])] {
        let size = [p.len()];
        let (p, y) = (Tensor::from_slice(&size, &p).unwrap(), Tensor::from_slice(&size, &y).unwrap());
        let run = session.run().feed(scores, &p).feed(labels, &y);
        drop(run.target(area.update).target(precision.update).target(mean.update).call().unwrap());
    }
    let value = |of| session.run().fetch(of).call().unwrap().scalar::<f32>(0).unwrap();
    near(value(area.result), 1.0);
    near(value(precision.result), 2.0 / 3.0);
    near(value(mean.result), 2.1 / 4.0);
}
