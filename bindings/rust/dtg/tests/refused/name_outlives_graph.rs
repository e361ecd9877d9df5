//! error E0505. Names are borrowed from their graph.
pub fn f(graph: dtg::Graph, value: dtg::Value) -> usize {
    let name = graph.name(value).unwrap();
    drop(graph);
    name.len()
}
