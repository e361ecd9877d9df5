//! What goes wrong gives the error that C gives: the same code, the same message. Each case is done twice, through the crate and through
//! the C ABI itself. One test at a time.

mod common;

use std::ptr::null_mut;
use std::time::Duration;

use common::{refused, world};
use dtg::{Cluster, DType, Error, ErrorKind, Graph, ServerOptions, Session, SessionOptions, Tensor, Value, ops, sys};

/// Code and message of an error of the C ABI.
fn of_c(error: *mut sys::dtg_error) -> (i32, String) {
    assert!(!error.is_null(), "C accepted it");
    // SAFETY: an error of ours, released here.
    unsafe {
        let message = std::ffi::CStr::from_ptr(sys::dtg_error_message(error, null_mut())).to_str().unwrap().to_owned();
        let code = sys::dtg_error_code(error);
        sys::dtg_error_release(error);
        (code, message)
    }
}

#[track_caller]
fn same(ours: dtg::Result<impl Sized>, kind: ErrorKind, theirs: *mut sys::dtg_error) {
    let ours: Error = ours.err().expect("the crate accepted it");
    assert_eq!(ours.kind(), kind, "{ours}");
    let here = std::panic::Location::caller();
    let place = format!("at {}:{}: ", here.file(), here.line()); // which C does not know
    let words = ours.message().strip_prefix(&place).unwrap_or(ours.message());
    assert_eq!((ours.code(), words.to_owned()), of_c(theirs));
}

/// A graph and a session of C's own, the twin of those of the crate. Values are the same but for the graph's tag.
struct Twin {
    graph: *mut sys::dtg_graph,
    session: *mut sys::dtg_session,
}

impl Twin {
    fn of(graph: &Graph, target: &str, options: &sys::dtg_session_options) -> Result<Self, *mut sys::dtg_error> {
        let bytes = graph.serialize().unwrap();
        let mut twin = Self { graph: null_mut(), session: null_mut() };
        // SAFETY: places for handles; bytes and texts with their lengths.
        unsafe {
            assert!(sys::dtg_graph_create(null_mut(), &mut twin.graph).is_null());
            assert!(sys::dtg_graph_import(twin.graph, bytes.as_ptr().cast(), bytes.len()).is_null());
            let error =
                sys::dtg_session_connect(null_mut(), target.as_ptr().cast(), target.len(), twin.graph, options, &mut twin.session);
            if error.is_null() { Ok(twin) } else { Err(error) }
        }
    }

    fn value(&self, name: &str) -> sys::dtg_value {
        let mut value = sys::dtg_value { id: 0 };
        // SAFETY: an open graph, a text with its length.
        assert!(unsafe { sys::dtg_graph_find(self.graph, name.as_ptr().cast(), name.len(), &mut value) }.is_null());
        value
    }

    /// A run of one feed and one fetch, by name.
    fn run(&self, feed: Option<(&str, *mut sys::dtg_tensor)>, fetch: &str, timeout: Duration) -> *mut sys::dtg_error {
        let (feeds, tensors): (Vec<_>, Vec<_>) = feed.iter().map(|(name, tensor)| (self.value(name), tensor.cast_const())).unzip();
        let fetch = self.value(fetch);
        let mut fetched: *mut sys::dtg_tensor = null_mut();
        let args = sys::dtg_run_args {
            feeds: feeds.as_ptr(),
            feed_tensors: tensors.as_ptr(),
            num_feeds: feeds.len(),
            fetches: &fetch,
            fetched: &mut fetched,
            num_fetches: 1,
            timeout_ns: timeout.as_nanos() as i64,
            ..sys::dtg_run_args::INIT
        };
        // SAFETY: an open session, arrays with their lengths; what is fetched is ours.
        unsafe {
            let error = sys::dtg_session_run(self.session, &args);
            sys::dtg_tensor_release(fetched);
            error
        }
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        // SAFETY: handles of ours, or NULL.
        unsafe {
            sys::dtg_session_release(self.session);
            sys::dtg_graph_release(self.graph);
        }
    }
}

