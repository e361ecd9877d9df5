//! Runs that are waited for: called, prepared, into tensors that are there; sessions and runtimes. One test at a time.

mod common;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use common::{refused, world};
use dtg::{
    Cancellation, DType, Dataset, ErrorKind, Graph, LogLevel, Model, Result, Runtime, RuntimeOptions, Scope, Session,
    SessionOptions, Tensor, Value, VariableSpec, ops,
};

/// y = x², for any x.
fn square() -> (Graph, Value, Value) {
    let graph = Graph::new().unwrap();
    let x = graph.placeholder("x", DType::F32, None).unwrap();
    let y = ops::square(&graph, x).name("y").build().unwrap();
    (graph, x, y)
}

#[test]
fn fetches_come_in_order_or_into_tensors() {
    let _world = world();
    let (graph, x, y) = square();
    let two = graph.scalar(2.0f32).unwrap();
    let sum = ops::add_v2(&graph, y, two).build().unwrap();
    let session = Session::connect("local", &graph).unwrap();
    let input = Tensor::from_slice(&[2], &[1.0f32, 3.0]).unwrap();
    let mut into = Tensor::zeros(DType::F32, &[2]).unwrap();
    let out = session
        .run()
        .feed(x, &input)
        .fetch(sum)
        .fetch_into(y, &mut into)
        .fetch(two)
        .timeout(Duration::from_secs(60))
        .call()
        .unwrap();
    assert_eq!((out.len(), out.is_empty()), (2, false));
    assert_eq!((out.slice::<f32>(0).unwrap(), out.scalar::<f32>(1).unwrap()), (&[3.0f32, 11.0][..], 2.0));
    assert_eq!(into.as_slice::<f32>().unwrap(), [1.0, 9.0]);
    refused(out.tensor(2), ErrorKind::OutOfRange, "2");
    refused(out.scalar::<i32>(1), ErrorKind::InvalidArgument, "int32");
    let many = refused(out.scalar::<f32>(0), ErrorKind::InvalidArgument, "output 0 of the run: the scalar of a tensor");
    assert!(many.message().ends_with("it has 2 elements; read it with as_slice"), "{many}");
    assert_eq!(out.into_iter().map(|tensor| tensor.count()).sum::<usize>(), 3);

    let mut small = Tensor::zeros(DType::F32, &[1]).unwrap();
    refused(session.run().feed(x, &input).fetch_into(y, &mut small).call(), ErrorKind::InvalidArgument, "y");
    let clone = into.clone();
    refused(session.run().feed(x, &input).fetch_into(y, &mut into).call(), ErrorKind::FailedPrecondition, "copy()");
    drop(clone);
    // Three references to one session, from three threads at once.
    let input = Arc::new(input);
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let (session, input) = (session.clone(), input.clone());
            thread::spawn(move || {
                (0..50).all(|_| session.run().feed(x, &input).fetch(y).call().unwrap().slice::<f32>(0).unwrap() == [1.0, 9.0])
            })
        })
        .collect();
    assert!(workers.into_iter().all(|worker| worker.join().unwrap()));
}

#[test]
fn a_prepared_run_is_called_often() {
    let _world = world();
    let (graph, x, y) = square();
    let session = Session::connect("local", &graph).unwrap();
    let call = session.prepare(&[x], &[y], &[]).unwrap().timeout(Duration::from_secs(60));
    drop((session, graph)); // it keeps what it needs
    let mut out = [Tensor::zeros(DType::F32, &[]).unwrap()];
    for i in 0..100u8 {
        call.run_into(&[&Tensor::scalar(f32::from(i)).unwrap()], &mut out).unwrap();
        assert_eq!(out[0].to_scalar::<f32>().unwrap(), f32::from(i).powi(2));
    }
    let other = call.clone();
    assert_eq!(other.run(&[&Tensor::from_slice(&[1], &[4.0f32]).unwrap()]).unwrap().slice::<f32>(0).unwrap(), [16.0]);
    let input = Tensor::scalar(1.0f32).unwrap();
    refused(call.run(&[]), ErrorKind::InvalidArgument, "prepared with 1 feeds");
    refused(call.run_into(&[&input], &mut []), ErrorKind::InvalidArgument, "called with 1 and 0");
    refused(call.run_into(&[&input; 20], &mut []), ErrorKind::InvalidArgument, "20");
    let shared = out[0].clone();
    refused(call.run_into(&[&input], &mut out), ErrorKind::FailedPrecondition, "copy()");
    drop(shared);
}

