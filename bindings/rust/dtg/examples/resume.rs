//! Training that can be stopped at any time: capi/examples/resume.c in Rust. `resume DIGITS DIR STEPS`. One thread.
use dtg::*;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let steps: i64 = arguments[3].parse().expect("a number of steps");
    let data = Dataset::csv(&arguments[1], &Csv { label: Some("c64"), ..Default::default() })?.scale(0, 16.0)?;
    let data = data.shuffle(0, 1)?.repeat(-1)?.batch(64, true)?;
    let model = Model::new(Graph::new()?, 1)?;
    let x = model.placeholder("x", DType::F32, Some(&[-1, 64]))?;
    let y = model.placeholder("y", DType::I64, Some(&[-1]))?;
    let hidden = model.dense(x, &Dense { units: 32, activation: Activation::Relu, ..Default::default() })?;
    let logits = model.dense(hidden, &Dense { units: 10, ..Default::default() })?;
    let loss = model.sparse_softmax_cross_entropy(y, logits)?;
    let training = model.minimize(loss, &Optimizer::adam(0.002))?;
    let session = Session::connect("local", &model)?;
    let options = CheckpointOptions { every_steps: 50, ..Default::default() };
    let mut sets = Checkpoint::open(&model, &session, &arguments[2], &options)?;
    sets.add_data("train", data)?;
    let (mut step, mut last) = (sets.resume(&model)?.step, 0.0);
    println!("from step {step}");
    while step < steps {
        let Some(batch) = sets.data("train")?.next_element()? else { break };
        let out = session.run().feed(x, &batch[0]).feed(y, &batch[1]).fetch(loss).target(training.train).call()?;
        last = out.scalar::<f32>(0)?;
        step += 1;
        sets.reached(&model, step)?;
    }
    sets.save(&model, step, None)?;
    println!("step {step}: loss {last:.6}");
    Ok(())
}
