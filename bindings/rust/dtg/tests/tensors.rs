//! Tensors: elements in and out, who may write, what is refused. One test at a time.

mod common;

use common::{Folder, refused, world};
use dtg::{DType, Dataset, Element, ErrorKind, Graph, Session, Tensor, Weights};

#[test]
fn elements_go_in_and_out() {
    let _world = world();
    let copied = Tensor::from_slice(&[2, 2], &[1i64, 2, 3, 4]).unwrap();
    assert_eq!((copied.dtype(), copied.dims(), copied.count()), (DType::I64, vec![2, 2], 4));
    assert_eq!(copied.as_slice::<i64>().unwrap(), [1, 2, 3, 4]);
    assert_eq!(copied.as_bytes().len(), 32);
    assert_eq!(format!("{copied:?}"), "int64[2, 2]");

    let values = vec![0.5f64; 1000];
    let address = values.as_ptr();
    let owned = Tensor::from_vec(&[10, 100], values).unwrap();
    assert_eq!(owned.as_slice::<f64>().unwrap().as_ptr(), address, "from_vec copied");

    assert_eq!(Tensor::zeros(DType::U8, &[3]).unwrap().as_slice::<u8>().unwrap(), [0, 0, 0]);
    assert!(Tensor::scalar(true).unwrap().to_scalar::<bool>().unwrap());
    let empty = Tensor::from_slice::<f32>(&[0, 3], &[]).unwrap();
    assert_eq!(empty.as_slice::<f32>().unwrap(), []);
    assert_eq!(Tensor::from_vec::<i32>(&[0], Vec::new()).unwrap().count(), 0);
}

#[test]
fn strings_go_in_and_out() {
    let _world = world();
    let words = Tensor::from_strings(&[2, 2], &["one", "", "a\0b", "\u{e9}"]).unwrap();
    assert_eq!((words.dtype(), words.dims(), words.count()), (DType::STRING, vec![2, 2], 4));
    assert_eq!(words.to_strings().unwrap(), ["one", "", "a\0b", "\u{e9}"]);
    assert_eq!(words.copy().unwrap().string_bytes(2).unwrap(), b"a\0b");
    assert!(words.as_bytes().is_empty(), "strings have no plain memory");
    let broken = Tensor::from_strings(&[], &[b"\xff"]).unwrap();
    refused(broken.to_strings(), ErrorKind::InvalidArgument, "string_bytes");
    refused(words.string_bytes(4), ErrorKind::OutOfRange, "4");
    refused(Tensor::from_strings(&[3], &["a"]), ErrorKind::InvalidArgument, "shape");
    refused(Tensor::from_strings::<&str>(&[usize::MAX, 2], &[]), ErrorKind::InvalidArgument, "shape");
    refused(Tensor::scalar(1.0f32).unwrap().string_bytes(0), ErrorKind::InvalidArgument, "float32");
}

#[test]
fn what_does_not_fit_is_refused() {
    let _world = world();
    refused(Tensor::from_slice(&[3], &[1.0f32, 2.0]), ErrorKind::InvalidArgument, "3 elements");
    refused(Tensor::from_slice(&[2, 3], &[1.0f32, 2.0, 3.0]), ErrorKind::InvalidArgument, "it has 6 elements, 3 were given");
    refused(Tensor::from_vec(&[3], vec![1.0f32, 2.0]), ErrorKind::InvalidArgument, "3 elements");
    refused(Tensor::from_slice(&[usize::MAX], &[1.0f32]), ErrorKind::InvalidArgument, "large");
    refused(Tensor::from_slice(&[1; 9], &[1.0f32]), ErrorKind::InvalidArgument, "rank");
    refused(Tensor::zeros(DType::from_number(999), &[]), ErrorKind::InvalidArgument, "999");
    refused(Tensor::zeros(DType::F32, &[1 << 40, 1 << 30]), ErrorKind::InvalidArgument, "");
    let tensor = Tensor::from_slice(&[2], &[1.0f32, 2.0]).unwrap();
    let error = refused(tensor.as_slice::<f64>(), ErrorKind::InvalidArgument, "float32");
    assert!(error.message().contains("float64"), "{error}");
    refused(tensor.to_scalar::<f32>(), ErrorKind::InvalidArgument, "2 elements");
}