#[test]
fn more_feeds_than_fit_on_the_stack() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let feeds: Vec<_> = (0..20).map(|i| graph.placeholder(&format!("x{i}"), DType::I64, Some(&[])).unwrap()).collect();
    let fetches: Vec<_> = feeds.iter().map(|x| ops::neg(&graph, *x).build().unwrap()).collect();
    let session = Session::connect("local", &graph).unwrap();
    let call = session.prepare(&feeds, &fetches, &[]).unwrap();
    let tensors: Vec<_> = (0..20i64).map(|i| Tensor::scalar(i).unwrap()).collect();
    let inputs: Vec<_> = tensors.iter().collect();
    let mut outputs: Vec<_> = (0..20).map(|_| Tensor::scalar(0i64).unwrap()).collect();
    call.run_into(&inputs, &mut outputs).unwrap();
    let negated: Vec<i64> = outputs.iter().map(|tensor| tensor.to_scalar().unwrap()).collect();
    assert_eq!(negated, (0..20).map(|i| -i).collect::<Vec<_>>());
}

#[test]
fn options_and_devices() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let there = graph.within(Scope::Device("/device:CPU:1"), |graph| graph.scalar(1.0f32)).unwrap();
    let two = SessionOptions::new()
        .cpu_devices(2)
        .disable_fusion(true)
        .timeout(Duration::from_secs(60))
        .connect("local", &graph)
        .unwrap();
    assert_eq!(two.devices().len(), 2);
    assert!(two.devices()[1].ends_with("/device:CPU:1"), "{:?}", two.devices());
    assert_eq!(two.run().fetch(there).call().unwrap().scalar::<f32>(0).unwrap(), 1.0);
    let one = Session::connect("local", &graph).unwrap();
    refused(one.run().fetch(there).call(), ErrorKind::InvalidArgument, "CPU:1");
    let soft = SessionOptions::new().soft_placement(true).connect("local", &graph).unwrap();
    assert_eq!(soft.run().fetch(there).call().unwrap().scalar::<f32>(0).unwrap(), 1.0);
    refused(SessionOptions::new().cpu_devices(-1).connect("local", &graph), ErrorKind::InvalidArgument, "");
}

#[test]
fn state_is_kept_reset_and_closed() {
    let _world = world();
    let model = Model::new(Graph::new().unwrap(), 1).unwrap();
    let variable = model.add_variable(&VariableSpec::new("v")).unwrap();
    let one = model.scalar(1.0f32).unwrap();
    let add = ops::assign_add_variable_op(&model, variable.handle, one).build().unwrap();
    let init = model.init().unwrap();
    let session = Session::connect("local", &model).unwrap();
    let error = refused(session.run().fetch(variable.read).call(), ErrorKind::FailedPrecondition, "v");
    assert!(error.node().is_some() && error.phase().is_some(), "{error:?}");
    session.run_target(init).unwrap();
    session.run_target(add).unwrap();
    session.run_target(add).unwrap();
    assert_eq!(session.run().fetch(variable.read).call().unwrap().scalar::<f32>(0).unwrap(), 2.0);
    session.reset(&["another"]).unwrap();
    assert_eq!(session.run().fetch(variable.read).call().unwrap().scalar::<f32>(0).unwrap(), 2.0);
    session.reset(&[]).unwrap();
    refused(session.run().fetch(variable.read).call(), ErrorKind::FailedPrecondition, "v");
    refused(session.reset(&["a\0b"]), ErrorKind::InvalidArgument, "NUL");
    session.barrier("alone", Duration::from_secs(1)).unwrap();
    refused(session.barrier("", Duration::from_secs(1)), ErrorKind::InvalidArgument, "");

    session.close(Duration::from_secs(5)).unwrap();
    session.close(Duration::from_secs(5)).unwrap();
    refused(session.run_target(init), ErrorKind::FailedPrecondition, "close");
    refused(session.run().target(init).start().and_then(dtg::Run::wait), ErrorKind::FailedPrecondition, "close");
    refused(session.end_job(Duration::from_secs(1)), ErrorKind::FailedPrecondition, "");
    refused(session.end_job_now(Duration::from_secs(1)), ErrorKind::FailedPrecondition, "");
    refused(session.barrier("closed", Duration::from_secs(1)), ErrorKind::FailedPrecondition, "close");
}

