//! crossing.c in Rust: what a call into the library costs from here. Prints, as a JSON line each, the median nanoseconds of the cheapest
//! call ("crossing") and of a prepared run of a tiny graph ("warm_step": one scalar fed, one scalar written into a tensor that is given,
//! one compute thread), and of the same run as a future ("future"), through the public API alone. Main thread. Built by bindings/rust/crossing.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Instant;

use dtg::{DType, Graph, Result, RuntimeOptions, Session, Tensor, Value, ops};

const SAMPLES: usize = 51;
const CROSSINGS: u32 = 200_000;
const STEPS: u32 = 20_000;

fn say(name: &str, mut samples: Vec<f64>) {
    samples.sort_by(f64::total_cmp);
    println!(
        "{{\"name\": \"{name}\", \"ns\": {:.2}}}",
        samples[samples.len() / 2]
    );
}

fn crossings() {
    let mut samples = Vec::with_capacity(SAMPLES);
    let mut sum = 0;
    for _ in 0..SAMPLES {
        let start = Instant::now();
        for _ in 0..CROSSINGS {
            sum += dtg::abi_version().1;
        }
        samples.push(start.elapsed().as_nanos() as f64 / f64::from(CROSSINGS));
    }
    assert!(sum > 0); // it is used
    say("crossing", samples);
}

/// Of a thread that has nothing else to do.
struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

fn futures(session: &Session, x: Value, y: Value, input: &Tensor) -> Result<()> {
    let waker = Waker::from(Arc::new(Nobody));
    let mut context = Context::from_waker(&waker);
    let mut samples = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let start = Instant::now();
        for _ in 0..STEPS / 10 {
            let mut run = session.run().feed(x, input).fetch(y).start()?;
            while Pin::new(&mut run).poll(&mut context).is_pending() {}
        }
        samples.push(start.elapsed().as_nanos() as f64 / f64::from(STEPS / 10));
    }
    say("future", samples);
    Ok(())
}

fn main() -> Result<()> {
    crossings();
    let runtime = RuntimeOptions::new().compute_threads(1).create()?;
    let graph = Graph::new_in(&runtime)?;
    let x = graph.placeholder("x", DType::F32, Some(&[]))?;
    let y = ops::add_v2(&graph, x, x).build()?;
    let session = Session::connect("local", &graph)?;
    let call = session.prepare(&[x], &[y], &[])?;
    let input = Tensor::scalar(0.0f32)?;
    let mut output = [Tensor::scalar(0.0f32)?];
    let mut samples = Vec::with_capacity(SAMPLES);
    for i in 0..SAMPLES + 5 {
        let start = Instant::now();
        for _ in 0..STEPS {
            call.run_into(&[&input], &mut output)?;
        }
        // The first ones warm up.
        if i >= 5 {
            samples.push(start.elapsed().as_nanos() as f64 / f64::from(STEPS));
        }
    }
    say("warm_step", samples);
    futures(&session, x, y, &input)
}
