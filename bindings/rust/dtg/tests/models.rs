//! Models: layers, losses, optimizers, schedules, towers, replicas, files. One test at a time.

mod common;

use std::time::Duration;

use common::{Folder, refused, world};
use dtg::{
    Activation, AllReduce, Checkpoint, CheckpointOptions, Cluster, Conv2D, DType, Dataset, Dense, Embedding, ErrorKind, Gradient,
    Graph, Initializer, Model, Optimizer, OptimizerKind, Padding, Pool2D, Replication, RestoreReport, Schedule, Scope, Server,
    Session, SyncMode, Tensor, VariableSpec, ops,
};

fn model() -> Model {
    Model::new(Graph::new().unwrap(), 1).unwrap()
}

#[test]
fn every_layer_loss_and_metric() {
    let _world = world();
    let model = model();
    let image = model.placeholder("image", DType::F32, Some(&[2, 8, 8, 1])).unwrap();
    let labels = model.placeholder("labels", DType::I64, Some(&[2])).unwrap();
    let conv =
        Conv2D { filters: 4, kernel_size: (3, 0), padding: Padding::Same, activation: Activation::Relu, ..Default::default() };
    let convolved = model.conv2d(image, &conv).unwrap();
    assert_eq!(model.shape(convolved).unwrap(), Some(vec![2, 8, 8, 4]));
    let pooled = model.max_pool2d(convolved, &Pool2D::default()).unwrap();
    let averaged =
        model.avg_pool2d(pooled, &Pool2D { window: (2, 2), strides: (1, 1), name: Some("mean"), ..Default::default() }).unwrap();
    assert_eq!((model.shape(averaged).unwrap(), model.name(averaged).unwrap().contains("mean")), (Some(vec![2, 3, 3, 4]), true));
    let flat = model.flatten(averaged).unwrap();
    let step = model.global_step().unwrap();
    let training = model.scalar(true).unwrap();
    let dropped = model.dropout(flat, 0.5, step.read, Some(training)).unwrap();
    let dropped = model.dropout(dropped, 0.1, step.read, None).unwrap();
    let dense = Dense { name: Some("out"), units: 3, no_bias: true, kernel: Initializer::HeNormal, ..Default::default() };
    let logits = model.dense(dropped, &dense).unwrap();
    let soft = model.activation(logits, Activation::Softmax).unwrap();
    let embedded = model.embedding(labels, &Embedding { rows: 10, width: 3, ..Default::default() }).unwrap();
    let losses = [
        model.sparse_softmax_cross_entropy(labels, logits).unwrap(),
        model.softmax_cross_entropy(soft, logits).unwrap(),
        model.sigmoid_cross_entropy(soft, logits).unwrap(),
        model.mean_squared_error(embedded, logits).unwrap(),
        model.accuracy(labels, logits).unwrap(),
    ];
    let count = model.correct_count(labels, logits).unwrap();
    let names: Vec<_> = model.variables().unwrap().into_iter().map(|variable| variable.name).collect();
    assert_eq!(names, ["conv2d/kernel", "conv2d/bias", "global_step", "out/kernel", "embedding/embeddings"]);
    let kernel = model.find_variable("conv2d/kernel").unwrap();
    assert_eq!((kernel.dims.clone(), kernel.dtype, kernel.trainable), (vec![3, 3, 1, 4], DType::F32, true));
    assert_eq!(model.variable(0).unwrap(), kernel);
    refused(model.variable(9), ErrorKind::OutOfRange, "9");
    refused(model.find_variable("nope"), ErrorKind::NotFound, "nope");
    refused(model.dense(labels, &dense), ErrorKind::InvalidArgument, "");
    refused(model.dense(flat, &Dense::default()), ErrorKind::InvalidArgument, "units");

    let init = model.init().unwrap();
    let session = Session::connect("local", &model).unwrap();
    session.run_target(init).unwrap();
    let (pixels, classes) = (Tensor::zeros(DType::F32, &[2, 8, 8, 1]).unwrap(), Tensor::from_slice(&[2], &[0i64, 1]).unwrap());
    let mut run = session.run().feed(image, &pixels).feed(labels, &classes).fetch(count);
    for loss in losses {
        run = run.fetch(loss);
    }
    let out = run.call().unwrap();
    // All logits are 0: the first class wins, and the loss is log 3.
    assert_eq!(out.scalar::<i64>(0).unwrap(), 1);
    assert!((out.scalar::<f32>(1).unwrap() - 3f32.ln()).abs() < 1e-6);
    assert_eq!(out.scalar::<f32>(5).unwrap(), 0.5);
}

