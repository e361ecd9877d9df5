//! error E0499. One thread at a time adds to a graph.
pub fn f(graph: &mut dtg::Graph) {
    std::thread::scope(|scope| {
        scope.spawn(|| graph.scalar(1.0f32));
        scope.spawn(|| graph.scalar(2.0f32));
    });
}
