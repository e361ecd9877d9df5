//! error E0499. A fit under way has its data.
pub fn f(trainer: &mut dtg::Trainer, data: &mut dtg::Dataset) -> dtg::Result<()> {
    let mut fit = trainer.begin(data, None, &dtg::Fit::default())?;
    data.restart()?;
    fit.next_event()?;
    Ok(())
}
