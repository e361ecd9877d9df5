//! Strategies: a mirrored model on emulated accelerators against towers, per-replica values, aggregated writes, misuse, and a strategy of
//! one's own. One test at a time.

mod common;

use std::cell::{Cell, RefCell};
use std::time::Duration;

use common::{Folder, refused, world};
use dtg::{
    Activation, Assign, Cluster, CrossDevice, CustomOptions, DType, Dataset, Dense, ErrorKind, Fit, Graph, GroupOptions, Hooks,
    Initializer, Model, Optimizer, ReduceAlgorithm, Reduction, Result, Scope, Server, ServerOptions, Session, SessionOptions,
    Strategy, StrategyKind, StrategyOptions, Tensor, Trainer, TrainerOptions, Training, Value, VariableSpec, ops,
};

const BATCH: [f32; 12] = [1.0, 2.0, 3.0, -1.0, 0.0, 1.0, 0.5, 0.5, 0.0, 2.0, -2.0, 1.0];
const EMUS: [&str; 2] = ["/device:EMU:0", "/device:EMU:1"];

fn session(model: &Model) -> Session {
    SessionOptions::new().emu_devices(2).connect("local", model).unwrap()
}

fn loss(model: &Model, half: Value) -> Result<Value> {
    let y = model.dense(half, &Dense { units: 2, activation: Activation::Tanh, ..Default::default() })?;
    let zero = ops::zeros_like(model, y).build()?;
    model.mean_squared_error(zero, y)
}

/// The kernel after three steps.
fn trained(build: impl FnOnce(&Model, Value) -> Result<Training>) -> Vec<f32> {
    let model = Model::new(Graph::new().unwrap(), 5).unwrap();
    let x = model.placeholder("x", DType::F32, Some(&[4, 3])).unwrap();
    let training = build(&model, x).unwrap();
    let init = model.init().unwrap();
    let session = session(&model);
    session.run_target(init).unwrap();
    let batch = Tensor::from_slice(&[4, 3], &BATCH).unwrap();
    for _ in 0..3 {
        session.run().feed(x, &batch).target(training.train).call().unwrap();
    }
    let kernel = model.find_variable("dense/kernel").unwrap();
    session.run().fetch(kernel.read).call().unwrap().slice::<f32>(0).unwrap().to_vec()
}

#[test]
fn copies_train_like_towers() {
    let _world = world();
    let adam = Optimizer::adam(0.1);
    let towers = trained(|model, x| {
        let axis = model.scalar(0i32)?;
        let halves = ops::split(model, axis, x, 2).build()?;
        let first = loss(model, halves[0])?;
        model.next_tower()?;
        model.minimize_towers(&[first, loss(model, halves[1])?], &adam)
    });
    for kind in [StrategyKind::Mirrored, StrategyKind::CentralStorage] {
        let options = StrategyOptions { kind, devices: &EMUS, cross_device: CrossDevice::ReduceToOneDevice, ..Default::default() };
        let got = trained(|model, x| {
            let strategy = Strategy::new(model, &options)?;
            strategy.scope(|| {
                let halves = strategy.split(x)?;
                let [losses] = strategy.run(&[halves], |_, own| Ok([loss(model, own[0])?]))?;
                strategy.minimize(losses, Reduction::Mean, &adam)
            })
        });
        assert_eq!(got, towers, "{kind:?}");
    }
}

/// A worker's kernel after three steps on its half of the batch, by hand or by a fit of all workers.
fn worker(server: &Server, rank: usize, fits: bool) -> Result<Vec<f32>> {
    let soon = Duration::from_secs(20);
    let group = GroupOptions::new().timeout(soon).join(server)?;
    let model = Model::new(Graph::new()?, 5 + rank as u64)?; // the first one's values are everybody's
    let x = model.placeholder("x", DType::F32, Some(&[2, 3]))?;
    let options = StrategyOptions {
        kind: StrategyKind::MultiWorkerMirrored,
        group: Some(&group),
        algorithm: ReduceAlgorithm::Ring,
        pack_bytes: Some(1 << 10),
        timeout: Some(soon),
        ..Default::default()
    };
    let strategy = Strategy::new(&model, &options)?;
    assert_eq!((strategy.replicas()?, strategy.replicas_in_sync()?), (1, 2));
    let (training, mean) = strategy.scope(|| {
        let own = strategy.split(x)?;
        let [losses] = strategy.run(&[own], |_, own| Ok([loss(&model, own[0])?]))?;
        model.global_step()?; // behind the layers, so that they draw the first values of those in towers
        let training = strategy.minimize(losses, Reduction::Mean, &Optimizer::adam(0.1))?;
        Ok((training, strategy.reduce(Reduction::Mean, losses)?))
    })?;
    let (level, init) = (strategy.level()?, model.init()?);
    let session = Session::connect(server.target(), &model)?;
    if fits {
        let kernel = model.find_variable("dense/kernel")?.read;
        let workers = strategy.workers();
        drop(strategy);
        let what = TrainerOptions {
            session: Some(&session),
            train: Some(training.train),
            workers: workers.as_ref(),
            ..TrainerOptions::new(&[x], mean)
        };
        let mut trainer = Trainer::new(model, &what)?;
        let half = Tensor::from_slice(&[2, 3], &BATCH[6 * rank..6 * rank + 6])?;
        let mut data = Dataset::tensors(&[&half])?.batch(2, true)?;
        trainer.fit(&mut data, None, &Fit { epochs: 3, ..Default::default() }, |_, _| Ok(()))?;
        group.barrier()?;
        return Ok(session.run().fetch(kernel).call()?.slice::<f32>(0)?.to_vec());
    }
    session.run_target(init)?;
    let half = Tensor::from_slice(&[2, 3], &BATCH[6 * rank..6 * rank + 6])?;
    for _ in 0..3 {
        session.run().feed(x, &half).target(training.train).call()?;
    }
    session.run_target(level)?;
    let kernel = model.find_variable("dense/kernel")?;
    let values = session.run().fetch(kernel.read).call()?.slice::<f32>(0)?.to_vec();
    group.barrier()?;
    Ok(values)
}

