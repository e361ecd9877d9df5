//! error E0499. A data set whose place a checkpoint keeps is read through the checkpoint, and not while that restores.
pub fn f(sets: &mut dtg::Checkpoint, model: &dtg::Model) -> dtg::Result<()> {
    let data = sets.data("train")?;
    sets.restore(model, "")?;
    data.next_element().map(drop)
}