/// A tensor of C's own.
struct Raw(*mut sys::dtg_tensor);

impl Raw {
    fn zeros(dtype: DType, dims: &[i64]) -> Self {
        let mut tensor = null_mut();
        // SAFETY: dims with their number.
        assert!(unsafe { sys::dtg_tensor_allocate(dtype.number(), dims.as_ptr(), dims.len(), &mut tensor) }.is_null());
        Self(tensor)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: a handle of ours.
        unsafe { sys::dtg_tensor_release(self.0) }
    }
}

const LONG: Duration = Duration::from_secs(60);

/// x[2] -> y = x², and a dequeue that waits for ever.
fn world_graph() -> (Graph, Value, Value, Value) {
    let graph = Graph::new().unwrap();
    let x = graph.placeholder("x", DType::F32, Some(&[2])).unwrap();
    let y = ops::square(&graph, x).name("y").build().unwrap();
    let queue = ops::fifo_queue_v2(&graph, &[DType::F32]).name("queue").build().unwrap();
    let element = ops::queue_dequeue_v2(&graph, queue, &[DType::F32]).name("take").build().unwrap()[0];
    (graph, x, y, element)
}

/// `fn main() -> dtg::Result<()>` prints an error by its `Debug`: that is for a reader too.
#[test]
fn what_main_prints_is_the_line() {
    let error = Tensor::from_slice(&[2], &[1f32]).unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
    assert!(format!("{error:#?}").contains("kind: InvalidArgument"), "{error:#?}");
}

#[test]
fn wrong_feeds() {
    let _world = world();
    let (graph, x, y, _) = world_graph();
    let session = Session::connect("local", &graph).unwrap();
    let twin = Twin::of(&graph, "local", &sys::dtg_session_options::INIT).unwrap();

    let (dtype, shape) = (Tensor::zeros(DType::I32, &[2]).unwrap(), Tensor::zeros(DType::F32, &[3]).unwrap());
    same(
        session.run().feed(x, &dtype).fetch(y).call(),
        ErrorKind::InvalidArgument,
        twin.run(Some(("x", Raw::zeros(DType::I32, &[2]).0)), "y", LONG),
    );
    same(
        session.run().feed(x, &shape).fetch(y).call(),
        ErrorKind::InvalidArgument,
        twin.run(Some(("x", Raw::zeros(DType::F32, &[3]).0)), "y", LONG),
    );
    same(session.run().fetch(y).call(), ErrorKind::InvalidArgument, twin.run(None, "y", LONG));
    // Only to be fetched: a resource has no tensor, and what is fetched cannot be fed.
    let queue = graph.find("queue").unwrap();
    let f32s = Tensor::zeros(DType::F32, &[2]).unwrap();
    same(
        session.run().feed(queue, &f32s).fetch(y).call(),
        ErrorKind::InvalidArgument,
        twin.run(Some(("queue", Raw::zeros(DType::F32, &[2]).0)), "y", LONG),
    );
    same(
        session.run().feed(y, &f32s).fetch(y).call(),
        ErrorKind::InvalidArgument,
        twin.run(Some(("y", Raw::zeros(DType::F32, &[2]).0)), "y", LONG),
    );
}

