//! What one types in the first hour: data in two parts, a model, training, a test, and the trained model served from one file.
//! FIRST_HOUR.md goes through it; capi/examples/first_hour.c in Rust. One thread.
use dtg::*;

fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or("tests/data/digits.csv.gz".into());
    let file = std::env::args().nth(2).unwrap_or("digits.dtg".into());

    // Data: one file in two parts. What is fitted is fitted on the training part.
    let mut data = Dataset::csv(&path, &Csv { label: Some("c64"), ..Default::default() })?; // the last column; all others are the features
    let (mut train, test) = data.split(&Split { fraction: 0.2, seed: 1, classes: Some(1), ..Default::default() })?;
    let numbers = train.fit_normalization(0, NormalizationKind::Standard)?;
    let mut train = train.shuffle(0, 1)?.batch(32, true)?;
    let mut test = test.batch(1000, false)?;

    // A model: what is fed, layers, a loss, an optimizer.
    let model = Model::new(Graph::new()?, 1)?;
    let x = model.placeholder("x", DType::F32, Some(&[-1, 64]))?;
    let y = model.placeholder("y", DType::I64, Some(&[-1]))?;
    let normal = model.normalize(x, &numbers)?;
    let hidden = model.dense(normal, &Dense { units: 32, activation: Activation::Relu, ..Default::default() })?;
    let logits = model.dense(hidden, &Dense { units: 10, ..Default::default() })?;
    let loss = model.sparse_softmax_cross_entropy(y, logits)?;
    let accuracy = model.accuracy(y, logits)?;
    let training = model.minimize(loss, &Optimizer { kind: OptimizerKind::AdamW, rate: 0.003, ..Default::default() })?;
    let init = model.init()?;

    // Training: one run per step.
    let session = Session::connect("local", &model)?;
    session.run_target(init)?;
    for epoch in 1..=5 {
        let mut now = 0.0;
        for batch in train.by_ref() {
            let batch = batch?;
            let out = session.run().feed(x, &batch[0]).feed(y, &batch[1]).fetch(loss).target(training.train).call()?;
            now = out.scalar::<f32>(0)?;
        }
        println!("epoch {epoch}: loss {now:.4}");
    }

    // A test with what it has never seen.
    let Some(seen) = test.next_element()? else { return Ok(()) };
    let right = session.run().feed(x, &seen[0]).feed(y, &seen[1]).fetch(accuracy).call()?;
    println!("right: {:.4}", right.scalar::<f32>(0)?);

    // The trained model as one file, served without what built it.
    let axis = model.scalar(1i32)?;
    let digit = ops::arg_max(&model, logits, axis).build()?;
    model.export(&session, &file, &Export { inputs: &[("pixels", x)], outputs: &[("digit", digit)], freeze: false })?;
    let (served, server) = Model::load(&file)?;
    let found = server.run().feed(served.endpoint("pixels")?, &seen[0]).fetch(served.endpoint("digit")?).call()?;
    for (label, digit) in seen[1].as_slice::<i64>()?.iter().zip(found.slice::<i64>(0)?).take(5) {
        println!("a {label}, taken for a {digit}");
    }
    Ok(())
}
