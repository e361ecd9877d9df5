//! Trainers: fits that are pulled and that call closures, what they keep and go on from, evaluation, prediction, single steps, and what is
//! refused. One test at a time.

mod common;

use std::path::Path;

use common::{Folder, refused, world};
use dtg::{
    Activation, Better, Cancellation, DType, Dataset, Dense, EarlyStopping, ErrorKind, Fit, FitEvent, FitEventKind, Graph, Metric,
    MetricKind, Model, Optimizer, Plateau, RestoreOptions, Result, Session, Tensor, Trainer, TrainerOptions, Value,
};

const ROWS: usize = 10;

/// Rows of three numbers, and whether the last is greater than the one before.
fn rows(seed: u64) -> (Vec<f32>, Vec<i64>) {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / 16_777_216.0 - 0.5
    };
    let x: Vec<f32> = (0..ROWS * 3).map(|_| next()).collect();
    let y = x.chunks(3).map(|row| i64::from(row[2] > row[1])).collect();
    (x, y)
}

fn tensors(seed: u64) -> [Tensor; 2] {
    let (x, y) = rows(seed);
    [Tensor::from_slice(&[ROWS, 3], &x).unwrap(), Tensor::from_slice(&[ROWS], &y).unwrap()]
}

/// Three batches of them, the last one shorter; to train on in another order each epoch.
fn data() -> Dataset {
    let [x, y] = tensors(1);
    Dataset::tensors(&[&x, &y]).unwrap().shuffle(0, 5).unwrap().batch(4, false).unwrap()
}

/// The same in one order.
fn held_out() -> Dataset {
    let [x, y] = tensors(2);
    Dataset::tensors(&[&x, &y]).unwrap().batch(4, false).unwrap()
}

/// A small net that is to be trained, with its feeds and what a trainer is asked for.
struct Net {
    model: Model,
    feeds: [Value; 2],
    logits: Value,
    loss: Value,
    accuracy: dtg::MetricValues,
}

fn net() -> Net {
    let model = Model::new(Graph::new().unwrap(), 3).unwrap();
    let x = model.placeholder("x", DType::F32, Some(&[-1, 3])).unwrap();
    let y = model.placeholder("y", DType::I64, Some(&[-1])).unwrap();
    let hidden = model.dense(x, &Dense { units: 6, activation: Activation::Relu, ..Default::default() }).unwrap();
    let logits = model.dense(hidden, &Dense { units: 2, ..Default::default() }).unwrap();
    let loss = model.sparse_softmax_cross_entropy(y, logits).unwrap();
    let metric = Metric { kind: MetricKind::SparseCategoricalAccuracy, ..Default::default() };
    let accuracy = model.metric(Some(y), logits, &metric).unwrap();
    Net { model, feeds: [x, y], logits, loss, accuracy }
}

fn trainer() -> Trainer {
    let Net { model, feeds, logits, loss, accuracy } = net();
    let what = TrainerOptions {
        optimizer: Optimizer::adam(0.05),
        outputs: &[logits],
        metrics: &[("accuracy", accuracy)],
        ..TrainerOptions::new(&feeds, loss)
    };
    Trainer::new(model, &what).unwrap()
}

/// The bits of every variable but what the metric counts, as an evaluation may have come last.
fn bits(trainer: &Trainer) -> Vec<(String, Vec<u8>)> {
    let session = trainer.session().unwrap();
    let variables = trainer.model().variables().unwrap().into_iter().filter(|variable| !variable.name.contains("accuracy"));
    variables
        .map(|variable| {
            let out = session.run().fetch(variable.read).call().unwrap();
            (variable.name, out.tensor(0).unwrap().as_bytes().to_vec())
        })
        .collect()
}

/// The files of a fit.
fn in_folder(folder: &Folder, epochs: i64) -> Fit<'_> {
    Fit { epochs, directory: Some(Path::new(folder.path())), ..Default::default() }
}

fn nothing(_: &Trainer, _: &FitEvent) -> Result<()> {
    Ok(())
}