#[test]
fn workers_train_like_towers() {
    let _world = world();
    let towers = trained(|model, x| {
        let axis = model.scalar(0i32)?;
        let halves = ops::split(model, axis, x, 2).build()?;
        let first = loss(model, halves[0])?;
        model.next_tower()?;
        model.minimize_towers(&[first, loss(model, halves[1])?], &Optimizer::adam(0.1))
    });
    let folder = Folder::new("workers");
    for fits in [false, true] {
        // Servers of its own: variables belong to the tasks.
        let socket = |rank| folder.file(&format!("{fits}{rank}"));
        let cluster = Cluster::parse(&format!("worker=unix:{},unix:{}", socket(0), socket(1))).unwrap();
        let servers: Vec<_> = (0..2).map(|rank| ServerOptions::new().task("worker", rank).start(&cluster).unwrap()).collect();
        std::thread::scope(|all| {
            for (rank, server) in servers.iter().enumerate() {
                let towers = &towers;
                all.spawn(move || assert_eq!(&worker(server, rank, fits).unwrap(), towers));
            }
        });
    }
}

#[test]
fn values_and_writes_of_replicas_meet() {
    let _world = world();
    let model = Model::new(Graph::new().unwrap(), 1).unwrap();
    let strategy =
        Strategy::new(&model, &StrategyOptions { kind: StrategyKind::Mirrored, devices: &EMUS, ..Default::default() }).unwrap();
    assert_eq!((strategy.replicas().unwrap(), strategy.replicas_in_sync().unwrap()), (2, 2));
    let spec = VariableSpec { not_trainable: true, on_read: true, aggregation: dtg::Aggregation::Sum, ..VariableSpec::new("seen") };
    let seen = strategy.scope(|| model.add_variable(&spec)).unwrap();
    let [numbers] = strategy
        .run(&[], |replica, _| {
            let own = model.scalar(replica as f32 + 1.0)?;
            strategy.assign(&seen, Assign::Add, own)?;
            Ok([own])
        })
        .unwrap();
    let updates = strategy.updates().unwrap();
    let sum = strategy.reduce(Reduction::Sum, numbers).unwrap();
    let mean = strategy.reduce(Reduction::Mean, numbers).unwrap();
    let same = strategy.local_results(strategy.broadcast(sum).unwrap()).unwrap();
    assert_eq!(same, [sum, sum]);
    let init = model.init().unwrap();
    let session = session(&model);
    session.run_target(init).unwrap();
    session.run_target(updates).unwrap();
    for (value, wanted) in [(sum, 3.0), (mean, 1.5), (seen.read, 3.0)] {
        assert_eq!(session.run().fetch(value).call().unwrap().scalar::<f32>(0).unwrap(), wanted);
    }
}

#[test]
fn misuse_says_where_it_belongs() {
    let _world = world();
    let model = Model::new(Graph::new().unwrap(), 1).unwrap();
    let options = StrategyOptions { kind: StrategyKind::CentralStorage, devices: &["CPU:0", "CPU:1"], ..Default::default() };
    let strategy = Strategy::new(&model, &options).unwrap();
    let [numbers] = strategy.run(&[], |_, _| Ok([model.scalar(1.0f32)?])).unwrap();
    let inside = strategy.run(&[], |_, _| strategy.reduce(Reduction::Sum, numbers).map(|value| [value]));
    refused(inside, ErrorKind::FailedPrecondition, "cross-replica");
    let other = Strategy::new(&model, &options).unwrap();
    refused(other.gather(numbers, 0), ErrorKind::InvalidArgument, "mixed");
    refused(strategy.scope(|| other.scope(|| Ok(()))), ErrorKind::FailedPrecondition, "mixed");
    refused(Strategy::new(&model, &StrategyOptions::default()).map(drop), ErrorKind::InvalidArgument, "device");
    refused(strategy.replicated(), ErrorKind::FailedPrecondition, "parameter servers");
}

