//! Categories: texts become numbers and rows, a model is served with texts, what is unknown has a number of its own, misuse is told. One
//! test at a time.

mod common;

use common::{Folder, refused, world};
use dtg::{
    DType, Dense, Embedding, ErrorKind, Export, Graph, Hashing, Lookup, Model, Optimizer, OutputMode, Session, Tensor, Value,
};

fn model() -> Model {
    Model::new(Graph::new().unwrap(), 3).unwrap()
}

fn texts(values: &[&str]) -> Tensor {
    Tensor::from_strings(&[values.len()], values).unwrap()
}

#[test]
fn are_served_as_texts() {
    let _world = world();
    let folder = Folder::new("categories");
    let m = model();
    let (vocabulary, mask) = (texts(&["a", "b"]), Tensor::from_strings(&[], &[""]).unwrap());
    let words = m.placeholder("words", DType::STRING, Some(&[-1, 3])).unwrap();
    let lookup = Lookup { vocabulary: Some(&vocabulary), mask_token: Some(&mask), num_oov_indices: 2, ..Default::default() };
    let numbers = m.lookup(words, &lookup).unwrap();
    let rows = m.embedding(numbers, &Embedding { rows: 5, width: 2, ..Default::default() }).unwrap();
    let counts = Lookup { mask_token: None, output_mode: OutputMode::Count, ..lookup };
    let counts = m.lookup(words, &counts).unwrap();
    let flat = m.flatten(rows).unwrap();
    let from_rows = m.dense(flat, &Dense { units: 1, ..Default::default() }).unwrap();
    let from_counts = m.dense(counts, &Dense { units: 1, ..Default::default() }).unwrap();
    let loss = m.mean_squared_error(from_rows, from_counts).unwrap();
    let training = m.minimize(loss, &Optimizer::adam(0.01)).unwrap();
    let init = m.init().unwrap();
    let session = Session::connect("local", &m).unwrap();
    session.run_target(init).unwrap();
    let x = Tensor::from_strings(&[2, 3], &["b", "", "x", "a", "a", "\0ü"]).unwrap();
    session.run().feed(words, &x).target(training.train).call().unwrap();
    let want = session.run().feed(words, &x).fetch(from_rows).call().unwrap().slice::<f32>(0).unwrap().to_vec();
    let path = folder.file("model.dtg");
    m.export(&session, &path, &Export { inputs: &[("words", words)], outputs: &[("y", from_rows)], freeze: true }).unwrap();
    let (served, alone) = Model::load(&path).unwrap();
    let (x_in, y_out) = (served.endpoint("words").unwrap(), served.endpoint("y").unwrap());
    let got = alone.run().feed(x_in, &x).fetch(y_out).call().unwrap().slice::<f32>(0).unwrap().to_vec();
    assert_eq!(want, got);
}

/// The bins of Keras' own examples.
#[test]
fn hashing_has_the_bins_of_keras() {
    let _world = world();
    let m = model();
    let x = m.placeholder("x", DType::STRING, Some(&[-1])).unwrap();
    let mask = Tensor::from_strings(&[], &[""]).unwrap();
    let hashing = Hashing { num_bins: 3, ..Default::default() };
    let plain = m.hashing(x, &hashing).unwrap();
    let masked = m.hashing(x, &Hashing { mask_value: Some(&mask), ..hashing }).unwrap();
    let salted = m.hashing(x, &Hashing { salt: Some([133, 137]), ..hashing }).unwrap();
    let session = Session::connect("local", &m).unwrap();
    let run =
        |y: Value, given: &[&str]| session.run().feed(x, &texts(given)).fetch(y).call().unwrap().slice::<i64>(0).unwrap().to_vec();
    assert_eq!(run(plain, &["A", "B", "C", "D", "E"]), [1, 0, 1, 1, 2]);
    assert_eq!(run(masked, &["A", "B", "", "C", "D"]), [1, 1, 0, 2, 2]);
    assert_eq!(run(salted, &["A", "B", "C", "D", "E"]), [1, 2, 1, 0, 2]);
}

#[test]
fn what_is_misused_is_told() {
    let _world = world();
    let m = model();
    let x = m.placeholder("x", DType::I64, Some(&[-1])).unwrap();
    let twice = Tensor::from_slice(&[3], &[4i64, 5, 4]).unwrap();
    let fine = Tensor::from_slice(&[2], &[4i64, 5]).unwrap();
    let invalid = ErrorKind::InvalidArgument;
    refused(m.lookup(x, &Lookup::default()), invalid, "no vocabulary");
    refused(
        m.lookup(x, &Lookup { vocabulary: Some(&twice), ..Default::default() }),
        invalid,
        "the token 4 is in the vocabulary twice",
    );
    let both = Lookup { vocabulary: Some(&fine), num_oov_indices: 2, no_oov: true, ..Default::default() };
    refused(m.lookup(x, &both), invalid, "give one of them");
    refused(m.hashing(x, &Hashing::default()), invalid, "0 bins");
    let y = m.lookup(x, &Lookup { num_oov_indices: 0, ..both }).unwrap();
    let session = Session::connect("local", &m).unwrap();
    assert_eq!(session.run().feed(x, &twice).fetch(y).call().unwrap().slice::<i64>(0).unwrap(), [0, 1, 0]);
    let unknown = Tensor::from_slice(&[2], &[4i64, -9]).unwrap();
    refused(session.run().feed(x, &unknown).fetch(y).call(), invalid, "[-9]");
}
