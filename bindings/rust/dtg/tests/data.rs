//! Data sets, weight sets and event files. One test at a time.

mod common;

use std::time::Duration;

use common::{Folder, refused, world};
use dtg::{
    Arrow, Component, Csv, DType, Dataset, Error, ErrorKind, EventWriter, EventWriterOptions, Feature, Graph, Header, JsonLines,
    MapOptions, Missing, Runtime, RuntimeOptions, Session, Tensor, Value, Weights, ops,
};

fn all(data: &mut Dataset) -> Vec<i64> {
    data.by_ref().flat_map(|element| element.unwrap()[0].as_slice::<i64>().unwrap().to_vec()).collect()
}

#[test]
fn sources_of_files() {
    let _world = world();
    let folder = Folder::new("sources");
    let write = |name: &str, content: &[u8]| {
        let path = folder.file(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let head = b"{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }";
    let mut array = b"\x93NUMPY\x01\x00".to_vec();
    array.extend([u8::try_from(head.len()).unwrap(), 0]);
    array.extend(head);
    array.extend([5_i64, 6, 7].iter().flat_map(|x| x.to_le_bytes()));
    let numbers = write("a.npy", &array);
    assert_eq!(all(&mut Dataset::npy(&[&numbers]).unwrap()), [5, 6, 7]);
    refused(Dataset::npz(&numbers, &["a"]), ErrorKind::DataLoss, "zip");

    let lines = write("a.jsonl", b"{\"a\": 4, \"b\": \"x\"}\n{\"a\": {}}\n{\"a\": 5, \"b\": \"w\"}\n");
    refused(Dataset::json_lines(&lines, &JsonLines::default()), ErrorKind::DataLoss, "line 2");
    let options = JsonLines { columns: Some(&["b", "a"]), skip_bad_rows: true, ..JsonLines::default() };
    let mut rows = Dataset::json_lines(&lines, &options).unwrap();
    let (count, why) = rows.bad_rows().unwrap();
    assert!(count == 1 && why.contains("line 2"), "{count}: {why}");
    assert_eq!(all(&mut rows), [1, 0]);

    let hex = "2100000000000000017becf60a1f0a0a0a017912051a030a01070a110a0178120c120a0a080000003f00000040ad7fc379";
    let bytes: Vec<u8> = (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect();
    let features = [
        Feature::new("y", DType::I64, &[]),
        Feature { variable: true, ..Feature::new("x", DType::F32, &[]) },
        Feature { default: Some(7.5), ..Feature::new("a \"name\"", DType::F32, &[2]) },
    ];
    let mut examples = Dataset::tfrecord(&[write("a.tfrecord", &bytes)], &features).unwrap();
    let element = examples.next_element().unwrap().unwrap();
    assert_eq!(element[0].to_scalar::<i64>().unwrap(), 7);
    assert_eq!(element[1].as_slice::<f32>().unwrap(), [0.5, 2.0]);
    assert_eq!(element[2].as_slice::<f32>().unwrap(), [7.5, 7.5]);
    let mut torn = Dataset::tfrecord(&[write("b.tfrecord", &bytes[..40])], &features).unwrap();
    refused(torn.next_element(), ErrorKind::DataLoss, "byte 40");
}

#[test]
fn several_as_one() {
    let _world = world();
    let range = |begin, end| Dataset::range(begin, end, 1).unwrap();
    let zipped = range(0, 5).zip_with(vec![range(10, 13)]).unwrap();
    assert_eq!((zipped.component_count(), zipped.cardinality()), (2, Some(3)));
    assert_eq!(all(&mut range(0, 2).concatenate(vec![range(5, 7), range(9, 10)]).unwrap()), [0, 1, 5, 6, 9]);
    assert_eq!(all(&mut range(0, 5).interleave(vec![range(10, 11)], 2).unwrap()), [0, 1, 10, 2, 3, 4]);
    assert_eq!(all(&mut range(0, 5).window(2, 2, 2, true).unwrap()), [0, 2, 2, 4]);
    let windows = || range(0, 3).window(2, 1, 1, false).unwrap();
    assert_eq!(all(&mut windows().padded_batch(3, false, -1.0).unwrap()), [0, 1, 1, 2, 2, -1]);
    assert_eq!(all(&mut windows().bucket_batch(0, &[2], &[5, 2], false, 0.0).unwrap()), [0, 1, 1, 2, 2]);
    let mut cached = range(0, 9).shuffle(0, 3).unwrap().cache().unwrap();
    let first = all(&mut cached);
    assert_eq!(all(&mut cached), first);
    refused(windows().padded_batch(3, false, 0.5), ErrorKind::InvalidArgument, "0.5");
}

#[test]
fn transforms_in_the_order_of_the_calls() {
    let _world = world();
    let range = || Dataset::range(0, 10, 1).unwrap();
    assert_eq!(all(&mut range().shard(3, 1).unwrap()), [1, 4, 7]);
    assert_eq!(all(&mut range().auto_shard(2, 0).unwrap()), [0, 2, 4, 6, 8]);
    assert_eq!(all(&mut range().skip_first(7).unwrap().take_first(2).unwrap().repeat(2).unwrap()), [7, 8, 7, 8]);
    assert_eq!(range().batch(4, true).unwrap().cardinality(), Some(2));
    assert_eq!(
        range().batch(4, false).unwrap().rebatch(2).unwrap().map(|element| element.unwrap()[0].count()).collect::<Vec<_>>(),
        [2, 2, 2, 2, 1, 1]
    );
    assert_eq!(range().repeat(-1).unwrap().cardinality(), None);
    let mut scaled = range().scale(0, 2.0).unwrap().prefetch(2).unwrap();
    scaled.next_element().unwrap();
    assert_eq!(scaled.next_element().unwrap().unwrap()[0].to_scalar::<f32>().unwrap(), 0.5);
    let cast = range().cast(0, DType::F64).unwrap().batch(5, true).unwrap();
    assert_eq!((cast.component_count(), cast.component(0).unwrap()), (1, (DType::F64, Some(vec![5]))));
    refused(cast.component(1), ErrorKind::OutOfRange, "");
    let shuffled = |seed| all(&mut range().shuffle(0, seed).unwrap());
    assert_eq!(shuffled(3), shuffled(3));
    assert_ne!(shuffled(3), shuffled(4));
    let mut data = range().shuffle(4, 1).unwrap();
    let first = all(&mut data);
    assert!(data.next_element().unwrap().is_none());
    data.restart().unwrap();
    assert_ne!(all(&mut data), first, "each epoch has an order of its own");
    refused(range().batch(0, false), ErrorKind::InvalidArgument, "batch");
    refused(Dataset::range(0, 1, 0), ErrorKind::InvalidArgument, "step");
}

#[test]
fn tensors_files_and_what_is_wrong_with_them() {
    let _world = world();
    let (x, y) = (
        Tensor::from_slice(&[3, 2], &[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0]).unwrap(),
        Tensor::from_slice(&[3], &[7i64, 8, 9]).unwrap(),
    );
    let mut data = Dataset::tensors(&[&x, &y]).unwrap();
    data.next_element().unwrap();
    let mut second = data.next_element().unwrap().unwrap();
    assert_eq!((second[0].as_slice::<f32>().unwrap(), second[1].to_scalar::<i64>().unwrap()), (&[2.0f32, 3.0][..], 8));
    refused(second[0].as_mut_slice::<f32>(), ErrorKind::FailedPrecondition, "copy()");
    refused(Dataset::tensors(&[&x, &second[0]]), ErrorKind::InvalidArgument, "");

    let folder = Folder::new("csv");
    let path = folder.file("t.csv");
    std::fs::write(&path, "a;b;c\n1;0.5;red\n2;;blue\n").unwrap();
    refused(Dataset::csv(&path, &Csv { delimiter: Some(b';'), ..Default::default() }), ErrorKind::DataLoss, "column \"b\"");
    let csv = Csv { header: Header::Yes, delimiter: Some(b';'), columns: Some(&["c", "a"]), ..Default::default() };
    let rows: Vec<_> = Dataset::csv(&path, &csv)
        .unwrap()
        .map(|row| row.unwrap().iter().map(|t| t.to_scalar::<i64>().unwrap()).collect::<Vec<_>>())
        .collect();
    assert_eq!(rows, [[1, 1], [0, 2]]);
    let dropped = Csv { label: Some("c"), columns: None, missing: Missing::Drop, ..csv };
    assert_eq!(Dataset::csv(&path, &dropped).unwrap().count(), 1);
    refused(Dataset::csv(&path, &Csv { missing: Missing::Refuse, ..dropped }), ErrorKind::DataLoss, "");
    refused(Dataset::csv(&path, &Csv { label: Some("z"), ..csv }), ErrorKind::NotFound, "z");
    // What is said and empty is not what was never said, and a name is not cut at a NUL.
    let none = Csv { columns: Some(&[]), ..Default::default() };
    refused(Dataset::csv(&path, &none), ErrorKind::InvalidArgument, "columns is an empty list");
    refused(Dataset::csv(&path, &Csv { label: Some(""), ..csv }), ErrorKind::InvalidArgument, "label is empty");
    refused(Dataset::csv(&path, &Csv { label: Some("c\0x"), ..csv }), ErrorKind::InvalidArgument, "label is \"c\\0x\"");
    refused(Dataset::csv(std::path::Path::new(&folder.file("none")), &Csv::default()), ErrorKind::NotFound, "none");

    let mean = Csv { label: Some("c"), columns: None, missing: Missing::Mean, ..csv };
    let mut fitted = Dataset::csv(&path, &mean).unwrap();
    let schema = fitted.schema().unwrap();
    // A second loop is a second epoch.
    assert_eq!((fitted.by_ref().count(), fitted.by_ref().count()), (2, 2));
    let other = folder.file("other.csv");
    std::fs::write(&other, "a;b;c\n3;;red\n").unwrap();
    let same = Csv { schema: Some(&schema), delimiter: Some(b';'), ..Default::default() };
    let row = Dataset::csv(&other, &same).unwrap().next().unwrap().unwrap();
    assert_eq!(row[0].as_slice::<f32>().unwrap(), [3.0, 0.5]);
    assert_eq!(row[1].to_scalar::<i64>().unwrap(), 1);
    std::fs::write(&other, "a;b;c\n3;;green\n").unwrap();
    refused(Dataset::csv(&other, &same), ErrorKind::InvalidArgument, "green");
    refused(Dataset::range(0, 1, 1).unwrap().schema(), ErrorKind::FailedPrecondition, "CSV");

    let idx = folder.file("labels.idx");
    std::fs::write(&idx, [0, 0, 8, 1, 0, 0, 0, 3, 5, 6, 7]).unwrap();
    let labels: Vec<_> = Dataset::idx(&[&idx]).unwrap().map(|row| row.unwrap()[0].to_scalar::<u8>().unwrap()).collect();
    assert_eq!(labels, [5, 6, 7]);
    refused(Dataset::idx(&[&path]), ErrorKind::DataLoss, "");
    refused(Dataset::idx(&["a\0b"]), ErrorKind::InvalidArgument, "NUL");
    // The memory limit of a runtime bounds what a file may ask for.
    std::fs::write(&idx, [0, 0, 8, 1, 0, 255, 255, 255]).unwrap();
    let small = RuntimeOptions::new().memory_limit(1000).create().unwrap();
    assert!(Dataset::idx_in(&small, &[&idx]).is_err());
    assert_eq!(Dataset::range_in(&Runtime::default(), 0, 2, 1).unwrap().count(), 2);
    assert_eq!(Dataset::tensors_in(&small, &[&y]).unwrap().count(), 3);
    assert_eq!(Dataset::csv_in(&Runtime::default(), &path, &csv).unwrap().count(), 2);
}

#[test]
fn weights_are_set_and_got() {
    let _world = world();
    let mut weights = Weights::new().unwrap();
    assert!(weights.is_empty());
    let tensor = Tensor::from_slice(&[2], &[1.0f32, 2.0]).unwrap();
    weights.set("b", &tensor).unwrap();
    weights.set("a", &tensor).unwrap();
    weights.set_metadata("k", "v").unwrap();
    assert_eq!(
        (weights.len(), weights.names(), weights.metadata("k"), weights.metadata("none")),
        (2, vec!["b", "a"], Some("v"), None)
    );
    refused(weights.get("c"), ErrorKind::NotFound, "c");
    let folder = Folder::new("weights");
    let path = folder.file("w.safetensors");
    weights.save(&path).unwrap();
    drop(weights);
    let again = Weights::load_in(&Runtime::default(), &path).unwrap();
    assert_eq!(again.names(), ["a", "b"]);
    let kept = again.get("b").unwrap();
    drop(again);
    assert_eq!(kept.as_slice::<f32>().unwrap(), [1.0, 2.0]);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    refused(Weights::load(&path), ErrorKind::DataLoss, "");
}

#[test]
fn events_are_written_and_closed() {
    let _world = world();
    let folder = Folder::new("events");
    let options = EventWriterOptions { flush_every: Some(Duration::from_secs(60)), resumed_at_step: 1 };
    let mut writer = EventWriter::open(folder.path(), &options).unwrap();
    writer.scalar("loss", 1, 0.25).unwrap();
    writer.histogram("weights", 1, &Tensor::from_slice(&[2], &[1.0f32, 2.0]).unwrap()).unwrap();
    refused(writer.histogram("weights", 1, &Tensor::scalar(1i32).unwrap()), ErrorKind::InvalidArgument, "");
    writer.text("note", 1, "*hello*").unwrap();
    writer.flush().unwrap();
    let size = || std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>();
    assert!(size() > 100);
    writer.close().unwrap();
    writer.close().or_else(|error| if error.kind() == ErrorKind::FailedPrecondition { Ok(()) } else { Err(error) }).unwrap();
    refused(writer.scalar("loss", 2, 0.5), ErrorKind::FailedPrecondition, "clos");
    // A release flushes too.
    let before = size();
    let mut writer = EventWriter::open(folder.path(), &EventWriterOptions::default()).unwrap();
    writer.scalar("loss", 3, 0.5).unwrap();
    drop(writer);
    assert!(size() > before);
    refused(EventWriter::open("/proc/no/such", &EventWriterOptions::default()).map(drop), ErrorKind::PermissionDenied, "/proc")
        .code();
}

#[test]
fn functions_of_graphs() {
    let _world = world();
    let small = |body: &Graph, x: &[Value]| {
        let twenty = body.scalar(20_i64)?;
        ops::less(body, x[0], twenty).build()
    };
    for parallel in [None, Some(3), Some(0)] {
        let options = MapOptions { parallel, ..Default::default() };
        let square = |body: &Graph, x: &[Value]| ops::mul(body, x[0], x[0]).build();
        let data = Dataset::range(0, 6, 1).unwrap().map_graph(square, &options).unwrap();
        assert_eq!(all(&mut data.filter_graph(small, &options).unwrap()), [0, 1, 4, 9, 16]);
    }
    let options = MapOptions { seed: true, ..Default::default() };
    let mut seeds = Dataset::range(5, 7, 1).unwrap().map_graph(|_, x| Ok([x[1]]), &options).unwrap();
    assert_eq!(all(&mut seeds), [0, 0, 0, 1]);
    assert_eq!(all(&mut seeds), [1, 0, 1, 1]);

    let graph = Graph::new().unwrap();
    let three = ops::square(&graph, graph.scalar(3_i64).unwrap()).build().unwrap();
    let session = Session::connect("local", &graph).unwrap();
    let times = |body: &Graph, x: &[Value]| ops::mul(body, x[0], three).build();
    let options = MapOptions { around: Some((&graph, &session)), ..Default::default() };
    assert_eq!(all(&mut Dataset::range(0, 3, 1).unwrap().map_graph(times, &options).unwrap()), [0, 9, 18]);
}

#[test]
fn functions_of_the_program() {
    let _world = world();
    let number = [Component::new(DType::I64, &[])];
    let mut seen = 0;
    let data = Dataset::range(0, 5, 1).unwrap().map_elements(&number, move |x| {
        seen += 1;
        Ok(vec![Tensor::scalar(100 * seen + x[0].to_scalar::<i64>()?)?])
    });
    let mut data = data.unwrap().filter_elements(|x| Ok(x[0].to_scalar::<i64>()? % 2 == 1)).unwrap().prefetch(2).unwrap();
    assert_eq!(all(&mut data), [201, 403]);

    let one = || Dataset::range(0, 1, 1).unwrap();
    let kept = one().map_elements(&number, |x| Ok(x.to_vec())).unwrap().next().unwrap().unwrap();
    assert_eq!(kept[0].to_scalar::<i64>().unwrap(), 0);
    let mut torn = one().map_elements(&number, |_| Err(Error::new(ErrorKind::DataLoss, "the well is dry"))).unwrap();
    refused(torn.next_element(), ErrorKind::DataLoss, "the well is dry");
    let mut thrown = one().filter_elements(|_| panic!("out of the {}", "wall")).unwrap();
    refused(thrown.next_element(), ErrorKind::Internal, "out of the wall");
    let mut none = one().map_elements(&number, |_| Ok(vec![])).unwrap();
    refused(none.next_element(), ErrorKind::InvalidArgument, "0 tensors");
    refused(one().map_elements(&[], |_| Ok(vec![])), ErrorKind::InvalidArgument, "component");
}

#[test]
fn sources_of_the_program() {
    let _world = world();
    let make = || {
        let rows = |epoch: i64| (0..4).map(move |i| Ok(vec![Tensor::scalar(10 * epoch + i)?]));
        Dataset::from_epochs(&[Component::new(DType::I64, &[])], Some(4), rows).unwrap().batch(3, false).unwrap()
    };
    let mut data = make();
    assert_eq!(all(&mut data), [0, 1, 2, 3]);
    data.restart().unwrap();
    data.next_element().unwrap();
    let mut again = make();
    again.move_to(&data.place().unwrap()).unwrap();
    assert_eq!(again.next_element().unwrap().unwrap()[0].as_slice::<i64>().unwrap(), [13]);
    assert_eq!(all(&mut again), []); // at its end
    again.move_to(&data.place().unwrap()).unwrap();
    assert_eq!(all(&mut again), [13], "what iterates goes on there");
    assert_eq!(data.cardinality(), Some(2));
    // SAFETY: there is no stream.
    refused(unsafe { Dataset::arrow(std::ptr::null_mut(), &Arrow::default()) }, ErrorKind::InvalidArgument, "stream");
}