#[test]
fn wrong_nodes() {
    let _world = world();
    let (graph, ..) = world_graph();
    let twin = Twin::of(&graph, "local", &sys::dtg_session_options::INIT).unwrap();
    let add = |op: &str, inputs: &[sys::dtg_value]| {
        let spec = sys::dtg_op_spec {
            r#type: op.as_ptr().cast(),
            type_len: op.len(),
            inputs: inputs.as_ptr(),
            num_inputs: inputs.len(),
            ..sys::dtg_op_spec::INIT
        };
        // SAFETY: an open graph, a spec that outlives the call, no outputs asked for.
        unsafe { sys::dtg_graph_add_op(twin.graph, &spec, null_mut(), 0) }
    };
    same(graph.find("nowhere"), ErrorKind::NotFound, {
        let mut out = sys::dtg_value { id: 0 };
        // SAFETY: an open graph, a text with its length.
        unsafe { sys::dtg_graph_find(twin.graph, "nowhere".as_ptr().cast(), 7, &mut out) }
    });
    // Errors of a node tell its place in the program, which C was not told here.
    let ours = graph.node("Sqare").build().unwrap_err();
    let theirs = of_c(add("Sqare", &[]));
    assert_eq!((ours.kind(), theirs.0), (ErrorKind::NotFound, 5));
    assert!(ours.message().contains("misuse.rs:") && ours.message().ends_with("did you mean \"Square\"?"), "{ours}");
    let x = graph.find("x").unwrap();
    let ours = graph.node("Square").inputs(&[x, x]).build().unwrap_err();
    let theirs = of_c(add("Square", &[twin.value("x"), twin.value("x")]));
    assert_eq!((ours.kind(), theirs.0), (ErrorKind::InvalidArgument, 3));
    assert!(ours.message().contains("misuse.rs:"), "{ours}");
}

#[test]
fn closed_sessions() {
    let _world = world();
    let (graph, x, y, _) = world_graph();
    let session = Session::connect("local", &graph).unwrap();
    let call = session.prepare(&[x], &[y], &[]).unwrap();
    let twin = Twin::of(&graph, "local", &sys::dtg_session_options::INIT).unwrap();
    session.close(LONG).unwrap();
    session.close(None).unwrap();
    // SAFETY: an open session.
    assert!(unsafe { sys::dtg_session_close(twin.session, 1_000_000_000) }.is_null());
    let tensor = Tensor::zeros(DType::F32, &[2]).unwrap();
    let theirs = || twin.run(Some(("x", Raw::zeros(DType::F32, &[2]).0)), "y", LONG);
    same(session.run().feed(x, &tensor).fetch(y).call(), ErrorKind::FailedPrecondition, theirs());
    same(call.run(&[&tensor]), ErrorKind::FailedPrecondition, theirs());
}

#[test]
fn deadlines_and_cancels() {
    let _world = world();
    let (graph, .., element) = world_graph();
    let session = Session::connect("local", &graph).unwrap();
    let twin = Twin::of(&graph, "local", &sys::dtg_session_options::INIT).unwrap();
    let short = Duration::from_millis(10);
    same(session.run().fetch(element).timeout(short).call(), ErrorKind::DeadlineExceeded, twin.run(None, "take", short));

    let run = session.run().fetch(element).start().unwrap();
    run.cancel();
    let fetch = twin.value("take");
    let args = sys::dtg_run_args { fetches: &fetch, num_fetches: 1, ..sys::dtg_run_args::INIT };
    let (mut cq, mut other, mut count) = (null_mut(), null_mut(), 0);
    let mut event = sys::dtg_completion { tag: 0, error: null_mut() };
    // SAFETY: open handles and places for what comes out.
    unsafe {
        assert!(sys::dtg_cq_create(&mut cq).is_null());
        assert!(sys::dtg_session_run_async(twin.session, &args, cq, 7, &mut other).is_null());
        sys::dtg_run_cancel(other);
        assert!(sys::dtg_cq_next(cq, &mut event, 0, 1, sys::DTG_INFINITE, &mut count).is_null());
        sys::dtg_run_release(other);
        sys::dtg_cq_release(cq);
    }
    same(run.wait(), ErrorKind::Cancelled, event.error);
}

