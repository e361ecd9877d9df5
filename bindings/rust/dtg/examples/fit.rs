//! A small network learns handwritten digits by Trainer::fit: capi/examples/fit.c in Rust. Killed and started again it goes on where it
//! was. `fit DIGITS [DIRECTORY [EPOCHS]]`: what comes of it is in DIRECTORY. One thread.
use dtg::*;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments.first().map_or("tests/data/digits.csv.gz", String::as_str);
    let epochs = arguments.get(2).map_or(5, |epochs| epochs.parse().expect("a number of epochs"));
    let mut rows = Dataset::csv(path, &Csv { label: Some("c64"), ..Default::default() })?;
    let (train, test) = rows.split(&Split::default())?;
    let mut train = train.scale(0, 16.0)?.shuffle(0, 1)?.batch(32, false)?;
    let mut test = test.scale(0, 16.0)?.batch(100, false)?;
    let model = Model::new(Graph::new()?, 1)?;
    let x = model.placeholder("x", DType::F32, Some(&[-1, 64]))?;
    let y = model.placeholder("y", DType::I64, Some(&[-1]))?;
    let hidden = model.dense(x, &Dense { units: 32, activation: Activation::Relu, ..Default::default() })?;
    let logits = model.dense(hidden, &Dense { units: 10, ..Default::default() })?;
    let loss = model.sparse_softmax_cross_entropy(y, logits)?;
    let metric = Metric { kind: MetricKind::SparseCategoricalAccuracy, ..Default::default() };
    let accuracy = model.metric(Some(y), logits, &metric)?;
    let what = TrainerOptions {
        optimizer: Optimizer::adam(0.003),
        metrics: &[("accuracy", accuracy)],
        ..TrainerOptions::new(&[x, y], loss)
    };
    let mut trainer = Trainer::new(model, &what)?;
    let early_stopping = Some(EarlyStopping { patience: 3, restore_best: true, ..Default::default() });
    let how = Fit { epochs, directory: arguments.get(1).map(|path| path.as_ref()), early_stopping, ..Default::default() };
    trainer.fit(&mut train, Some(&mut test), &how, |_, event| {
        if event.kind == FitEventKind::EpochEnd {
            println!("epoch {}: {:.4}", event.epoch, event.values);
        }
        Ok(())
    })
}