#[test]
fn initializers_and_variables() {
    let _world = world();
    let model = model();
    let with = |model: &Model, initializer| {
        model.add_variable(&VariableSpec { dims: &[64], initializer, ..VariableSpec::new("v") }).unwrap()
    };
    let kinds = [
        (Initializer::Default, 0.0..=0.0),
        (Initializer::Zeros, 0.0..=0.0),
        (Initializer::Ones, 1.0..=1.0),
        (Initializer::Constant(2.5), 2.5..=2.5),
        (Initializer::Uniform(3.0, 4.0), 3.0..=4.0),
        (Initializer::Normal(10.0, 0.1), 9.0..=11.0),
        (Initializer::TruncatedNormal(10.0, 0.1), 9.8..=10.2),
        (Initializer::GlorotUniform, -1.0..=1.0),
        (Initializer::GlorotNormal, -1.0..=1.0),
        (Initializer::HeUniform, -1.0..=1.0),
        (Initializer::HeNormal, -1.0..=1.0),
    ];
    let variables: Vec<_> = kinds.iter().map(|(kind, _)| with(&model, *kind)).collect();
    let fixed =
        model.add_variable(&VariableSpec { dtype: Some(DType::I64), not_trainable: true, ..VariableSpec::new("n") }).unwrap();
    assert_eq!((fixed.trainable, fixed.dtype, variables[1].name.as_str()), (false, DType::I64, "v_1"));
    let init = model.init().unwrap();
    let session = Session::connect("local", &model).unwrap();
    session.run_target(variables[4].assign).unwrap();
    session.run_target(init).unwrap();
    for (variable, (kind, range)) in variables.iter().zip(kinds) {
        let out = session.run().fetch(variable.read).call().unwrap();
        assert!(out.slice::<f32>(0).unwrap().iter().all(|value| range.contains(value)), "{kind:?}");
    }
}

#[test]
fn every_optimizer_finds_three() {
    let _world = world();
    let more = |kind| Optimizer { kind, rate: 0.5, clip_norm: 100.0, ..Default::default() };
    let moving = |kind| Optimizer { momentum: 0.5, ..more(kind) };
    let optimizers = [
        Optimizer::sgd(0.25),
        Optimizer { nesterov: true, ..Optimizer::momentum(0.1, 0.5) },
        Optimizer::adam(0.3),
        more(OptimizerKind::Adagrad),
        Optimizer { rate: 0.1, ..moving(OptimizerKind::RmsProp) },
        Optimizer { rate: 0.05, centered: true, epsilon: 1e-3, ..moving(OptimizerKind::RmsProp) },
        Optimizer { amsgrad: true, ..Optimizer::adam(0.3) },
        Optimizer { rate: 5.0, epsilon: 1e-3, ..more(OptimizerKind::Adadelta) },
        Optimizer { rate: 0.3, ..more(OptimizerKind::Adamax) },
        Optimizer { rate: 0.3, ..more(OptimizerKind::Nadam) },
        Optimizer { rate: 2.0, l1: 0.001, l2: 0.001, ftrl_beta: 0.1, ..more(OptimizerKind::Ftrl) },
        Optimizer { rate: 0.05, beta1: 0.5, beta2: 0.5, ..more(OptimizerKind::Lion) },
        Optimizer { rate: 0.1, undecayed_names: "w".into(), ..moving(OptimizerKind::Lars) },
        Optimizer { lookahead_steps: 4, ..Optimizer::sgd(0.2) },
        Optimizer { ema: true, ema_momentum: 0.5, ema_overwrite_every: 10, ..Optimizer::sgd(0.3) },
        Optimizer { accumulation_steps: 2, ..Optimizer::sgd(0.2) },
        Optimizer { clip_each_norm: 1.0, ..Optimizer::sgd(0.1) },
    ];
    for optimizer in optimizers {
        let model = model();
        let w = model.add_variable(&VariableSpec::new("w")).unwrap();
        let three = model.scalar(3.0f32).unwrap();
        let loss = model.mean_squared_error(three, w.read).unwrap();
        let training = model.minimize(loss, &optimizer).unwrap();
        let init = model.init().unwrap();
        let session = Session::connect("local", &model).unwrap();
        session.run_target(init).unwrap();
        let norm = session.run().fetch(training.gradient_norm).fetch(training.learning_rate).call().unwrap();
        assert_eq!(norm.scalar::<f32>(0).unwrap(), 6.0);
        for _ in 0..200 {
            session.run_target(training.train).unwrap();
        }
        let out = session.run().fetch(w.read).fetch(training.global_step).call().unwrap();
        assert!((out.scalar::<f32>(0).unwrap() - 3.0).abs() < 0.1, "{optimizer:?}: {:?}", out.scalar::<f32>(0));
        assert_eq!(out.scalar::<i64>(1).unwrap(), 200);
    }
}