#[test]
fn nobody_listens() {
    let _world = world();
    let (graph, ..) = world_graph();
    let folder = common::Folder::new("nobody");
    let target = format!("unix:{}", folder.file("socket"));
    let options = sys::dtg_session_options { connect_timeout_ns: 50_000_000, ..sys::dtg_session_options::INIT };
    let ours = SessionOptions::new().connect_timeout(Duration::from_millis(50)).connect(&target, &graph);
    let kind = ours.as_ref().err().map(Error::kind).unwrap();
    assert!(matches!(kind, ErrorKind::Unavailable | ErrorKind::DeadlineExceeded), "{ours:?}");
    same(ours, kind, Twin::of(&graph, &target, &options).err().unwrap());
    same(
        Session::connect("nonsense:", &graph),
        ErrorKind::InvalidArgument,
        Twin::of(&graph, "nonsense:", &sys::dtg_session_options::INIT).err().unwrap(),
    );
}

/// The twin's graph lives on the task that stops, too.
#[test]
fn a_server_that_stops_under_a_session() {
    let _world = world();
    let folder = common::Folder::new("stops");
    let cluster = Cluster::parse(&format!("ps=unix:{};worker=unix:{}", folder.file("ps"), folder.file("worker"))).unwrap();
    let [ps, worker] = ["ps", "worker"].map(|job| ServerOptions::new().task(job, 0).start(&cluster).unwrap());
    let graph = Graph::new().unwrap();
    let x = graph.placeholder("x", DType::F32, Some(&[2])).unwrap();
    let y = ops::square(&graph, x).name("y").device("/job:ps/task:0").build().unwrap();
    let session = Session::connect(worker.target(), &graph).unwrap();
    let twin = Twin::of(&graph, worker.target(), &sys::dtg_session_options::INIT).unwrap();
    let tensor = Tensor::zeros(DType::F32, &[2]).unwrap();
    session.run().feed(x, &tensor).fetch(y).call().unwrap();
    assert!(twin.run(Some(("x", Raw::zeros(DType::F32, &[2]).0)), "y", LONG).is_null());
    ps.stop(LONG).unwrap();
    ps.stop(LONG).unwrap();
    ps.join(Some(Duration::ZERO)).unwrap();
    // A peer that is gone may come back: it is looked for during a part of the deadline.
    let short = Duration::from_millis(300);
    // Whoever asks first may hear of the stop itself.
    let gone = refused(session.run().feed(x, &tensor).fetch(y).timeout(short).call(), ErrorKind::Unavailable, "ps");
    assert!(gone.peer().is_some_and(|peer| peer.contains("/job:ps")), "{gone:#?}");
    let ours = session.run().feed(x, &tensor).fetch(y).timeout(short).call();
    same(ours, ErrorKind::Unavailable, twin.run(Some(("x", Raw::zeros(DType::F32, &[2]).0)), "y", short));
    refused(worker.join(Some(Duration::ZERO)), ErrorKind::DeadlineExceeded, "");
}

#[test]
fn tensors_and_clusters() {
    let _world = world();
    let mut out = null_mut();
    let (dims, data) = ([1i64; 9], [1.0f32]);
    // SAFETY: arrays with their lengths, a place for the handle.
    let theirs = unsafe {
        sys::dtg_tensor_create(sys::DTG_F32, dims.as_ptr(), 9, data.as_ptr().cast_mut().cast(), 4, None, null_mut(), &mut out)
    };
    same(Tensor::from_slice(&[1; 9], &data), ErrorKind::InvalidArgument, theirs);
    let mut cluster = null_mut();
    // SAFETY: a text with its length, a place for the handle.
    same(Cluster::parse("{ps"), ErrorKind::InvalidArgument, unsafe {
        sys::dtg_cluster_parse("{ps".as_ptr().cast(), 3, &mut cluster)
    });
    let mut weights = null_mut();
    // SAFETY: a text with its length, a place for the handle.
    let theirs = unsafe { sys::dtg_weights_load(null_mut(), "/no/such".as_ptr().cast(), 8, &mut weights) };
    same(dtg::Weights::load("/no/such"), ErrorKind::NotFound, theirs);
}
