//! Data in two parts, numbers fitted on one of them, layers called twice, and models that are served without their builder.

mod common;

use common::{Folder, refused, world};
use dtg::{
    Checkpoint, CheckpointOptions, DType, Dataset, Dense, ErrorKind, Export, Fit, Graph, JsonLines, Model, NormalizationKind,
    Optimizer, RestoreOptions, RestoreReport, Session, Split, Tensor, Trainer, TrainerOptions,
};

#[test]
fn split_normalize_train_export_serve() {
    let _world = world();
    let folder = Folder::new("serving");
    let x = Tensor::from_slice(&[6, 2], &[0.0f32, 10.0, 1.0, 20.0, 2.0, 30.0, 3.0, 40.0, 4.0, 50.0, 5.0, 60.0]).unwrap();
    let labels = Tensor::from_slice(&[6], &[0i64, 1, 0, 1, 0, 1]).unwrap();
    let mut all = Dataset::tensors(&[&x, &labels]).unwrap();
    let how = Split { fraction: 0.34, seed: 1, classes: Some(1), ..Default::default() };
    let (mut train, test) = all.split(&how).unwrap();
    assert_eq!((train.cardinality(), test.cardinality()), (Some(4), Some(2)));
    let numbers = train.fit_normalization(0, NormalizationKind::Standard).unwrap();
    let mut test = test.normalize(0, &numbers).unwrap().shuffle_once(0, 3).unwrap();
    assert!(test.next_element().unwrap().is_some());
    refused(all.split(&Split { fraction: 2.0, ..Default::default() }), ErrorKind::InvalidArgument, "fraction");
    refused(
        all.split(&Split { folds: 2, fraction: 0.2, ..Default::default() }),
        ErrorKind::InvalidArgument,
        "2 folds and a fraction",
    );

    let model = Model::new(Graph::new().unwrap(), 1).unwrap();
    let input = model.placeholder("in", DType::F32, Some(&[-1, 2])).unwrap();
    let normal = model.normalize(input, &numbers).unwrap();
    let y = model.dense(normal, &Dense { name: Some("only"), units: 1, ..Default::default() }).unwrap();
    let again = model.dense(input, &Dense { units: 1, weights_of: Some("only"), ..Default::default() }).unwrap();
    let loss = model.expr(y).squared_difference(again).mean([0, 1]).value().unwrap();
    let training = model.minimize(loss, &Optimizer { lazy: true, ..Optimizer::adam_w(0.01, 0.1) }).unwrap();
    let init = model.init().unwrap();
    let session = Session::connect("local", &model).unwrap();
    session.run_target(init).unwrap();
    session.run().feed(input, &x).target(training.train).call().unwrap();
    let want = session.run().feed(input, &x).fetch(y).call().unwrap().slice::<f32>(0).unwrap().to_vec();
    model.set_classes("y", &["good"]).unwrap();
    refused(model.set_classes("", &["a", "a"]), ErrorKind::InvalidArgument, "twice");
    refused(model.set_classes("", &[String::from("a\0")]), ErrorKind::InvalidArgument, "NUL");
    let path = folder.file("model.dtg");
    for freeze in [false, true] {
        let what = Export { inputs: &[("x", input)], outputs: &[("y", y)], freeze };
        model.export(&session, &path, &what).unwrap();
        let (served, alone) = Model::load(&path).unwrap();
        let (x_in, y_out) = (served.endpoint("x").unwrap(), served.endpoint("y").unwrap());
        let got = alone.run().feed(x_in, &x).fetch(y_out).call().unwrap().slice::<f32>(0).unwrap().to_vec();
        assert_eq!(want, got);
        assert!(served.endpoints().unwrap().contains("\"shape\":[-1,2]"));
        refused(served.endpoint("z"), ErrorKind::NotFound, "there are x, y");
        assert_eq!(served.classes("y").unwrap(), ["good"]);
        refused(served.classes(""), ErrorKind::NotFound, "nobody has named");
    }
    refused(Model::load(folder.file("none")), ErrorKind::NotFound, "none");
}