// A generator and its critic: two optimizers in one model, each with variables of its own.
#[test]
fn two_optimizers_train_each_its_own() {
    let _world = world();
    let model = model();
    let a = model.add_variable(&VariableSpec { initializer: Initializer::Ones, ..VariableSpec::new("a") }).unwrap();
    let b = model.add_variable(&VariableSpec { initializer: Initializer::Constant(2.0), ..VariableSpec::new("b") }).unwrap();
    let loss = dtg::ops::mul(&model, a.read, b.read).build().unwrap();
    let of_a = model.minimize(loss, &Optimizer { variables: vec![a.handle], ..Optimizer::sgd(0.25) }).unwrap();
    let lamb = Optimizer {
        kind: OptimizerKind::Lamb,
        rate: 0.5,
        variables: vec![b.handle],
        undecayed: vec![b.handle],
        ..Default::default()
    };
    let of_b = model.minimize(loss, &lamb).unwrap();
    let init = model.init().unwrap();
    let session = Session::connect("local", &model).unwrap();
    session.run_target(init).unwrap();
    let both = || {
        let out = session.run().fetch(a.read).fetch(b.read).call().unwrap();
        (out.scalar::<f32>(0).unwrap(), out.scalar::<f32>(1).unwrap())
    };
    session.run_target(of_a.train).unwrap();
    assert_eq!(both(), (0.5, 2.0));
    session.run_target(of_b.train).unwrap();
    assert!(both().0 == 0.5 && (both().1 - 1.0).abs() < 1e-5, "{:?}", both());
}

#[test]
fn schedules_follow_the_step() {
    let _world = world();
    let model = model();
    let step = model.global_step().unwrap().read;
    let schedules = [
        (Schedule::ExponentialDecay { rate: 1.0, steps: 4.0, decay_rate: 0.5, staircase: true }, 1.0),
        (Schedule::InverseTimeDecay { rate: 1.0, steps: 2.0, decay_rate: 1.0, staircase: false }, 1.0),
        (Schedule::PolynomialDecay { rate: 1.0, steps: 8.0, end_rate: 0.5, power: 1.0, cycle: true }, 1.0),
        (Schedule::PiecewiseConstant { boundaries: vec![-1, 5], values: vec![3.0, 2.0, 1.0] }, 2.0),
        (Schedule::CosineDecay { rate: 0.5, steps: 8.0, alpha: 0.5, warmup: Some((2.0, 2.0)) }, 0.5),
        (Schedule::CosineDecayRestarts { rate: 1.0, steps: 2.0, t_mul: 1.0, m_mul: 0.5, alpha: 0.0 }, 1.0),
    ];
    let rates: Vec<_> = schedules.iter().map(|(schedule, _)| model.schedule(step, schedule).unwrap()).collect();
    let short = Schedule::PiecewiseConstant { boundaries: vec![1], values: vec![] };
    refused(model.schedule(step, &short), ErrorKind::InvalidArgument, "one value more");
    let init = model.init().unwrap();
    let session = Session::connect("local", &model).unwrap();
    session.run_target(init).unwrap();
    for (rate, (schedule, wanted)) in rates.into_iter().zip(&schedules) {
        let found = session.run().fetch(rate).call().unwrap().scalar::<f32>(0).unwrap();
        assert!((found - wanted).abs() < 1e-5, "{schedule:?}: {found}");
    }
}