#[test]
fn a_fit_tells_what_it_does_and_is_the_loop_by_hand() {
    let _world = world();
    let mut trainer = trainer();
    let (mut train, mut test) = (data(), held_out());
    let mut events = Vec::new();
    let how = Fit { epochs: 2, plateau: Some(Plateau { patience: 5, ..Default::default() }), ..Default::default() };
    trainer
        .fit(&mut train, Some(&mut test), &how, |trainer, event| {
            if event.kind == FitEventKind::EpochEnd {
                // What the trainer is asked for between two events changes nothing of the one that was told.
                let seen = trainer.evaluate(&mut held_out(), 0)?;
                assert_eq!(seen.get("loss"), event.values.get("val_loss"));
                assert_eq!(seen.get("accuracy"), event.values.get("val_accuracy"));
                assert_eq!(event.learning_rate, Some(f64::from(0.05f32)));
            }
            events.push(event.clone());
            Ok(())
        })
        .unwrap();
    use FitEventKind::{Begin, Done, EpochBegin, EpochEnd, Step, Validation};
    let epoch = [EpochBegin, Step, Step, Step, Validation, EpochEnd];
    let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [&[Begin][..], &epoch, &epoch, &[Done]].concat());
    let end = &events[12];
    assert_eq!((end.epoch, end.batch, end.batches, end.step, end.examples), (2, 3, Some(3), 6, 10));
    let names: Vec<_> = end.values.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["loss", "accuracy", "val_loss", "val_accuracy", "learning_rate"]);
    assert_eq!((end.values.len(), end.values.get("nothing"), events[2].values.get("loss")), (5, None, Some(events[2].loss)));
    let loss = end.values.get("loss").unwrap();
    assert!(format!("{:.3}", end.values).starts_with(&format!("loss {loss:.3} accuracy ")));
    assert!(trainer.summary().unwrap().contains("\"outcome\":\"done\""), "{}", trainer.summary().unwrap());

    // The same steps one by one.
    let by_hand = self::trainer();
    let mut train = data();
    for (epoch, at) in [(1, 2), (2, 8)] {
        for (i, batch) in train.by_ref().enumerate() {
            let batch = batch.unwrap();
            let loss = by_hand.train_step(&[&batch[0], &batch[1]]).unwrap();
            assert_eq!(loss, events[at + i].loss, "epoch {epoch}, step {i}");
        }
    }
    assert_eq!(bits(&by_hand), bits(&trainer));
}

#[test]
fn a_fit_that_was_left_goes_on_to_the_same_bits() {
    let _world = world();
    let (straight, broken) = (Folder::new("straight"), Folder::new("broken"));
    let mut whole = trainer();
    whole.fit(&mut data(), Some(&mut held_out()), &in_folder(&straight, 3), nothing).unwrap();
    {
        let mut first = trainer();
        let (mut train, mut test) = (data(), held_out());
        let how = Fit { checkpoint_steps: 5, checkpoint_epochs: 100, ..in_folder(&broken, 3) };
        let mut fit = first.begin(&mut train, Some(&mut test), &how).unwrap();
        while fit.next_event().unwrap().is_some_and(|event| event.kind != FitEventKind::Checkpoint) {}
        // In the middle of the second epoch: it may predict, and no more.
        assert_eq!(fit.predict(&mut held_out()).unwrap().tensor(0).unwrap().dims(), [ROWS, 2]);
        refused(fit.evaluate(&mut held_out(), 0), ErrorKind::FailedPrecondition, "epoch");
        drop(fit);
        // Data and directory are free at once.
        first.evaluate(&mut test, 0).unwrap();
        train.restart().unwrap();
    }
    let mut second = trainer();
    let mut began = String::new();
    let mut begin = |_: &Trainer, event: &FitEvent| {
        if event.kind == FitEventKind::Begin {
            began = format!("{} at {}", event.text, event.step);
        }
        Ok(())
    };
    second.fit(&mut data(), Some(&mut held_out()), &in_folder(&broken, 3), &mut begin).unwrap();
    assert!(began.ends_with("at 5"), "{began}");
    assert_eq!(bits(&second), bits(&whole));
    for name in ["metrics.csv", "metrics.jsonl", "model.safetensors"] {
        let read = |folder: &Folder| std::fs::read(folder.file(name)).unwrap();
        assert!(read(&straight) == read(&broken), "{name} differs");
    }
    let (model, session) = Model::load(broken.file("model.dtg")).unwrap();
    let answers = second.predict(&mut held_out()).unwrap();
    let (x, y) = (model.endpoint("x").unwrap(), model.endpoint("output").unwrap());
    let [rows, _] = tensors(2);
    let wanted = answers.slice::<f32>(0).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let found = session.run().feed(x, &rows).fetch(y).call().unwrap();
                    let found = found.slice::<f32>(0).unwrap();
                    // Of one batch and of three.
                    assert!(found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-5));
                }
            });
        }
    });
    assert!(std::path::Path::new(&broken.file("tensorboard/train")).exists());
    second.export(broken.file("again.dtg")).unwrap();
    assert!(std::fs::read(broken.file("again.dtg")).unwrap() == std::fs::read(broken.file("model.dtg")).unwrap());
    let fresh = Fit { fresh: true, ..in_folder(&broken, 3) };
    refused(second.fit(&mut data(), None, &fresh, nothing), ErrorKind::AlreadyExists, "");
}