#[test]
fn runtimes_stand_beside_each_other() {
    let _world = world();
    let runtime = RuntimeOptions::new()
        .compute_threads(3)
        .pin_threads(false)
        .spin(Duration::from_micros(10))
        .memory_limit(1 << 30)
        .log(LogLevel::Debug, |_, _, _| {})
        .create()
        .unwrap();
    assert_eq!(runtime.threads(), 3);
    assert!(Runtime::default().metrics().unwrap().contains("# TYPE"));
    refused(RuntimeOptions::new().compute_threads(-1).create(), ErrorKind::InvalidArgument, "threads");
    let graph = Graph::new_in(&runtime).unwrap();
    let x = graph.placeholder("x", DType::F32, None).unwrap();
    let y = ops::exp(&graph, x).build().unwrap();
    runtime.trace_start().unwrap();
    let session = Session::connect("local", &graph).unwrap();
    session.run().feed(x, &Tensor::scalar(1.0f32).unwrap()).fetch(y).call().unwrap();
    let trace = runtime.trace_stop().unwrap();
    assert!(trace.contains("Exp"), "{trace}");
    let metrics = runtime.metrics().unwrap();
    assert!(metrics.contains("# TYPE") && metrics.contains("runs"), "{metrics}");
    assert!(runtime.clone().ops_json().unwrap().contains("\"MatMul\""));
    assert_eq!(dtg::version().split('.').count(), 3);
    assert_eq!(dtg::abi_version(), (dtg::sys::DTG_VERSION_MAJOR, dtg::sys::DTG_VERSION_MINOR));
    assert!(dtg::has_feature("cpu") && !dtg::has_feature("c\0pu") && !dtg::has_feature("teleportation"));
}

#[test]
fn a_log_sink_is_kept_and_freed_with_its_runtime() {
    let _world = world();
    let held = Arc::new(());
    let (first, second) = (held.clone(), held.clone());
    let runtime =
        RuntimeOptions::new().log(LogLevel::Warn, move |_, _, _| assert!(Arc::strong_count(&first) > 0)).create().unwrap();
    assert_eq!(Arc::strong_count(&held), 3);
    drop(runtime);
    assert_eq!(Arc::strong_count(&held), 2, "the sink was not freed");
    // Nor is it lost when there is no runtime.
    refused(
        RuntimeOptions::new().compute_threads(-1).log(LogLevel::Warn, move |_, _, _| drop(second.clone())).create(),
        ErrorKind::InvalidArgument,
        "",
    );
    assert_eq!(Arc::strong_count(&held), 1, "the sink was not freed");
}

/// Three lines of a runtime's log, of data sets that are asked for more after their end; and then the runtime is gone.
fn three_lines(runtime: Runtime) {
    for _ in 0..3 {
        let mut data = Dataset::range_in(&runtime, 0, 0, 1).unwrap();
        assert!((0..2).all(|_| data.next_element().unwrap().is_none()));
    }
}

#[test]
fn a_log_sink_may_panic() {
    let _world = world();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let kept = heard.clone();
    let sink = move |_: LogLevel, component: &str, message: &str| {
        kept.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{component}: {message}"));
        panic!("a sink that fails");
    };
    three_lines(RuntimeOptions::new().log(LogLevel::Warn, sink).create().unwrap());
    let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(heard.len(), 3, "{heard:?}");
    assert!(heard[0].starts_with("data: next element: the data set (range(0, 1, 0)) had come to its end"), "{heard:?}");
    assert!(heard[0].ends_with("until Dataset::restart begins the next epoch"), "{heard:?}");
}