#[test]
fn schedules_and_gradients_of_ones_own() {
    let _world = world();
    let model = model();
    let step = model.global_step().unwrap().read;
    let decay = model.exponential_decay(step, 1.0, 1.0, 0.5, true).unwrap();
    let cosine = model.cosine_decay(step, 1.0, 10.0, 0.0, 2.0).unwrap();
    let w = model.add_variable(&VariableSpec::new("w")).unwrap();
    let two = model.scalar(2.0f32).unwrap();
    let optimizer = Optimizer { learning_rate: Some(decay), ..Default::default() };
    let train = model.apply_gradients(&optimizer, &[(w.handle, Gradient::Dense(two))]).unwrap();
    refused(model.apply_gradients(&optimizer, &[(two, Gradient::Dense(two))]), ErrorKind::InvalidArgument, "");
    let init = model.init().unwrap();
    let session = Session::connect("local", &model).unwrap();
    session.run_target(init).unwrap();
    assert_eq!(session.run().fetch(decay).fetch(cosine).call().unwrap().scalar::<f32>(1).unwrap(), 0.0);
    session.run_target(train).unwrap();
    assert_eq!(session.run().fetch(w.read).call().unwrap().scalar::<f32>(0).unwrap(), -2.0);
    // Ten elements do not divide by three workers: over three steps each is short once.
    let shares: Vec<i64> = (0..3).flat_map(|worker| dtg::batch_sizes(10, 3, 1, worker).unwrap()).collect();
    assert_eq!((shares.len(), shares.iter().sum::<i64>()), (9, 30));
    refused(dtg::batch_sizes(10, 3, 1, 3), ErrorKind::InvalidArgument, "");
}

#[test]
fn a_model_goes_through_a_file() {
    let _world = world();
    let folder = Folder::new("model");
    let path = folder.file("w.safetensors");
    let build = |first| {
        let model = model();
        let w = model
            .add_variable(&VariableSpec { dims: &[2], initializer: Initializer::Constant(first), ..VariableSpec::new("w") })
            .unwrap();
        let init = model.init().unwrap();
        let session = Session::connect("local", &model).unwrap();
        (model, w, init, session)
    };
    let (model, _, init, session) = build(1.5);
    refused(model.save(&session, &path), ErrorKind::FailedPrecondition, "w");
    session.run_target(init).unwrap();
    model.save(&session, &path).unwrap();
    let (again, w, init, session) = build(0.0);
    refused(again.wait_ready(&session, Duration::from_millis(10)), ErrorKind::DeadlineExceeded, "w");
    session.run_target(init).unwrap();
    again.wait_ready(&session, Duration::from_secs(5)).unwrap();
    again.restore(&session, &path).unwrap();
    assert_eq!(session.run().fetch(w.read).call().unwrap().slice::<f32>(0).unwrap(), [1.5, 1.5]);
    refused(again.restore(&session, folder.file("none")), ErrorKind::NotFound, "none");
}

#[test]
fn a_variable_needs_a_name() {
    let _world = world();
    refused(model().add_variable(&VariableSpec::new("")), ErrorKind::InvalidArgument, "VariableSpec::new(\"w\")");
}

#[test]
fn towers_share_variables() {
    let _world = world();
    let model = model();
    let layer = |model: &Model, value: f32| {
        let x = model.constant(&Tensor::from_slice(&[1, 1], &[value]).unwrap()).unwrap();
        let y = model.dense(x, &Dense { units: 1, ..Default::default() }).unwrap();
        model.mean_squared_error(x, y).unwrap()
    };
    let first = layer(&model, 1.0);
    model.next_tower().unwrap();
    let second = model.within(Scope::Device("/device:CPU:0"), |model| Ok(layer(model, 2.0))).unwrap();
    let training = model.minimize_towers(&[first, second], &Optimizer::sgd(0.01)).unwrap();
    assert_eq!(model.variables().unwrap().iter().filter(|variable| variable.trainable).count(), 2);
    let init = model.init().unwrap();
    let session = Session::connect("local", &model).unwrap();
    session.run_target(init).unwrap();
    let before = session.run().fetch(first).call().unwrap().scalar::<f32>(0).unwrap();
    for _ in 0..50 {
        session.run_target(training.train).unwrap();
    }
    assert!(session.run().fetch(first).call().unwrap().scalar::<f32>(0).unwrap() < before);
}

