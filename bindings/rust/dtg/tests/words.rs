//! No word of C reaches a Rust program: what the crate is given as little as can be, or nonsense, is told in Rust's words. And memory of
//! dropped tensors goes back to the system.

mod common;

use std::time::Duration;

use common::world;
use dtg::*;

/// Words of C outside of quotes, where a text of the program's own may stand.
fn word_of_c(message: &str) -> Option<&str> {
    let is_of_c = |word: &&str| {
        let is_name = |prefix: &str| word.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty());
        *word == "NULL" || is_name("dtg_") || is_name("DTG_") || word.ends_with("_ns") || *word == "struct_size"
    };
    let outside = message.split('"').step_by(2);
    outside.flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_')).find(is_of_c)
}

struct Said(usize);

impl Said {
    #[track_caller]
    fn says<T>(&mut self, result: Result<T>) {
        if let Err(error) = result {
            self.0 += 1;
            assert_eq!(word_of_c(error.message()), None, "{error}");
        }
    }
}

fn on_graphs(said: &mut Said) -> Result<()> {
    let (graph, other) = (Graph::new()?, Graph::new()?);
    let (x, foreign) = (graph.scalar(1.0f32)?, other.scalar(1.0f32)?);
    for name in ["", "/", "a b", "x:9"] {
        said.says(graph.find(name));
        said.says(graph.node(name).build());
        said.says(graph.placeholder(name, DType::F32, Some(&[-2])));
        said.says(graph.import(name.as_bytes()));
    }
    said.says(ops::mat_mul(&graph, x, foreign).build());
    said.says(ops::cast(&graph, foreign, DType::F32).build());
    said.says(graph.add_gradients(&[], &[], None));
    said.says(graph.add_gradients(&[x], &[foreign], None));
    Ok(())
}

fn on_models(said: &mut Said) -> Result<()> {
    let model = Model::new(Graph::new()?, 1)?;
    let x = model.placeholder("x", DType::F32, Some(&[-1, 4]))?;
    let y = model.placeholder("y", DType::I64, Some(&[-1]))?;
    said.says(model.dense(x, &Dense::default()));
    said.says(model.conv2d(x, &Conv2D::default()));
    said.says(model.max_pool2d(x, &Pool2D::default()));
    said.says(model.embedding(x, &Embedding::default()));
    said.says(model.recurrent(x, &Recurrent::default()));
    said.says(model.attention(x, x, &Attention::default()));
    said.says(model.batch_norm(y, &BatchNorm::default()));
    said.says(model.dropout(x, 2.0, x, None));
    said.says(model.flatten(y));
    said.says(model.sparse_softmax_cross_entropy(x, y));
    said.says(model.accuracy(x, y));
    said.says(model.minimize(x, &Optimizer { rate: f64::NAN, ..Default::default() }));
    said.says(model.find_variable(""));
    said.says(model.endpoint(""));
    said.says(Model::load(""));
    said.says(Model::load("/nowhere/at all"));
    let session = Session::connect("local", &model)?;
    said.says(model.save(&session, ""));
    said.says(model.save(&session, "/nowhere/at all"));
    said.says(model.restore(&session, ""));
    said.says(model.export(&session, "", &Export::default()));
    said.says(session.prepare(&[], &[], &[]));
    said.says(session.run().call());
    said.says(session.run().fetch(x).call());
    said.says(session.run().fetch(x).start().and_then(|run| run.wait()));
    said.says(session.run().fetch(x).timeout(Duration::ZERO).call());
    said.says(session.run_repeatedly(&[]));
    said.says(session.barrier("", Duration::ZERO));
    on_trainers(said)?;
    session.close(Duration::from_secs(1))?;
    said.says(session.run().fetch(x).call());
    Ok(())
}