#[test]
fn rules_and_stops_end_it_in_good_order() {
    let _world = world();
    let mut trainer = trainer();
    // No loss is below a baseline of -1, so patience runs out.
    let stopping =
        EarlyStopping { monitor: Some("val_loss"), baseline: Some(-1.0), patience: 2, restore_best: true, ..Default::default() };
    let mut told = Vec::new();
    let how = Fit { epochs: 50, early_stopping: Some(stopping), ..Default::default() };
    trainer
        .fit(&mut data(), Some(&mut held_out()), &how, |_, event| {
            if event.kind == FitEventKind::Stopped {
                told.push(event.text.clone());
            }
            Ok(())
        })
        .unwrap();
    assert!(told.len() == 1 && told[0].contains("val_loss"), "{told:?}");
    assert!(trainer.summary().unwrap().contains("\"outcome\":\"stopped\""));

    // Another thread; it is waited for, so that the step is known.
    let stopper = trainer.stopper();
    let mut steps = 0;
    trainer
        .fit(&mut data(), None, &Fit { epochs: 50, ..Default::default() }, |_, event| {
            if event.kind == FitEventKind::Step {
                steps += 1;
                let stopper = stopper.clone();
                std::thread::spawn(move || stopper.stop()).join().unwrap();
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(steps, 1);
    drop(trainer);
    stopper.stop(); // nobody is there

    let mut trainer = self::trainer();
    let limited = Fit { epochs: 50, time_limit: Some(std::time::Duration::ZERO), ..Default::default() };
    trainer
        .fit(&mut data(), None, &limited, |_, event| {
            assert_ne!(event.kind, FitEventKind::Step);
            Ok(())
        })
        .unwrap();

    let cancellation = Cancellation::new().unwrap();
    let how = Fit { epochs: 50, cancellation: Some(&cancellation), ..Default::default() };
    let cancelled = trainer.fit(&mut data(), None, &how, |_, event| {
        if event.step == 2 {
            cancellation.cancel();
        }
        Ok(())
    });
    refused(cancelled, ErrorKind::Cancelled, "");
    trainer.set_cancellation(Some(&cancellation));
    refused(trainer.predict(&mut data()), ErrorKind::Cancelled, "");
    trainer.set_cancellation(None);
    trainer.predict(&mut data()).unwrap();
}

/// A panic of the closure goes through; the fit is given up, and its data and directory are free.
#[test]
fn a_closure_that_panics_ends_the_fit() {
    let _world = world();
    let folder = Folder::new("thrown");
    let (mut trainer, mut data) = (trainer(), data());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        trainer.fit(&mut data, None, &in_folder(&folder, 2), |_, event| {
            assert!(event.step < 4, "the program's own");
            Ok(())
        })
    }));
    assert!(panicked.is_err());
    assert!(trainer.summary().unwrap().contains("given up"));
    trainer.evaluate(&mut data, 0).unwrap();
    let mut again = self::trainer();
    again.fit(&mut self::data(), None, &in_folder(&folder, 2), nothing).unwrap();
    assert!(again.summary().unwrap().contains("\"resumed\":true"));
}