/// A member that is alone averages its own gradients.
#[test]
fn one_member_trains_by_all_reduce() {
    let _world = world();
    let model = model();
    let x = model.constant(&Tensor::from_slice(&[1, 1], &[1.0f32]).unwrap()).unwrap();
    let y = model.dense(x, &Dense { units: 1, ..Default::default() }).unwrap();
    let loss = model.mean_squared_error(x, y).unwrap();
    let how = AllReduce { group_size: 1, ..Default::default() };
    let training = model.minimize_all_reduce(loss, &Optimizer::sgd(0.1), &how).unwrap();
    assert!(model.minimize_all_reduce(loss, &Optimizer::sgd(0.1), &AllReduce::default()).is_err());
    let init = model.init().unwrap();
    let session = Session::connect("local", &model).unwrap();
    session.run_target(init).unwrap();
    let before = session.run().fetch(loss).call().unwrap().scalar::<f32>(0).unwrap();
    session.run_target(training.train).unwrap();
    assert!(session.run().fetch(loss).call().unwrap().scalar::<f32>(0).unwrap() < before);
}

/// One worker that is its own chief, on a server of this process, in each mode.
#[test]
fn a_replica_trains() {
    let _world = world();
    for mode in [SyncMode::Async, SyncMode::Strict, SyncMode::Replicas, SyncMode::Ssp, SyncMode::Elastic] {
        let model = model();
        let w = model.add_variable(&VariableSpec::new("w")).unwrap();
        let three = model.scalar(3.0f32).unwrap();
        let loss = model.mean_squared_error(three, w.read).unwrap();
        let share = Replication { mode, total: 1, staleness: i32::from(mode == SyncMode::Ssp), ..Default::default() };
        let steps = if mode == SyncMode::Replicas {
            let gradient = ops::sub(&model, w.read, three).build().unwrap();
            model.apply_replicated(&[(w.handle, Gradient::Dense(gradient))], &Optimizer::sgd(0.5), &share).unwrap()
        } else {
            model.minimize_replicated(loss, &Optimizer::sgd(0.25), &share).unwrap()
        };
        let init = model.init().unwrap();
        let server = Server::start(&Cluster::parse("worker=127.0.0.1:0").unwrap()).unwrap();
        let session = Session::connect(server.target(), &model).unwrap();
        session.run_target(init).unwrap();
        let chief = steps.chief_init.map(|target| session.run_target(target));
        chief.transpose().unwrap();
        let updates = steps.update.map(|update| session.run_repeatedly(&[update]).unwrap());
        steps.local_init.map(|target| session.run_target(target)).transpose().unwrap();
        for _ in 0..20 {
            let out = session.run().fetch(steps.local_step).target(steps.train).call().unwrap();
            assert!(out.scalar::<i64>(0).unwrap() < 20);
        }
        // The last update may be under way still, and a gradient of an older step is dropped.
        assert!(session.run().fetch(steps.global_step).call().unwrap().scalar::<i64>(0).unwrap() >= 15, "{mode:?}");
        let out = session.run().fetch(loss).call().unwrap();
        assert!(out.scalar::<f32>(0).unwrap() < 1e-3, "{mode:?}");
        drop(updates);
        let elastic = mode == SyncMode::Elastic;
        assert_eq!((steps.leave.is_some(), steps.clock.is_some()), (elastic || mode == SyncMode::Ssp, mode == SyncMode::Ssp));
        assert_eq!(steps.members.is_some(), elastic);
        if let (Some(leave), Some(clock)) = (steps.leave, steps.clock) {
            let out = session.run().fetch(clock).call().unwrap();
            assert_eq!(out.scalar::<i64>(0).unwrap(), 21, "a fetch of it is a step");
            session.run_target(leave).unwrap();
        }
        session.close(Duration::from_secs(5)).unwrap();
        server.stop(Duration::from_secs(5)).unwrap();
    }
}

/// w moving towards a stream of numbers by Adam, and its checkpoints.
struct Learner {
    model: Model,
    session: Session,
    sets: Checkpoint,
    x: dtg::Value,
    w: dtg::Value,
    train: dtg::Value,
}