/// It runs a graph of its own, and asks the runtime whose line it hears.
#[test]
fn a_log_sink_may_call_the_library() {
    let _world = world();
    let (heard, mine) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(None::<Runtime>)));
    let (kept, theirs) = (heard.clone(), mine.clone());
    let sink = move |_: LogLevel, _: &str, message: &str| {
        let runtime = theirs.lock().unwrap().clone().unwrap();
        let answer = || -> Result<f32> {
            assert!(runtime.metrics()?.contains("dtg_"));
            let graph = Graph::new_in(&runtime)?;
            let two = graph.scalar(2.0f32)?;
            let four = ops::mul(&graph, two, two).build()?;
            // A line from within a line: it comes after this one.
            if !message.contains("range(0, 1, 1)") {
                let mut data = Dataset::range_in(&runtime, 0, 1, 1)?;
                while data.next_element()?.is_some() {}
                assert!(data.next_element()?.is_none());
            }
            Session::connect("local", &graph)?.run().fetch(four).call()?.scalar(0)
        };
        let said = answer();
        drop(runtime); // before it counts: the last reference is not the sink's to give up
        kept.lock().unwrap().push(said);
    };
    let runtime = RuntimeOptions::new().compute_threads(2).log(LogLevel::Warn, sink).create().unwrap();
    *mine.lock().unwrap() = Some(runtime.clone());
    three_lines(runtime);
    let late = Instant::now() + Duration::from_secs(20);
    while heard.lock().unwrap().len() < 6 && Instant::now() < late {
        thread::yield_now();
    }
    let all: Vec<_> = heard.lock().unwrap().drain(..).map(Result::unwrap).collect();
    assert_eq!(all, [4.0; 6]);
    let last = mine.lock().unwrap().take();
    drop(last);
}

#[test]
fn another_thread_cancels_what_waits() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let queue = ops::fifo_queue_v2(&graph, &[DType::F32]).build().unwrap();
    let element = ops::queue_dequeue_v2(&graph, queue, &[DType::F32]).build().unwrap()[0];
    let session = Session::connect("local", &graph).unwrap();
    let callable = session.prepare(&[], &[element], &[]).unwrap();
    for by_call in [false, true] {
        let cancellation = Cancellation::new().unwrap();
        let other = cancellation.clone();
        let canceller = thread::spawn(move || {
            thread::sleep(Duration::from_millis(10));
            other.cancel();
            other.cancel();
        });
        let mine = callable.clone().cancelled_by(&cancellation);
        let ended = || {
            if by_call { mine.run(&[]) } else { session.run().fetch(element).cancelled_by(&cancellation).call() }
        };
        refused(ended(), ErrorKind::Cancelled, "cancelled by its caller");
        canceller.join().unwrap();
        refused(ended(), ErrorKind::Cancelled, "cancelled by its caller");
    }
    let cancellation = Cancellation::new().unwrap();
    refused(session.run().fetch(element).cancelled_by(&cancellation).start(), ErrorKind::InvalidArgument, "only call()");
}

#[test]
fn a_long_product_is_left_when_it_is_cancelled() {
    let _world = world();
    let graph = Graph::new().unwrap();
    let x = graph.placeholder("x", DType::F32, Some(&[-1, -1])).unwrap();
    let product = ops::mat_mul(&graph, x, x).build().unwrap();
    let session = Session::connect("local", &graph).unwrap();
    let zeros = |n: usize| Tensor::from_slice(&[n, n], &vec![0.0f32; n * n]).unwrap();
    let (small, large) = (zeros(512), zeros(5120));
    let timed = || {
        let began = Instant::now();
        session.run().feed(x, &small).fetch(product).call().unwrap();
        began.elapsed()
    };
    let whole = (0..5).map(|_| timed()).min().unwrap() * 1000;
    let cancellation = Cancellation::new().unwrap();
    let other = cancellation.clone();
    let canceller = thread::spawn(move || {
        thread::sleep(whole / 50);
        other.cancel();
    });
    let began = Instant::now();
    refused(
        session.run().feed(x, &large).fetch(product).cancelled_by(&cancellation).call(),
        ErrorKind::Cancelled,
        "cancelled by its caller",
    );
    assert!(began.elapsed() < whole / 2, "it would have taken {whole:?} and took {:?}", began.elapsed());
    canceller.join().unwrap();
}