#[test]
fn a_plateau_lowers_the_rate_and_the_best_weights_are_kept() {
    let _world = world();
    let folder = Folder::new("best");
    // By so much nothing gets better after the first epoch.
    let plateau = Plateau { patience: 1, factor: 0.5, min_delta: 1e9, ..Default::default() };
    let how = Fit { best: Some("val_loss"), best_better: Better::Less, plateau: Some(plateau), ..in_folder(&folder, 3) };
    let (mut rates, mut least) = (Vec::new(), Vec::new());
    let mut trainer = trainer();
    trainer
        .fit(&mut data(), Some(&mut held_out()), &how, |_, event| {
            match event.kind {
                FitEventKind::Rate => rates.push((event.epoch, event.learning_rate.unwrap())),
                FitEventKind::EpochEnd => least.push(event.values.get("val_loss").unwrap()),
                _ => {}
            }
            Ok(())
        })
        .unwrap();
    let rate = f64::from(0.05f32);
    assert_eq!(rates.len(), 2, "{rates:?}");
    for ((epoch, told), (when, what)) in rates.into_iter().zip([(2, rate / 2.0), (3, rate / 4.0)]) {
        assert!(epoch == when && (told - what).abs() < 1e-8, "epoch {epoch}: {told}");
    }
    let restored = self::trainer();
    restored.evaluate(&mut held_out(), 0).unwrap(); // gives what the file does not hold its first values
    let session = restored.session().unwrap();
    restored
        .model()
        .restore_from(&session, folder.file("best.safetensors"), &RestoreOptions { partial: true, ..Default::default() })
        .unwrap();
    let best = least.into_iter().fold(f64::INFINITY, f64::min);
    assert_eq!(restored.evaluate(&mut held_out(), 0).unwrap().get("loss"), Some(best));
}

#[test]
fn evaluate_and_predict_are_runs_by_hand() {
    let _world = world();
    let Net { model, feeds, logits, loss, accuracy } = net();
    let session = Session::connect("local", &model).unwrap();
    session.run_target(model.init().unwrap()).unwrap();
    let what = TrainerOptions {
        session: Some(&session),
        outputs: &[logits],
        metrics: &[("accuracy", accuracy)],
        ..TrainerOptions::new(&feeds, loss)
    };
    let trainer = Trainer::new(model, &what).unwrap();
    let [x, y] = tensors(2);
    let plain = |components: &[&Tensor]| Dataset::tensors(components).unwrap().batch(4, false).unwrap();
    let out = session.run().feed(feeds[0], &x).feed(feeds[1], &y).fetch(logits).fetch(loss).call().unwrap();
    let by_hand = out.slice::<f32>(0).unwrap();
    for mut seen in [plain(&[&x, &y]), plain(&[&x])] {
        let found = trainer.predict(&mut seen).unwrap();
        assert_eq!((found.len(), found.tensor(0).unwrap().dims()), (1, vec![ROWS, 2]));
        assert!(found.slice::<f32>(0).unwrap().iter().zip(by_hand).all(|(a, b)| (a - b).abs() < 1e-6));
        assert_eq!(seen.by_ref().count(), 3, "who loops afterwards begins anew");
    }
    let scores = trainer.evaluate(&mut plain(&[&x, &y]), 0).unwrap();
    let right = by_hand.chunks(2).zip(y.as_slice::<i64>().unwrap()).filter(|(row, label)| i64::from(row[1] > row[0]) == **label);
    assert!((scores.get("accuracy").unwrap() - right.count() as f64 / ROWS as f64).abs() < 1e-6);
    assert!((scores.get("loss").unwrap() - f64::from(out.scalar::<f32>(1).unwrap())).abs() < 1e-6);
    assert_eq!(trainer.evaluate(&mut plain(&[&x, &y]), 1).unwrap().len(), 2);
    let model = trainer.into_model();
    assert!(model.find_variable("dense/kernel").is_ok());
}

