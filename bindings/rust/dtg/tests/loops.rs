//! Ten thousand of everything: memory does not grow, and nothing is left. One test, so that nothing else is in the measure.

mod common;

use std::time::Duration;

use common::{refused, world};
use dtg::{Cluster, DType, ErrorKind, Graph, Server, Session, Tensor, ops};

const ROUNDS: usize = 10_000;
const SLICE: usize = 2_000;
/// What a slice may add: a leak of 64 bytes a round is seen.
const SLACK_KIB: isize = 128;

const SETTLE: Duration = Duration::from_millis(50);

/// Memory of this process, in KiB.
fn resident() -> isize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Slices of rounds until two in a row add next to nothing, at least all the rounds: what leaks never comes to rest, pools that fill do.
fn steady(what: &str, mut round: impl FnMut(usize)) {
    let (mut grown, mut quiet) = (Vec::new(), 0);
    while quiet < 2 || grown.len() <= ROUNDS / SLICE {
        let before = resident();
        (0..SLICE).for_each(&mut round);
        // What is dropped ends in threads of the library, which on a busy machine come later.
        std::thread::sleep(SETTLE);
        grown.push(resident() - before);
        quiet = if grown[grown.len() - 1] < SLACK_KIB { quiet + 1 } else { 0 };
        assert!(grown.len() <= 12 * ROUNDS / SLICE, "{SLICE} {what} after the other add KiB without end: {grown:?}");
    }
    println!("{what}: {} times {SLICE}, KiB more each time: {grown:?}", grown.len());
}

#[test]
fn ten_thousand_of_everything() {
    let _world = world();
    steady("tensors", |i| {
        let tensor = Tensor::from_vec(&[2, 500], vec![i as f32; 1000]).unwrap();
        let clone = tensor.clone();
        drop(tensor);
        assert_eq!(clone.copy().unwrap().as_slice::<f32>().unwrap()[999], i as f32);
    });

    let graph = Graph::new().unwrap();
    let x = graph.placeholder("x", DType::F32, Some(&[])).unwrap();
    let y = ops::square(&graph, x).build().unwrap();
    let queue = ops::fifo_queue_v2(&graph, &[DType::F32]).build().unwrap();
    let never = ops::queue_dequeue_v2(&graph, queue, &[DType::F32]).build().unwrap()[0];
    let input = Tensor::scalar(2.0f32).unwrap();
    steady("sessions", |_| {
        let session = Session::connect("local", &graph).unwrap();
        assert_eq!(session.run().feed(x, &input).fetch(y).call().unwrap().scalar::<f32>(0).unwrap(), 4.0);
    });

    let session = Session::connect("local", &graph).unwrap();
    steady("runs and errors", |i| {
        let run = session.run().feed(x, &input).fetch(y).start().unwrap();
        if i % 2 == 0 {
            run.wait().unwrap();
        } else {
            drop(run);
        }
        refused(session.run().fetch(y).call(), ErrorKind::InvalidArgument, "x");
    });
    steady("dropped runs", |_| drop(session.run().fetch(never).start().unwrap()));
    session.close(Duration::from_secs(30)).unwrap();
    drop(session);

    let cluster = Cluster::parse("worker=127.0.0.1:0").unwrap();
    steady("servers", |_| {
        let server = Server::start(&cluster).unwrap();
        drop(Session::connect(server.target(), &graph).unwrap());
    });
    steady("graphs", |_| {
        let graph = Graph::new().unwrap();
        let one = graph.scalar(1.0f32).unwrap();
        assert_eq!(graph.name(one).unwrap(), "Const");
        refused(graph.node("Nope").build(), ErrorKind::NotFound, "Nope");
    });
}
