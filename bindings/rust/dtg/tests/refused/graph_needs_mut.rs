//! error E0596. Adding to a graph takes it mutably.
pub fn f(graph: &dtg::Graph) {
    drop(graph.node("NoOp").build());
}