#[test]
fn only_the_one_owner_writes() {
    let _world = world();
    let mut tensor = Tensor::zeros(DType::F32, &[2]).unwrap();
    tensor.as_mut_slice::<f32>().unwrap()[1] = 2.0;
    refused(tensor.as_mut_slice::<i32>(), ErrorKind::InvalidArgument, "int32");

    let mut clone = tensor.clone();
    refused(tensor.as_mut_slice::<f32>(), ErrorKind::FailedPrecondition, "copy()");
    refused(clone.as_mut_slice::<f32>(), ErrorKind::FailedPrecondition, "copy()");
    assert_eq!(clone.as_slice::<f32>().unwrap().as_ptr(), tensor.as_slice::<f32>().unwrap().as_ptr());
    let mut copy = clone.copy().unwrap();
    copy.as_mut_slice::<f32>().unwrap()[0] = 9.0;
    assert_eq!(tensor.as_slice::<f32>().unwrap(), [0.0, 2.0]);

    // All that keep a tensor.
    let graph = Graph::new().unwrap();
    let (mut a, mut b, mut c, mut d) = (copy.copy().unwrap(), copy.copy().unwrap(), copy.copy().unwrap(), copy.copy().unwrap());
    let constant = graph.constant(&a).unwrap();
    let data = Dataset::tensors(&[&b]).unwrap();
    let mut weights = Weights::new().unwrap();
    weights.set("c", &c).unwrap();
    let session = Session::connect("local", &graph).unwrap();
    // A run that is not over: nobody puts anything into the queue.
    let queue = dtg::ops::fifo_queue_v2(&graph, &[DType::F32]).build().unwrap();
    let element = dtg::ops::queue_dequeue_v2(&graph, queue, &[DType::F32]).build().unwrap()[0];
    let run = session.run().feed(constant, &d).fetch(element).start();
    for tensor in [&mut a, &mut b, &mut c, &mut d] {
        refused(tensor.as_mut_slice::<f32>(), ErrorKind::FailedPrecondition, "copy()");
    }
    refused(weights.get("c").unwrap().as_mut_slice::<f32>(), ErrorKind::FailedPrecondition, "copy()");
    drop((run, data));

    // A fetched tensor is the caller's alone.
    let mut fetched = session.run().fetch(constant).call().unwrap().into_vec();
    fetched[0].as_mut_slice::<f32>().unwrap()[0] = -1.0;
    assert_eq!(session.run().fetch(constant).call().unwrap().slice::<f32>(0).unwrap(), [9.0, 2.0]);
}

#[test]
fn bytes_that_are_no_bool_are_not_read_as_bool() {
    let _world = world();
    let folder = Folder::new("bool");
    let header = br#"{"flags":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}}"#;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header);
    file.extend_from_slice(&[0, 1, 7]);
    let path = folder.file("bad.safetensors");
    std::fs::write(&path, file).unwrap();
    refused(Weights::load(&path), ErrorKind::DataLoss, "flags");
    // Were there another way in, Rust would still not make a bool of a 7.
    assert!(bool::valid(&[0, 1, 1]) && !bool::valid(&[0, 1, 7]));
}

#[test]
fn types_have_names() {
    let _world = world();
    assert_eq!(DType::from_name("bfloat16"), Some(DType::BF16));
    assert_eq!(DType::from_name("float"), Some(DType::F32));
    assert_eq!(DType::from_name("flaot"), None);
    assert_eq!(DType::from_name("fl\0at"), None);
    assert_eq!((DType::F64.size(), DType::STRING.size()), (Some(8), None));
    assert_eq!((DType::C64.to_string(), DType::from_number(-5).name()), ("complex64".to_owned(), "invalid"));
}