impl Learner {
    fn new(folder: &str, size: i64, options: &CheckpointOptions) -> Self {
        let model = model();
        let x = model.placeholder("x", DType::F32, Some(&[2])).unwrap();
        let first = model.constant(&Tensor::from_slice(&[1], &[0i32]).unwrap()).unwrap();
        let w = model.add_variable(&VariableSpec { dims: &[size], ..VariableSpec::new("w") }).unwrap().read;
        let (wanted, mean) = (ops::mean(&model, x, first).build().unwrap(), ops::mean(&model, w, first).build().unwrap());
        let loss = model.mean_squared_error(wanted, mean).unwrap();
        let train = model.minimize(loss, &Optimizer::adam(0.1)).unwrap().train;
        let session = Session::connect("local", &model).unwrap();
        let data = Dataset::range(0, 10, 1).unwrap().cast(0, DType::F32).unwrap().shuffle(0, 7).unwrap();
        let data = data.repeat(-1).unwrap().batch(2, true).unwrap();
        let mut sets = Checkpoint::open(&model, &session, folder, options).unwrap();
        sets.add_data("train", data).unwrap();
        Self { model, session, sets, x, w, train }
    }

    fn step(&mut self) {
        let batch = self.sets.data("train").unwrap().next_element().unwrap().unwrap();
        self.session.run().feed(self.x, &batch[0]).target(self.train).call().unwrap();
    }

    fn value(&self) -> Vec<f32> {
        self.session.run().fetch(self.w).call().unwrap().tensor(0).unwrap().as_slice::<f32>().unwrap().to_vec()
    }
}

#[test]
fn checkpoints_go_on_to_the_bit() {
    let _world = world();
    let folder = Folder::new("sets");
    let path = folder.file("sets");
    let every =
        CheckpointOptions { every_steps: 2, keep: 2, shards: 2, every: Some(Duration::from_secs(3600)), ..Default::default() };
    let mut first = Learner::new(&path, 3, &every);
    assert_eq!(first.sets.resume(&first.model).unwrap().step, 0);
    for step in 1..=7 {
        first.step();
        assert_eq!(first.sets.reached(&first.model, step).unwrap(), step % 2 == 0);
        first.sets.wait(None).unwrap();
    }
    first.sets.save(&first.model, 7, Some(Duration::from_secs(60))).unwrap();
    first.sets.begin_save(&first.model, 7, None).unwrap();
    first.sets.wait(None).unwrap();
    assert!(first.sets.status().unwrap().contains("\"saves\":5"), "{}", first.sets.status().unwrap());
    let position = first.sets.data("train").unwrap().place().unwrap();
    assert_eq!(position[0], 7);
    let value = first.value();
    drop(first);
    let mut second = Learner::new(&path, 3, &CheckpointOptions::default());
    let at = second.sets.resume(&second.model).unwrap();
    let told: RestoreReport = at.report.parse().unwrap();
    assert!(at.step == 7 && at.report.contains("\"restored\""), "{at:?}");
    assert_eq!((told.outcome.as_str(), told.step, told.missing.len()), ("restored", 7, 0), "{at:?}");
    assert_eq!(second.value(), value);
    assert_eq!(second.sets.data("train").unwrap().place().unwrap(), position);
    second.sets.data("train").unwrap().move_to(&position).unwrap();
    let other = model();
    refused(second.sets.resume(&other), ErrorKind::FailedPrecondition, "another model");
    refused(second.sets.restore(&second.model, "nobody"), ErrorKind::InvalidArgument, "nobody");
    refused(second.sets.data("nobody"), ErrorKind::NotFound, "nobody");
}

#[test]
fn checkpoints_name_what_does_not_fit() {
    let _world = world();
    let folder = Folder::new("misfits");
    let path = folder.file("sets");
    let mut first = Learner::new(&path, 3, &CheckpointOptions::default());
    first.sets.resume(&first.model).unwrap();
    first.sets.save(&first.model, 0, None).unwrap();
    drop(first);
    let mut other = Learner::new(&path, 4, &CheckpointOptions::default());
    refused(other.sets.restore(&other.model, ""), ErrorKind::FailedPrecondition, "float32[3] there and float32[4] here");
    let mut partial = Learner::new(&path, 4, &CheckpointOptions { partial: true, ..Default::default() });
    assert!(partial.sets.restore(&partial.model, "").unwrap().report.contains("\"variables\":3"));
    refused(
        Checkpoint::open(&other.model, &other.session, "", &CheckpointOptions::default()).map(drop),
        ErrorKind::InvalidArgument,
        "missing",
    );
}