/// Two replicas, whose weights stand the other way round, and whose gradients meet from the last to the first; what each hook was asked.
#[test]
fn a_strategy_of_ones_own() {
    let _world = world();
    let model = Model::new(Graph::new().unwrap(), 1).unwrap();
    let asked = RefCell::new(Vec::new());
    let note = |what: String| asked.borrow_mut().push(what);
    let hooks = Hooks::new()
        .create_variable(|place| {
            note(format!("variable {} {:?} {}", place.name, place.dims, place.trainable));
            if place.trainable {
                place.devices = EMUS.iter().rev().map(ToString::to_string).collect();
            }
            Ok(())
        })
        .begin_replica(|replica| {
            note(format!("begin {replica}"));
            model.push(Scope::Name("mine"))
        })
        .end_replica(|replica| {
            note(format!("end {replica}"));
            model.pop(Scope::Name("mine"))
        })
        .reduce_to(|reduction, parts| {
            note(format!("{reduction:?} of {}", parts.len()));
            ops::add_v2(&model, parts[1], parts[0]).build()
        })
        .begin_update(|name, copy| {
            note(format!("write {copy} of {name}"));
            Ok(())
        })
        .gather(|parts, axis| {
            note(format!("gather {} along {axis}", parts.len()));
            Ok(parts[1])
        })
        .local_results(|values| Ok(values[1..].to_vec()));
    let options = CustomOptions { devices: &EMUS, ..Default::default() };
    let strategy = Strategy::custom(&model, &options, hooks).unwrap();
    let mut weight = None;
    let (training, gathered, kept, write) = strategy
        .scope(|| {
            let [losses, rows] = strategy.run(&[], |replica, _| {
                let spec = VariableSpec { initializer: Initializer::Constant(8.0), ..VariableSpec::new("w") };
                let own = model.add_variable(&spec)?;
                let loss = ops::square(&model, own.read).build()?;
                weight = Some(own);
                Ok([loss, model.constant(&Tensor::from_slice(&[1], &[replica as f32])?)?])
            })?;
            let training = strategy.minimize(losses, Reduction::Sum, &Optimizer::sgd(0.125))?;
            let gathered = strategy.gather(rows, 0)?;
            let write = strategy.assign(weight.as_ref().unwrap(), Assign::Set, model.scalar(3f32)?)?.unwrap();
            Ok((training, gathered, strategy.local_results(rows)?, write))
        })
        .unwrap();
    let init = model.init().unwrap();
    let session = session(&model);
    session.run_target(init).unwrap();
    for _ in 0..3 {
        session.run_target(training.train).unwrap();
    }
    let read = weight.unwrap().read;
    let got = session.run().fetch(read).fetch(gathered).call().unwrap();
    assert_eq!((got.scalar::<f32>(0).unwrap(), got.slice::<f32>(1).unwrap()[0], kept.len()), (1.0, 1.0, 1));
    session.run_target(write).unwrap();
    assert_eq!(session.run().fetch(read).call().unwrap().scalar::<f32>(0).unwrap(), 3.0);
    let asked = asked.borrow();
    let count = |what: &str| asked.iter().filter(|each| each.starts_with(what)).count();
    assert!(asked.contains(&"variable w [] true".to_owned()), "{asked:?}");
    assert_eq!(
        (count("begin"), count("end"), count("Sum of 2"), count("write 0"), count("write 1"), count("gather 2 along 0")),
        (2, 2, 1, 1, 1, 1),
        "{asked:?}"
    );
}

/// An error of a hook is that of the call, and so is a panic; afterwards the strategy works.
#[test]
fn hooks_that_fail() {
    let _world = world();
    let model = Model::new(Graph::new().unwrap(), 1).unwrap();
    let mood = Cell::new(0);
    let hooks = Hooks::new()
        .split(|batch, count| match mood.get() {
            0 => ops::identity(&model, model.scalar(1i32)?)
                .build()
                .and_then(|one| ops::mat_mul(&model, one, one).build().map(|v| vec![v])),
            1 => panic!("thrown by a hook, and caught"),
            2 => Ok(vec![batch]),
            _ => Ok(vec![batch; count]),
        })
        .create_variable(|place| {
            place.devices = vec!["no device".into()];
            Ok(())
        });
    let strategy = Strategy::custom(&model, &CustomOptions { devices: &EMUS, ..Default::default() }, hooks).unwrap();
    let batch = model.placeholder("x", DType::F32, Some(&[4, 3])).unwrap();
    for (kind, word) in [
        (ErrorKind::InvalidArgument, "MatMul"),
        (ErrorKind::Internal, "panicked"),
        (ErrorKind::InvalidArgument, "split gave 1 values; it has to give 2"),
    ] {
        let error = strategy.split(batch).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(word), "{error}");
        mood.set(mood.get() + 1);
    }
    strategy.split(batch).unwrap();
    let error = strategy.scope(|| model.add_variable(&VariableSpec::new("w"))).unwrap_err();
    assert!(error.message().contains("no device"), "{error}");
    let none = Strategy::custom(&model, &CustomOptions::default(), Hooks::new()).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::InvalidArgument, "{none}");
}
