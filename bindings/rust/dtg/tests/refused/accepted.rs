//! error none: the harness itself accepts what is right.
pub fn f() -> dtg::Result<()> {
    let graph = dtg::Graph::new()?;
    let value = graph.scalar(1.0f32)?;
    graph.name(value)?;
    Ok(())
}
