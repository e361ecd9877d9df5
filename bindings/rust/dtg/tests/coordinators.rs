//! Coordinators: two workers that are plain servers, and a chief that gives them closures, all in this process. One test at a time.

mod common;

use std::time::Duration;

use common::{Folder, refused, world};
use dtg::{
    Cluster, CoordinatorOptions, DType, ErrorKind, Graph, Partitioner, Server, ServerOptions, Session, Tensor, ops, shard_rows,
};

const SOON: Duration = Duration::from_secs(30);

struct Job {
    chief: Server,
    _workers: Vec<Server>,
    _folder: Folder,
}

fn job(name: &str) -> Job {
    let folder = Folder::new(name);
    let at = |task: &str| format!("unix:{}", folder.file(task));
    let cluster = Cluster::parse(&format!("chief={};worker={},{}", at("c"), at("w0"), at("w1"))).unwrap();
    let chief = ServerOptions::new().task("chief", 0).start(&cluster).unwrap();
    let workers = (0..2).map(|i| ServerOptions::new().task("worker", i).start(&cluster).unwrap()).collect();
    Job { chief, _workers: workers, _folder: folder }
}

#[test]
fn closures_come_back() {
    let _world = world();
    let job = job("closures");
    let graph = Graph::new().unwrap();
    let x = graph.placeholder("x", DType::F32, Some(&[])).unwrap();
    let square = ops::square(&graph, x).build().unwrap();
    let number = graph.placeholder("number", DType::I64, Some(&[])).unwrap();
    let who = ops::identity(&graph, number).build().unwrap();
    let session = Session::connect(job.chief.target(), &graph).unwrap();
    let options =
        CoordinatorOptions::new().job("worker").queue_capacity(100).closure_timeout(SOON).worker_timeout(SOON).closure_losses(5);
    let coordinator = dtg::Coordinator::new(&session, &options.server_timeout(SOON)).unwrap();
    let closure = coordinator.prepare(&[x], &[square, who], &[], Some(number)).unwrap();
    let mut values = Vec::new();
    for i in 0..20u8 {
        values.push(coordinator.schedule(&closure, &[&Tensor::scalar(f32::from(i)).unwrap()]).unwrap());
    }
    for (i, value) in (0..20u8).zip(&values) {
        let out = value.fetch().unwrap();
        assert_eq!(out.scalar::<f32>(0).unwrap(), f32::from(i) * f32::from(i));
        let worker = out.scalar::<i64>(1).unwrap();
        assert!(worker == 0 || worker == 1, "{worker}");
    }
    coordinator.join().unwrap();
    assert!(coordinator.done().unwrap());
    let status = coordinator.status().unwrap();
    assert!(status.contains("/job:worker/replica:0/task:1"), "{status}");
    refused(coordinator.schedule(&closure, &[]), ErrorKind::InvalidArgument, "tensor");
    refused(coordinator.prepare(&[x], &[], &[], None), ErrorKind::InvalidArgument, "fetch");
    assert!(coordinator.join_within(SOON).is_ok());
    coordinator.cancel().unwrap();
    coordinator.join().unwrap();
}

#[test]
fn the_error_of_a_closure_is_told_once() {
    let _world = world();
    let job = job("failing");
    let graph = Graph::new().unwrap();
    let x = graph.placeholder("x", DType::F32, Some(&[])).unwrap();
    let bad = ops::check_numerics(&graph, x, "not a number").build().unwrap();
    let session = Session::connect(job.chief.target(), &graph).unwrap();
    let coordinator = session.coordinator().unwrap();
    let closure = coordinator.prepare(&[x], &[bad], &[], None).unwrap();
    let value = coordinator.schedule(&closure, &[&Tensor::scalar(f32::NAN).unwrap()]).unwrap();
    refused(coordinator.join(), ErrorKind::InvalidArgument, "closure on /job:worker");
    refused(value.fetch(), ErrorKind::InvalidArgument, "not a number");
    coordinator.join().unwrap();
    let value = coordinator.schedule(&closure, &[&Tensor::scalar(2.0f32).unwrap()]).unwrap();
    assert_eq!(value.fetch().unwrap().scalar::<f32>(0).unwrap(), 2.0);
    refused(Session::connect("local", &graph).unwrap().coordinator(), ErrorKind::FailedPrecondition, "local");
}

#[test]
fn shards_of_rows() {
    let _world = world();
    assert_eq!(Partitioner::FixedShards(3).shards(DType::F32, 0, &[8, 4]).unwrap(), 3);
    assert_eq!(shard_rows(8, 3, 2).unwrap(), (6, 2));
    refused(shard_rows(8, 3, 3), ErrorKind::InvalidArgument, "");
    refused(Partitioner::FixedShards(3).shards(DType::F32, 0, &[]), ErrorKind::InvalidArgument, "");
}
