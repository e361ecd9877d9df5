//! Runs as futures, polled by a small executor: ends, cancels, drops, many at once. One test at a time; none waits by sleeping.

mod common;

use std::task::Poll;
use std::thread;
use std::time::Duration;

use common::{block_on, poll_once, refused, world};
use dtg::{DType, ErrorKind, Graph, Model, Session, SessionOptions, Tensor, Value, VariableSpec, ops};

/// A queue, a dequeue that waits for an element, and what gives it one.
fn queue() -> (Graph, Value, Value) {
    let graph = Graph::new().unwrap();
    let queue = ops::fifo_queue_v2(&graph, &[DType::F32]).build().unwrap();
    let element = ops::queue_dequeue_v2(&graph, queue, &[DType::F32]).name("take").build().unwrap()[0];
    let two = graph.scalar(2.0f32).unwrap();
    let put = ops::queue_enqueue_v2(&graph, queue, &[two]).build().unwrap();
    (graph, element, put)
}

#[test]
fn a_run_is_awaited() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let x = graph.placeholder("x", DType::F32, Some(&[])).unwrap();
    let y = ops::square(&graph, x).build().unwrap();
    let session = Session::connect("local", &graph).unwrap();
    let sum = block_on(async {
        let mut sum = 0.0;
        for i in 0..10u8 {
            let tensor = Tensor::scalar(f32::from(i))?;
            sum += session.run().feed(x, &tensor).fetch(y).start()?.await?.scalar::<f32>(0)?;
        }
        Ok::<_, dtg::Error>(sum)
    });
    assert_eq!(sum.unwrap(), 285.0);
    // The queue of ends goes with the last run.
    assert_eq!(dtg::live_handles(), 2, "graph and session");
}

#[test]
fn it_wakes_who_waits() {
    let _world = world();
    let (graph, element, put) = queue();
    let session = Session::connect("local", &graph).unwrap();
    let mut run = session.run().fetch(element).start().unwrap();
    assert!(poll_once(&mut run).is_pending());
    assert!(!run.is_ended());
    assert_eq!(format!("{run:?}"), "Run(under way)");
    // Awaited on another thread than it was polled on before.
    let waiter = thread::spawn(move || block_on(run));
    session.run_target(put).unwrap();
    assert_eq!(waiter.join().unwrap().unwrap().scalar::<f32>(0).unwrap(), 2.0);

    // And without an executor.
    let run = session.run().fetch(element).start().unwrap();
    session.run_target(put).unwrap();
    assert_eq!(run.wait().unwrap().scalar::<f32>(0).unwrap(), 2.0);
}

#[test]
fn its_result_is_given_once() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let two = graph.scalar(2.0f32).unwrap();
    let session = Session::connect("local", &graph).unwrap();
    let mut run = session.run().fetch(two).start().unwrap();
    block_on(&mut run).unwrap();
    assert!(run.is_ended());
    let Poll::Ready(again) = poll_once(&mut run) else { panic!("it waits for ever") };
    refused(again, ErrorKind::FailedPrecondition, "again");
}

#[test]
fn a_cancelled_run_says_so() {
    let _world = world();
    let (graph, element, _) = queue();
    let session = Session::connect("local", &graph).unwrap();
    let run = session.run().fetch(element).start().unwrap();
    run.cancel();
    run.cancel();
    let error = refused(block_on(run), ErrorKind::Cancelled, "");
    assert_eq!(error.code(), 1);
}

#[test]
fn a_dropped_run_is_cancelled_and_leaves_nothing() {
    let _world = world();
    let (graph, element, put) = queue();
    let session = Session::connect("local", &graph).unwrap();
    let runs: Vec<_> = (0..10).map(|_| session.run().fetch(element).start().unwrap()).collect();
    drop(runs);
    // close waits for the ends of the runs; had one not been cancelled, it would have to cancel it, so look before.
    let one = session.run().fetch(element).start().unwrap();
    session.run_target(put).unwrap();
    assert_eq!(one.wait().unwrap().scalar::<f32>(0).unwrap(), 2.0, "a dropped run took the element");
    session.close(Duration::from_secs(5)).unwrap();
}

#[test]
fn a_run_past_its_deadline() {
    let _world = world();
    let (graph, element, _) = queue();
    let session = SessionOptions::new().timeout(Duration::from_millis(20)).connect("local", &graph).unwrap();
    refused(block_on(session.run().fetch(element).start().unwrap()), ErrorKind::DeadlineExceeded, "");
    refused(
        block_on(session.run().fetch(element).timeout(Duration::from_millis(5)).start().unwrap()),
        ErrorKind::DeadlineExceeded,
        "",
    );
    // Zero is the shortest time, not the default one.
    refused(session.run().fetch(element).timeout(Duration::ZERO).call(), ErrorKind::DeadlineExceeded, "");
    // Also a run that would be over before anybody looks at the clock.
    let brief = graph.scalar(2.0f32).unwrap();
    let prepared = session.prepare(&[], &[brief], &[]).unwrap();
    for _ in 0..100 {
        session.run().fetch(brief).timeout(Duration::from_secs(60)).call().unwrap();
        refused(session.run().fetch(brief).timeout(Duration::ZERO).call(), ErrorKind::DeadlineExceeded, "zero");
        refused(session.run().fetch(brief).timeout(Duration::ZERO).start(), ErrorKind::DeadlineExceeded, "zero");
        refused(prepared.clone().timeout(Duration::ZERO).run(&[]), ErrorKind::DeadlineExceeded, "zero");
    }
}

