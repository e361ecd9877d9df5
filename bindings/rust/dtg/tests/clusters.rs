//! Clusters, their tasks, servers and keys. One test at a time.

mod common;

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use common::{Folder, refused, world};
use dtg::{
    Cluster, DType, ErrorKind, Graph, Initializer, Model, Outcome, Scope, Security, Server, ServerOptions, Session, SessionOptions,
    Task, Tensor, Value, Variable, VariableSpec, ops,
};

const SOON: Duration = Duration::from_secs(5);

#[test]
fn clusters_are_read_and_asked() {
    let _world = world();
    let cluster = Cluster::parse(r#"{"ps": ["unix:/p"], "worker": {"3": "10.0.0.4:2222"}}"#).unwrap();
    assert_eq!((cluster.jobs(), cluster.tasks("worker"), cluster.tasks("no\0ne")), (vec!["ps", "worker"], vec![3], vec![]));
    assert_eq!((cluster.address("worker", 3), cluster.address("worker", 0)), (Some("10.0.0.4:2222"), None));
    assert_eq!(Cluster::parse(&cluster.json().unwrap()).unwrap().json().unwrap(), cluster.clone().json().unwrap());
    assert_eq!(format!("{cluster:?}"), cluster.json().unwrap());
    refused(Cluster::parse("ps=nowhere"), ErrorKind::InvalidArgument, "nowhere");
    refused(Cluster::parse("ps="), ErrorKind::InvalidArgument, "has no tasks");
}

#[test]
fn a_launcher_tells_the_place() {
    let _world = world();
    let json =
        r#"{"cluster": {"ps": ["h:1"], "worker": ["h:2", "h:3"]}, "task": {"type": "worker", "index": 1}, "rpc_layer": "grpc"}"#;
    let (cluster, task) = Cluster::from_tf_config(json).unwrap();
    assert_eq!(
        (task.job.as_str(), task.index, task.is_chief, task.id, task.num_workers, task.num_ps),
        ("worker", Some(1), false, 1, 2, 1)
    );
    assert_eq!(Cluster::target(cluster.as_ref(), &task).unwrap(), "grpc://h:3");
    refused(Cluster::target(cluster.as_ref(), &Task { index: Some(7), ..task.clone() }), ErrorKind::InvalidArgument, "7");
    refused(Cluster::target(cluster.as_ref(), &Task { job: "j".repeat(64), ..task }), ErrorKind::InvalidArgument, "64");
    let (none, alone) = Cluster::from_tf_config("{}").unwrap();
    assert!(none.is_none() && alone.is_chief && alone.index.is_none(), "{alone:?}");
    assert_eq!(Cluster::target(None, &alone).unwrap(), "");
    refused(Cluster::from_tf_config(""), ErrorKind::InvalidArgument, "");
    let beyond = json.replace("\"index\": 1", "\"index\": 2");
    refused(Cluster::from_tf_config(&beyond), ErrorKind::InvalidArgument, "has 2 tasks: 0 to 1");
    // Tests run without a launcher.
    assert!(Cluster::from_env().unwrap().0.is_none());
}

#[test]
fn two_tasks_work_together_until_the_job_ends() {
    let _world = world();
    let folder = Folder::new("job");
    let cluster = Cluster::parse(&format!("ps=unix:{};worker=unix:{}", folder.file("ps"), folder.file("worker"))).unwrap();
    let options = ServerOptions::new().cpu_devices(1).heartbeat(Duration::from_millis(500)).dead(SOON).device_filters(&["/job:ps"]);
    let ps = options.clone().task("ps", 0).start(&cluster).unwrap();
    let worker = options.task("worker", 0).start(&cluster).unwrap();
    refused(ServerOptions::new().task("worker", 1).start(&cluster), ErrorKind::InvalidArgument, "");
    refused(ServerOptions::new().task("ps", 0).device_filters(&["\0"]).start(&cluster), ErrorKind::InvalidArgument, "NUL");
    let graph = Graph::new().unwrap();
    let x = graph.placeholder("x", DType::F32, Some(&[])).unwrap();
    let there = ops::square(&graph, x).device("/job:ps/task:0").build().unwrap();
    let here = ops::neg(&graph, there).device("/job:worker/task:0").build().unwrap();
    let session = Session::connect(worker.target(), &graph).unwrap();
    let out = session.run().feed(x, &Tensor::scalar(3.0f32).unwrap()).fetch(here).call().unwrap();
    assert_eq!(out.scalar::<f32>(0).unwrap(), -9.0);
    assert_eq!(session.devices().len(), 2);
    let status = session.cluster_status(SOON).unwrap();
    assert!(status.contains("/job:ps"), "{status}");
    let asked = SessionOptions::new().connect_timeout(SOON).cluster_status(ps.target()).unwrap();
    assert!(asked.contains("/job:ps") && asked.contains("/job:worker"), "{asked}");
    assert!(
        SessionOptions::new()
            .connect_timeout(Duration::from_millis(50))
            .cluster_status(&format!("unix:{}", folder.file("none")))
            .is_err()
    );
    assert!(ps.clone().status().unwrap().contains("incarnation"));
    assert!(format!("{ps:?}").contains("ps"));
    refused(ps.join(Some(Duration::ZERO)), ErrorKind::DeadlineExceeded, "");
    session.barrier("the only worker", SOON).unwrap();
    session.end_job(SOON).unwrap();
    ps.join(None).unwrap();
    session.close(SOON).unwrap();
    worker.stop(SOON).unwrap();
}

/// Whoever says the longest time there is means for ever, and what is over before that ends at once.
#[test]
fn the_longest_times_are_taken() {
    let _world = world();
    let folder = Folder::new("longest");
    let cluster = Cluster::parse(&format!("worker=unix:{}", folder.file("worker"))).unwrap();
    let server = ServerOptions::new().heartbeat(Duration::MAX).dead(Duration::MAX).start(&cluster).unwrap();
    let graph = Graph::new().unwrap();
    let x = graph.placeholder("x", DType::F32, Some(&[])).unwrap();
    let y = ops::square(&graph, x).build().unwrap();
    let three = Tensor::scalar(3.0f32).unwrap();
    let start = Instant::now();
    for target in ["local", server.target()] {
        let session = SessionOptions::new().timeout(Duration::MAX).connect_timeout(Duration::MAX).connect(target, &graph).unwrap();
        let run = || session.run().feed(x, &three).fetch(y);
        assert_eq!(run().call().unwrap().scalar::<f32>(0).unwrap(), 9.0);
        assert_eq!(run().timeout(Duration::MAX).call().unwrap().scalar::<f32>(0).unwrap(), 9.0);
        assert_eq!(run().timeout(Duration::MAX).start().unwrap().wait().unwrap().scalar::<f32>(0).unwrap(), 9.0);
        session.close(Duration::MAX).unwrap();
    }
    assert!(SessionOptions::new().connect_timeout(Duration::MAX).cluster_status(server.target()).unwrap().contains("/job:worker"));
    thread::scope(|scope| {
        let joins = scope.spawn(|| server.join(Duration::MAX));
        thread::sleep(Duration::from_millis(20));
        assert!(!joins.is_finished());
        server.stop(Duration::MAX).unwrap();
        joins.join().unwrap().unwrap();
    });
    server.join(Duration::MAX).unwrap();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    refused(ServerOptions::new().heartbeat(Duration::MAX).start(&cluster), ErrorKind::InvalidArgument, "less than two heartbeats");
}

/// A variable on a ps that runs count; steps that wait there for what never comes, before their update and after it.
struct Counts {
    w: Variable,
    add: Value,
    waits_first: Value,
    waits_last: Value,
}

impl Counts {
    fn new(model: &Model) -> dtg::Result<Self> {
        let one = model.scalar(1.0f32)?;
        model.within(Scope::Device("/job:ps"), |model| {
            let w = model.add_variable(&VariableSpec { initializer: Initializer::Constant(0.0), ..VariableSpec::new("w") })?;
            let queue = ops::fifo_queue_v2(model, &[DType::F32]).build()?;
            let wait = || ops::queue_dequeue_v2(model, queue, &[DType::F32]);
            let add = ops::assign_add_variable_op(model, w.handle, one).build()?;
            let token = wait().build()?[0];
            let waits_first = ops::assign_add_variable_op(model, w.handle, one).control(token).build()?;
            let waits_last = wait().control(add).build()?[0];
            Ok(Self { w, add, waits_first, waits_last })
        })
    }

    #[track_caller]
    fn expect(&self, session: &Session, value: f32) {
        assert_eq!(session.run().fetch(self.w.read).call().unwrap().scalar::<f32>(0).unwrap(), value);
    }
}

#[test]
fn what_took_place_is_told_and_not_made_again() {
    let _world = world();
    let folder = Folder::new("outcome");
    let cluster = Cluster::parse(&format!("ps=unix:{};worker=unix:{}", folder.file("ps"), folder.file("worker"))).unwrap();
    let _ps = ServerOptions::new().task("ps", 0).start(&cluster).unwrap();
    let worker = ServerOptions::new().task("worker", 0).start(&cluster).unwrap();
    let model = Model::new(Graph::new().unwrap(), 1).unwrap();
    let job = Counts::new(&model).unwrap();
    let init = model.init().unwrap();
    let session = Session::connect(worker.target(), &model).unwrap();
    session.run_target(init).unwrap();

    let (mut first, mut second) = (0, 0);
    for _ in 0..3 {
        session.run().target(job.add).write(&mut first).call().unwrap();
    }
    job.expect(&session, 1.0);
    assert_eq!(session.outcome(first, SOON).unwrap(), Outcome::Updated);
    let started = session.run().target(job.add).write(&mut second).start().unwrap();
    assert!(first != 0 && second != 0 && first != second, "{first} and {second}");
    started.wait().unwrap();
    session.run().target(job.add).write(&mut second).start().unwrap().wait().unwrap();
    job.expect(&session, 2.0);

    let (mut before, mut after) = (0, 0);
    let late =
        |target: Value, number: &mut u64| session.run().target(target).write(number).timeout(Duration::from_millis(200)).call();
    refused(late(job.waits_first, &mut before), ErrorKind::DeadlineExceeded, "its outcome is unknown: write ");
    assert_eq!(session.outcome(before, SOON).unwrap(), Outcome::Nothing);
    let cut = refused(late(job.waits_last, &mut after), ErrorKind::DeadlineExceeded, "");
    assert!(cut.message().contains(&format!("its outcome is unknown: write {after}")), "{cut}");
    assert_eq!(session.outcome(after, SOON).unwrap(), Outcome::Updated);
    refused(late(job.waits_last, &mut after), ErrorKind::FailedPrecondition, "queues");
    job.expect(&session, 3.0);

    refused(session.outcome(1 << 30, SOON), ErrorKind::InvalidArgument, "no such run");
    let mut nobodys = 1 << 30;
    refused(session.run().target(job.add).write(&mut nobodys).call(), ErrorKind::InvalidArgument, "no such run");
    job.expect(&session, 3.0);
}

#[test]
fn keys_open_doors() {
    let _world = world();
    let folder = Folder::new("keys");
    let (key, other) = (folder.file("key"), folder.file("other"));
    dtg::keygen(&key).unwrap();
    dtg::keygen(&other).unwrap();
    refused(dtg::keygen(&key), ErrorKind::AlreadyExists, "key");
    // The server in this process answers without a socket, so a wrong key is only told where it is read.
    let server = ServerOptions::new()
        .key_file(&key)
        .security(Security::ClearFrames)
        .start(&Cluster::parse("worker=127.0.0.1:0").unwrap())
        .unwrap();
    let graph = Graph::new().unwrap();
    SessionOptions::new().key_file(&key).security(Security::ClearFrames).connect(server.target(), &graph).unwrap();
    let missing = SessionOptions::new().key_file(folder.file("none")).connect_timeout(SOON).connect("10.255.255.1:1", &graph);
    assert!(missing.is_err());
    refused(
        ServerOptions::new().key_file(folder.file("none")).start(&Cluster::parse("worker=127.0.0.1:0").unwrap()),
        ErrorKind::NotFound,
        "none",
    );
}

/// A session and a server that were told no key: they take the one that the environment names.
fn use_the_key_of_the_environment(target: &str) {
    let graph = Graph::new().unwrap();
    let two = graph.scalar(2.0f32).unwrap();
    let session = Session::connect(target, &graph).unwrap();
    assert_eq!(session.run().fetch(two).call().unwrap().scalar::<f32>(0).unwrap(), 2.0);
    // An address that others can reach asks for a key.
    Server::start(&Cluster::parse("worker=0.0.0.0:0").unwrap()).unwrap();
}

#[test]
fn the_key_may_come_from_the_environment() {
    let _world = world();
    if let Ok(target) = std::env::var("DTG_TEST_TARGET") {
        return use_the_key_of_the_environment(&target);
    }
    let folder = Folder::new("environment");
    let (key, other) = (folder.file("key"), folder.file("other"));
    dtg::keygen(&key).unwrap();
    dtg::keygen(&other).unwrap();
    let server = ServerOptions::new().key_file(&key).start(&Cluster::parse("worker=127.0.0.1:0").unwrap()).unwrap();
    let with = |key: &str| {
        let told = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_key_may_come_from_the_environment", "--nocapture"])
            .env("DTG_KEY_FILE", key)
            .env("DTG_TEST_TARGET", server.target())
            .output()
            .unwrap();
        (told.status.success(), String::from_utf8_lossy(&told.stderr).into_owned())
    };
    let (good, text) = with(&key);
    assert!(good, "{text}");
    let (good, text) = with(&other);
    assert!(!good && text.contains("the same job key"), "{text}");
    let (good, text) = with(&folder.file("none"));
    assert!(!good && text.contains("none"), "{text}");
}

#[test]
fn an_address_that_is_taken() {
    let _world = world();
    let server = Server::start(&Cluster::parse("worker=127.0.0.1:0").unwrap()).unwrap();
    let again = Cluster::parse(&format!("worker={}", server.target())).unwrap();
    refused(Server::start(&again), ErrorKind::AlreadyExists, "");
}
