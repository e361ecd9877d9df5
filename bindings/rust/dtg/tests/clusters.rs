//! Clusters, their tasks, servers and keys. One test at a time.

mod common;

use std::time::Duration;

use common::{Folder, refused, world};
use dtg::{Cluster, DType, ErrorKind, Graph, Security, Server, ServerOptions, Session, SessionOptions, Task, Tensor, ops};

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

#[test]
fn an_address_that_is_taken() {
    let _world = world();
    let server = Server::start(&Cluster::parse("worker=127.0.0.1:0").unwrap()).unwrap();
    let again = Cluster::parse(&format!("worker={}", server.target())).unwrap();
    refused(Server::start(&again), ErrorKind::AlreadyExists, "");
}