#[cfg(feature = "half")]
#[test]
fn half_floats_are_elements() {
    let _world = world();
    use dtg::half; // the version that the library is built with
    let values = [half::bf16::from_f32(1.5), half::bf16::from_f32(-2.0)];
    let tensor = Tensor::from_slice(&[2], &values).unwrap();
    assert_eq!(tensor.dtype(), DType::BF16);
    assert_eq!(tensor.as_slice::<half::bf16>().unwrap(), values);
    // The library means the same by them.
    let graph = Graph::new().unwrap();
    let x = graph.scalar(half::f16::from_f32(0.25)).unwrap();
    let cast = dtg::ops::cast(&graph, x, DType::F32).build().unwrap();
    let session = Session::connect("local", &graph).unwrap();
    assert_eq!(session.run().fetch(cast).call().unwrap().scalar::<f32>(0).unwrap(), 0.25);
}

#[cfg(feature = "ndarray")]
#[test]
fn arrays_are_tensors() {
    use ndarray::{Array2, arr0, s};
    let _world = world();
    let array = Array2::from_shape_fn((3, 4), |(i, j)| (10 * i + j) as f32);
    let tensor = Tensor::from_array(&array).unwrap();
    assert_eq!(tensor.dims(), [3, 4]);
    assert_eq!(tensor.view::<f32>().unwrap(), array.view().into_dyn());
    refused(tensor.view::<i32>(), ErrorKind::InvalidArgument, "float32");
    // An array of its own outlives the tensor.
    let copied = ndarray::ArrayD::<f32>::try_from(&tensor.copy().unwrap()).unwrap();
    assert_eq!(copied, array.view().into_dyn());
    refused(ndarray::ArrayD::<i32>::try_from(&tensor), ErrorKind::InvalidArgument, "float32");
    // Not in row-major order, and parts of others.
    let transposed = Tensor::from_array(&array.t()).unwrap();
    assert_eq!(transposed.view::<f32>().unwrap(), array.t().into_dyn());
    let part = Tensor::from_array(&array.slice(s![1.., ..;2])).unwrap();
    assert_eq!(part.as_slice::<f32>().unwrap(), [10.0, 12.0, 20.0, 22.0]);
    let reversed = Tensor::from_owned_array(array.clone().reversed_axes()).unwrap();
    assert_eq!(reversed.view::<f32>().unwrap(), array.t().into_dyn());
    let rest = Tensor::from_owned_array(array.clone().slice_move(s![1.., ..])).unwrap();
    assert_eq!(rest.view::<f32>().unwrap(), array.slice(s![1.., ..]).into_dyn());
    // Without a copy.
    let address = array.as_ptr();
    let mut owned = Tensor::from_owned_array(array).unwrap();
    assert_eq!(owned.as_slice::<f32>().unwrap().as_ptr(), address);
    owned.view_mut::<f32>().unwrap()[[0, 0]] = -1.0;
    assert_eq!(owned.as_slice::<f32>().unwrap()[0], -1.0);
    assert_eq!(Tensor::from_array(&arr0(2i32)).unwrap().to_scalar::<i32>().unwrap(), 2);
    assert_eq!(Tensor::zeros(DType::F32, &[0, 2]).unwrap().view::<f32>().unwrap().shape(), [0, 2]);
}

/// The version before, beside the newest: a program that is at either finds its arrays.
#[cfg(feature = "ndarray_016")]
#[test]
fn arrays_of_ndarray_0_16() {
    use dtg::ndarray_016::{Array2, ArrayViewD, ArrayViewMutD};
    let _world = world();
    let array = Array2::from_shape_fn((2, 3), |(row, column)| (3 * row + column) as f32);
    let mut tensor = Tensor::try_from(&array.t()).unwrap();
    assert_eq!((tensor.dims(), tensor.as_slice::<f32>().unwrap()), (vec![3, 2], &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0][..]));
    ArrayViewMutD::<f32>::try_from(&mut tensor).unwrap()[[2, 0]] = 7.0;
    assert_eq!(ArrayViewD::<f32>::try_from(&tensor).unwrap()[[2, 0]], 7.0);
    refused(ArrayViewD::<i64>::try_from(&tensor), ErrorKind::InvalidArgument, "int64");
    assert_eq!(dtg::ndarray_016::ArrayD::<f32>::try_from(&tensor).unwrap()[[2, 0]], 7.0);
    let owned = Tensor::try_from(array).unwrap();
    assert_eq!(owned.as_slice::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
}