#[test]
fn what_is_refused() {
    let _world = world();
    let [x, y] = tensors(1);
    let mut trainer = trainer();
    let nowhere = Fit { directory: Some(Path::new("")), ..Default::default() };
    refused(trainer.fit(&mut data(), None, &nowhere, nothing), ErrorKind::InvalidArgument, "Fit: directory is empty");
    let cut = EarlyStopping { monitor: Some("loss\0x"), ..Default::default() };
    let watching = Fit { early_stopping: Some(cut), ..Default::default() };
    refused(trainer.fit(&mut data(), None, &watching, nothing), ErrorKind::InvalidArgument, "monitor is \"loss\\0x\"");
    refused(trainer.summary(), ErrorKind::FailedPrecondition, "begun");
    refused(trainer.train_step(&[&x]), ErrorKind::InvalidArgument, "1 tensors for 2 feeds");
    refused(trainer.train_step(&[&y, &x]), ErrorKind::InvalidArgument, "");
    let mut swapped = Dataset::tensors(&[&y, &x]).unwrap().batch(4, false).unwrap();
    refused(trainer.fit(&mut swapped, None, &Fit::default(), nothing), ErrorKind::InvalidArgument, "");
    refused(trainer.evaluate(&mut Dataset::range(0, 3, 1).unwrap(), 0), ErrorKind::InvalidArgument, "");
    refused(trainer.evaluate(&mut data(), -1), ErrorKind::InvalidArgument, "-1");
    let watch = |monitor| Some(EarlyStopping { monitor, ..Default::default() });
    let how = |early_stopping| Fit { early_stopping, ..Default::default() };
    refused(trainer.fit(&mut data(), None, &how(watch(Some("val_loss"))), nothing), ErrorKind::InvalidArgument, "val_loss");
    let negative = how(Some(EarlyStopping { patience: -1, ..Default::default() }));
    refused(trainer.fit(&mut data(), None, &negative, nothing), ErrorKind::InvalidArgument, "EarlyStopping: ");
    let homeless = Fit { best: Some("loss"), ..Default::default() };
    refused(trainer.fit(&mut data(), None, &homeless, nothing), ErrorKind::InvalidArgument, "Fit: ");
    let steep = Fit { plateau: Some(Plateau { factor: 2.0, ..Default::default() }), ..Default::default() };
    refused(trainer.fit(&mut data(), None, &steep, nothing), ErrorKind::InvalidArgument, "Plateau: ");
    // What a closure answers comes out.
    let own = trainer.fit(&mut data(), None, &Fit::default(), |trainer, event| match event.kind {
        FitEventKind::Step => trainer.train_step(&[]).map(drop),
        _ => Ok(()),
    });
    refused(own, ErrorKind::FailedPrecondition, "epoch");
    trainer.fit(&mut data(), None, &Fit::default(), nothing).unwrap();
    trainer.evaluate(&mut data(), 0).unwrap();

    let Net { model, feeds, loss, accuracy, .. } = net();
    let twice = [("accuracy", accuracy), ("accuracy", accuracy)];
    let refusal = Trainer::new(model, &TrainerOptions { metrics: &twice, ..TrainerOptions::new(&feeds, loss) });
    refused(refusal, ErrorKind::AlreadyExists, "accuracy");
    refused(Trainer::new(net().model, &TrainerOptions::new(&feeds, loss)), ErrorKind::InvalidArgument, "");
    let Net { model, feeds, loss, .. } = net();
    let mute = Trainer::new(model, &TrainerOptions::new(&feeds, loss)).unwrap();
    refused(mute.predict(&mut data()), ErrorKind::FailedPrecondition, "output");
}
