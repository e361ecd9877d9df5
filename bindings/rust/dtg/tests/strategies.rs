//! Strategies: a mirrored model on emulated accelerators against towers, per-replica values, aggregated writes, misuse, and a strategy of
//! one's own over the C ABI. One test at a time.

mod common;

use std::time::Duration;

use common::{Folder, refused, world};
use dtg::{
    Activation, Assign, Cluster, CrossDevice, DType, Dense, ErrorKind, Graph, GroupOptions, Model, Optimizer, ReduceAlgorithm,
    Reduction, Result, Server, ServerOptions, Session, SessionOptions, Strategy, StrategyKind, StrategyOptions, Tensor, Training,
    Value, VariableSpec, ops,
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

/// A worker's kernel after three steps on its half of the batch.
fn worker(server: &Server, rank: usize) -> Result<Vec<f32>> {
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
    let training = strategy.scope(|| {
        let own = strategy.split(x)?;
        let [losses] = strategy.run(&[own], |_, own| Ok([loss(&model, own[0])?]))?;
        strategy.minimize(losses, Reduction::Mean, &Optimizer::adam(0.1))
    })?;
    let (level, init) = (strategy.level()?, model.init()?);
    let session = Session::connect(server.target(), &model)?;
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
    let cluster = Cluster::parse(&format!("worker=unix:{},unix:{}", folder.file("w0"), folder.file("w1"))).unwrap();
    let servers: Vec<_> = (0..2).map(|rank| ServerOptions::new().task("worker", rank).start(&cluster).unwrap()).collect();
    std::thread::scope(|all| {
        for (rank, server) in servers.iter().enumerate() {
            let towers = &towers;
            all.spawn(move || assert_eq!(&worker(server, rank).unwrap(), towers));
        }
    });
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

/// A strategy of one's own, over the C ABI alone, as a program would write it that wants what this crate leaves out.
mod of_ones_own {
    use std::ffi::{CStr, c_char, c_void};
    use std::ptr::{null, null_mut};

    use dtg::sys;

    pub struct Counts {
        graph: *mut sys::dtg_graph,
        model: *mut sys::dtg_model,
        weight: sys::dtg_value,
        pub variables: usize,
        pub reductions: usize,
    }

    fn ok(error: *mut sys::dtg_error) {
        // SAFETY: an error of the library, or NULL.
        let text = unsafe { CStr::from_ptr(sys::dtg_error_message(error, null_mut())) };
        assert!(error.is_null(), "{}", text.to_string_lossy());
    }

    /// A node of these inputs.
    unsafe fn add(
        graph: *mut sys::dtg_graph,
        op: &CStr,
        inputs: &[sys::dtg_value],
        out: *mut sys::dtg_value,
    ) -> *mut sys::dtg_error {
        let spec = sys::dtg_op_spec {
            r#type: op.as_ptr(),
            type_len: op.to_bytes().len(),
            inputs: inputs.as_ptr(),
            num_inputs: inputs.len(),
            ..sys::dtg_op_spec::INIT
        };
        // SAFETY: an open graph; the spec outlives the call.
        unsafe { sys::dtg_graph_add_op(graph, &spec, out, 1) }
    }

    unsafe extern "C" fn create_variable(
        user: *mut c_void,
        _: *mut sys::dtg_strategy,
        place: *mut sys::dtg_variable_place,
    ) -> *mut sys::dtg_error {
        struct Names([*const c_char; 2]);
        // SAFETY: literals, never written to.
        unsafe impl Sync for Names {}
        static DEVICES: Names = Names([c"/device:EMU:1".as_ptr(), c"/device:EMU:0".as_ptr()]); // the other way round
        // SAFETY: what the options said; a struct of the library.
        unsafe {
            (*user.cast::<Counts>()).variables += 1;
            (*place).devices = DEVICES.0.as_ptr();
            (*place).num_devices = 2;
        }
        null_mut()
    }

    unsafe extern "C" fn reduce_to(
        user: *mut c_void,
        _: *mut sys::dtg_strategy,
        op: sys::dtg_reduction,
        parts: *const sys::dtg_value,
        count: usize,
        out: *mut sys::dtg_value,
    ) -> *mut sys::dtg_error {
        assert_eq!((op, count), (sys::DTG_REDUCE_SUM, 2));
        // SAFETY: what the options said; an array of that length.
        unsafe {
            let counts = &mut *user.cast::<Counts>();
            counts.reductions += 1;
            add(counts.graph, c"AddV2", &[*parts.add(1), *parts], out)
        }
    }

    /// The loss of a replica is the square of its copy of the weight.
    unsafe extern "C" fn build(
        user: *mut c_void,
        strategy: *mut sys::dtg_strategy,
        replica: i32,
        _: *const sys::dtg_value,
        _: usize,
        results: *mut sys::dtg_value,
        _: usize,
    ) -> *mut sys::dtg_error {
        let mut info = sys::dtg_strategy_info::INIT;
        // SAFETY: what was given to the run; room for one result.
        unsafe {
            ok(sys::dtg_strategy_describe(strategy, &mut info));
            assert_eq!((info.replica, info.num_replicas_in_sync), (replica, 2));
            let counts = &mut *user.cast::<Counts>();
            let mut weight = sys::dtg_variable::INIT;
            let spec = sys::dtg_variable_spec {
                name: c"w".as_ptr(),
                initializer: sys::dtg_initializer { kind: sys::DTG_INIT_CONSTANT, reserved0: 0, a: 8.0, b: 0.0 },
                ..sys::dtg_variable_spec::INIT
            };
            ok(sys::dtg_model_add_variable(counts.model, &spec, &mut weight));
            counts.weight = weight.read;
            add(counts.graph, c"Square", &[weight.read], results)
        }
    }

    /// What the last replica reads after three steps that halve the weight of 8, and what the hooks were asked.
    pub fn train() -> (f32, Counts) {
        let devices = [c"/device:EMU:0".as_ptr(), c"/device:EMU:1".as_ptr()];
        let mut counts =
            Counts { graph: null_mut(), model: null_mut(), weight: sys::dtg_value { id: 0 }, variables: 0, reductions: 0 };
        let hooks = sys::dtg_strategy_hooks {
            create_variable: Some(create_variable),
            reduce_to: Some(reduce_to),
            ..sys::dtg_strategy_hooks::INIT
        };
        let (mut model, mut strategy, mut session) = (null_mut(), null_mut(), null_mut());
        let (mut loss, mut init) = (sys::dtg_per_replica { id: 0 }, sys::dtg_value { id: 0 });
        let mut training = sys::dtg_training::INIT;
        let mut fetched = null_mut();
        // SAFETY: each object is open where it is used and released once; all structs and arrays outlive their calls.
        unsafe {
            ok(sys::dtg_graph_create(null_mut(), &mut counts.graph));
            ok(sys::dtg_model_create(counts.graph, 1, &mut model));
            counts.model = model;
            let options = sys::dtg_strategy_options {
                kind: sys::DTG_STRATEGY_CUSTOM,
                devices: devices.as_ptr(),
                num_devices: 2,
                hooks: &hooks,
                user: (&raw mut counts).cast(),
                ..sys::dtg_strategy_options::INIT
            };
            ok(sys::dtg_strategy_create(model, &options, &mut strategy));
            ok(sys::dtg_strategy_run(strategy, Some(build), (&raw mut counts).cast(), null(), 0, &mut loss, 1));
            let sgd = sys::dtg_optimizer { rate: 0.125, ..sys::dtg_optimizer::INIT };
            ok(sys::dtg_strategy_minimize(strategy, loss, sys::DTG_REDUCE_SUM, &sgd, &mut training));
            ok(sys::dtg_model_init(model, &mut init));
            let local = sys::dtg_session_options { emu_devices: 2, ..sys::dtg_session_options::INIT };
            ok(sys::dtg_session_connect(null_mut(), c"local".as_ptr(), 5, counts.graph, &local, &mut session));
            for target in [init, training.train, training.train, training.train] {
                let args = sys::dtg_run_args { targets: &target, num_targets: 1, ..sys::dtg_run_args::INIT };
                ok(sys::dtg_session_run(session, &args));
            }
            let args =
                sys::dtg_run_args { fetches: &counts.weight, fetched: &mut fetched, num_fetches: 1, ..sys::dtg_run_args::INIT };
            ok(sys::dtg_session_run(session, &args));
            let last = *sys::dtg_tensor_data(fetched, null_mut()).cast::<f32>();
            sys::dtg_tensor_release(fetched);
            sys::dtg_session_release(session);
            sys::dtg_strategy_release(strategy);
            sys::dtg_model_release(model);
            sys::dtg_graph_release(counts.graph);
            (last, counts)
        }
    }
}

#[test]
fn a_strategy_of_ones_own_over_the_c_abi() {
    let _world = world();
    let (last, counts) = of_ones_own::train();
    assert_eq!((last, counts.variables, counts.reductions), (1.0, 1, 1));
}