fn on_trainers(said: &mut Said) -> Result<()> {
    let model = Model::new(Graph::new()?, 1)?;
    let x = model.placeholder("x", DType::F32, Some(&[-1, 2]))?;
    let y = model.dense(x, &Dense { units: 2, ..Default::default() })?;
    let (loss, other) = (model.mean_squared_error(x, y)?, Model::new(Graph::new()?, 1)?);
    said.says(Trainer::new(other, &TrainerOptions::new(&[x], loss)));
    let mut trainer = Trainer::new(model, &TrainerOptions::new(&[x], loss))?;
    let [mut data, mut rows] =
        [Dataset::range(0, 3, 1)?, Dataset::tensors(&[&Tensor::zeros(DType::F32, &[4, 2])?])?.batch(2, false)?];
    said.says(trainer.summary());
    said.says(trainer.train_step(&[]));
    said.says(trainer.evaluate(&mut data, 0));
    said.says(trainer.evaluate(&mut rows, -1));
    said.says(trainer.predict(&mut rows));
    said.says(trainer.begin(&mut data, None, &Fit::default()));
    let stopping = |rule| Fit { early_stopping: Some(rule), ..Default::default() };
    said.says(trainer.begin(&mut rows, None, &stopping(EarlyStopping { patience: -1, ..Default::default() })));
    said.says(trainer.begin(&mut rows, None, &stopping(EarlyStopping { monitor: Some("?"), ..Default::default() })));
    let plateau = Some(Plateau { factor: 2.0, ..Default::default() });
    for how in [
        Fit { epochs: -1, ..Default::default() },
        Fit { best: Some("loss"), ..Default::default() },
        Fit { directory: Some("".as_ref()), ..Default::default() },
        Fit { plateau, ..Default::default() },
    ] {
        said.says(trainer.begin(&mut rows, None, &how));
    }
    Ok(())
}

fn on_the_rest(said: &mut Said) -> Result<()> {
    let range = || Dataset::range(0, 3, 1);
    said.says(range()?.batch(0, false));
    said.says(range()?.shard(0, 0));
    said.says(range()?.rebatch(0));
    said.says(range()?.scale(9, 0.0));
    said.says(range()?.cast(9, DType::F32));
    said.says(range()?.normalize(0, ""));
    said.says(range()?.normalize(0, "{}"));
    said.says(range()?.fit_normalization(9, NormalizationKind::default()));
    said.says(range()?.split(&Split { fraction: 9.0, ..Default::default() }));
    said.says(range()?.schema());
    said.says(Dataset::csv("", &Csv::default()));
    said.says(Dataset::idx(&[""; 0]));
    said.says(Dataset::tensors(&[]));
    said.says(Weights::load(""));
    said.says(Weights::new()?.save(""));
    said.says(Weights::new()?.get(""));
    said.says(EventWriter::open("", &EventWriterOptions::default()));
    said.says(Cluster::parse(""));
    said.says(Cluster::parse("{\"worker\": [1]}"));
    said.says(Session::connect("nonsense", &Graph::new()?));
    said.says(SessionOptions::new().connect_timeout(Duration::from_millis(10)).connect("unix:/nowhere/at all", &Graph::new()?));
    said.says(Tensor::from_slice(&[3], &[1.0f32]));
    said.says(Tensor::zeros(DType::F32, &[usize::MAX]));
    said.says(Tensor::scalar(1.0f32)?.to_scalar::<i64>());
    Ok(())
}

#[test]
fn no_word_of_c_is_said() -> Result<()> {
    let _world = world();
    let mut said = Said(0);
    on_graphs(&mut said)?;
    on_models(&mut said)?;
    on_the_rest(&mut said)?;
    assert!(said.0 > 50, "{} messages were looked at", said.0);
    Ok(())
}

/// KiB of this process.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn memory_of_dropped_tensors_goes_back() -> Result<()> {
    let _world = world();
    let before = resident();
    for elements in [250_000, 25_000_000] {
        let mut all = Vec::new();
        for _ in 0..50_000_000 / elements {
            let mut tensor = Tensor::zeros(DType::F32, &[elements])?;
            tensor.as_mut_slice::<f32>()?.fill(1.0);
            all.push(tensor);
        }
        let full = resident().saturating_sub(before);
        assert!(full > 150_000, "{full} KiB for 200 MB");
        drop(all);
        let left = resident().saturating_sub(before);
        assert!(left < full / 4, "{left} KiB of {full} are left");
    }
    Ok(())
}