/// A fit keeps the names of its classes, whoever loads the model has them, and reads by its schema what has no label.
#[test]
fn classes_of_a_fit() {
    let _world = world();
    let folder = Folder::new("classes");
    std::fs::create_dir_all(folder.path()).unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(folder.file(name), text).unwrap();
        folder.file(name)
    };
    let rows = write("train.jsonl", "{\"size\": 1, \"kind\": \"dog\"}\n{\"size\": 2, \"kind\": \"cat\"}\n");
    let options = JsonLines { label: Some("kind"), ..Default::default() };
    let mut data = Dataset::json_lines(rows, &options).unwrap().batch(2, false).unwrap();
    let model = Model::new(Graph::new().unwrap(), 1).unwrap();
    let x = model.placeholder("x", DType::F32, Some(&[-1, 1])).unwrap();
    let y = model.placeholder("y", DType::I64, Some(&[-1])).unwrap();
    let scores = model.dense(x, &Dense { units: 2, ..Default::default() }).unwrap();
    let loss = model.sparse_softmax_cross_entropy(y, scores).unwrap();
    let feeds = [x, y];
    let outputs = [scores];
    let mut trainer = Trainer::new(model, &TrainerOptions { outputs: &outputs, ..TrainerOptions::new(&feeds, loss) }).unwrap();
    let run = std::path::Path::new(folder.path()).join("run");
    trainer.fit(&mut data, None, &Fit { directory: Some(&run), ..Default::default() }, |_, _| Ok(())).unwrap();
    let (served, _session) = Model::load(run.join("model.dtg")).unwrap();
    assert_eq!(served.classes("output").unwrap(), ["cat", "dog"]);
    refused(served.classes("outptu"), ErrorKind::NotFound, "did you mean \"output\"");
    let schema = served.metadata("schema").unwrap();
    let options = JsonLines { schema: Some(&schema), ..Default::default() };
    let mut fresh = Dataset::json_lines(write("new.jsonl", "{\"size\": 3}\n"), &options).unwrap();
    assert_eq!(fresh.next_element().unwrap().unwrap().len(), 1);
    refused(Session::connect("", &served), ErrorKind::InvalidArgument, "the target is empty");
}

fn one_layer(name: &str) -> (Model, Session) {
    let model = Model::new(Graph::new().unwrap(), 1).unwrap();
    let x = model.placeholder("x", DType::F32, Some(&[-1, 2])).unwrap();
    model.dense(x, &Dense { name: Some(name), units: 3, ..Default::default() }).unwrap();
    let init = model.init().unwrap();
    let session = Session::connect("local", &model).unwrap();
    session.run_target(init).unwrap();
    (model, session)
}

#[test]
fn restores_by_other_names() {
    let _world = world();
    let folder = Folder::new("renamed");
    let path = folder.file("old.safetensors");
    let (old, at) = one_layer("old");
    old.save(&at, &path).unwrap();
    let (fresh, here) = one_layer("new");
    refused(fresh.restore_from(&here, &path, &RestoreOptions::default()), ErrorKind::FailedPrecondition, "new/kernel");
    let options = RestoreOptions { names: &[("new/kernel", "old/kernel")], partial: true };
    let text = fresh.restore_from(&here, &path, &options).unwrap();
    let report: RestoreReport = text.parse().unwrap();
    assert!(text.contains("\"variables\":1"), "{text}");
    assert_eq!((report.variables, report.missing.is_empty(), report.reshaped.is_empty()), (1, false, true), "{text}");
    assert!(report.path.ends_with("old.safetensors"), "{text}");
    let options = CheckpointOptions { names: &[("new/", "old/")], ..Default::default() };
    let mut sets = Checkpoint::open(&fresh, &here, folder.file("sets"), &options).unwrap();
    refused(sets.restore(&fresh, ""), ErrorKind::NotFound, "sets");
    let bytes = old.serialize().unwrap();
    let graph = Graph::new().unwrap();
    graph.import(&bytes).unwrap();
    assert_eq!(Model::import(graph, 1).unwrap().variable_count(), 2);
}

fn read_report(text: &str) -> RestoreReport {
    text.parse().unwrap()
}

#[test]
fn reports_are_read_whatever_is_in_them() {
    let report = read_report(
        "{\"path\":\"a \\\"b\\\"\\u00e4\\ud83d\\ude00\\n\",\"later\":[\"x\"],\"variables\":2,\"missing\":[\"m\",\"ü\"],\"extra\":[]}\n",
    );
    assert_eq!(report.path, "a \"b\"ä\u{1f600}\n");
    assert_eq!((report.variables, report.missing), (2, vec!["m".to_owned(), "ü".to_owned()]));
    assert!(report.extra.is_empty() && report.reshaped.is_empty());
    let report = read_report(r#"{ "outcome" : "kept", "step" : -3, "passed_over" : [ "a", "b" ], "notes" : ["n"] }"#);
    assert_eq!((report.outcome.as_str(), report.step, report.passed_over.len(), report.notes.len()), ("kept", -3, 2, 1));
    assert_eq!(read_report("{}"), RestoreReport::default());
}

#[test]
fn what_is_no_report_is_refused() {
    for text in [
        "",
        "{",
        "[]",
        "{\"path\"}",
        "{\"path\":}",
        "{} {}",
        "{\"a\":{}}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"variables\":-1}",
    ] {
        let error = text.parse::<RestoreReport>().unwrap_err();
        assert!(error.message().contains("is none"), "{text}: {error}");
    }
}