#[test]
fn what_cannot_start_leaves_nothing() {
    let _world = world();
    let (graph, element, _) = queue();
    let session = Session::connect("local", &graph).unwrap();
    refused(session.run().start(), ErrorKind::InvalidArgument, "");
    let mut tensor = Tensor::zeros(DType::F32, &[]).unwrap();
    refused(session.run().fetch_into(element, &mut tensor).start(), ErrorKind::InvalidArgument, "fetch_into");
    drop(tensor);
    assert_eq!(dtg::live_handles(), 2, "graph and session");
}

#[test]
fn a_closed_session_ends_its_runs() {
    let _world = world();
    let (graph, element, _) = queue();
    let session = Session::connect("local", &graph).unwrap();
    let run = session.run().fetch(element).start().unwrap();
    session.close(Duration::from_secs(5)).unwrap();
    refused(block_on(run), ErrorKind::Cancelled, "");
}

#[test]
fn a_thousand_at_once_from_four_threads() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let x = graph.placeholder("x", DType::I64, Some(&[])).unwrap();
    let y = ops::neg(&graph, x).build().unwrap();
    let session = Session::connect("local", &graph).unwrap();
    thread::scope(|scope| {
        for part in 0..4i64 {
            let session = &session;
            scope.spawn(move || {
                let numbers = part * 250..(part + 1) * 250;
                let start = |i| session.run().feed(x, &Tensor::scalar(i).unwrap()).fetch(y).start().unwrap();
                let runs: Vec<_> = numbers.clone().map(start).collect();
                for (i, run) in numbers.zip(runs) {
                    assert_eq!(block_on(run).unwrap().scalar::<i64>(0).unwrap(), -i);
                }
            });
        }
    });
}

#[test]
fn targets_run_again_and_again_until_cancelled() {
    let _world = world();
    let model = Model::new(Graph::new().unwrap(), 1).unwrap();
    let count = model.add_variable(&VariableSpec { dtype: Some(DType::I64), ..VariableSpec::new("count") }).unwrap();
    let one = model.scalar(1i64).unwrap();
    let add = ops::assign_add_variable_op(&model, count.handle, one).build().unwrap();
    let init = model.init().unwrap();
    let session = Session::connect("local", &model).unwrap();
    session.run_target(init).unwrap();
    let run = session.run_repeatedly(&[add]).unwrap();
    while session.run().fetch(count.read).call().unwrap().scalar::<i64>(0).unwrap() < 100 {
        thread::yield_now();
    }
    run.cancel();
    refused(run.wait(), ErrorKind::Cancelled, "");
    refused(session.run_repeatedly(&[]), ErrorKind::InvalidArgument, "");
}

/// What an executor panics with may panic once more when it is dropped; other futures end all the same.
#[test]
fn an_executor_that_panics_twice_harms_nobody() {
    struct Thrown;
    impl Drop for Thrown {
        fn drop(&mut self) {
            panic!("a second time");
        }
    }
    struct Wakes;
    impl std::task::Wake for Wakes {
        fn wake(self: std::sync::Arc<Self>) {
            std::panic::panic_any(Thrown);
        }
    }
    let _world = world();
    let (graph, element, put) = queue();
    let session = Session::connect("local", &graph).unwrap();
    let mut first = session.run().fetch(element).start().unwrap();
    let waker = std::task::Waker::from(std::sync::Arc::new(Wakes));
    assert!(std::pin::Pin::new(&mut first).poll(&mut std::task::Context::from_waker(&waker)).is_pending());
    let mut second = session.run().fetch(element).start().unwrap();
    assert!(poll_once(&mut second).is_pending());
    let waiter = thread::spawn(move || block_on(second));
    session.run_target(put).unwrap();
    session.run_target(put).unwrap();
    assert_eq!(waiter.join().unwrap().unwrap().scalar::<f32>(0).unwrap(), 2.0);
    assert_eq!(block_on(first).unwrap().scalar::<f32>(0).unwrap(), 2.0);
}

#[test]
fn a_brief_run_is_over_when_it_has_started() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let x = graph.placeholder("x", DType::F32, Some(&[-1])).unwrap();
    let y = ops::square(&graph, x).build().unwrap();
    let session = Session::connect("local", &graph).unwrap();
    let small = Tensor::from_slice(&[2], &[3.0f32, 4.0]).unwrap();
    // On a machine that is busy some are not, for a while.
    let mut brief = 0;
    for _ in 0..1000 {
        let mut run = session.run().feed(x, &small).fetch(y).start().unwrap();
        let ended = run.is_ended();
        run.cancel();
        if ended {
            brief += 1;
            let Poll::Ready(result) = poll_once(&mut run) else { panic!("a run that has ended is not ready") };
            assert_eq!(result.unwrap().slice::<f32>(0).unwrap(), &[9.0, 16.0]);
            assert!(poll_once(&mut run).is_ready(), "polled again");
        }
    }
    assert!(brief > 0);
    // What it fails of comes with the result, as of any other run.
    refused(session.run().fetch(y).start(), ErrorKind::InvalidArgument, "x");
    let model = Model::new(graph, 1).unwrap();
    let variable = model.add_variable(&VariableSpec::new("w")).unwrap();
    for _ in 0..10 {
        refused(block_on(session.run().fetch(variable.read).start().unwrap()), ErrorKind::FailedPrecondition, "w");
    }
}
