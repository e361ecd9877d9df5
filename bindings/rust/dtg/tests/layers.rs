//! Normalizations, layers over sequences and the further convolutions: a small network of them learns, every one of them is made with the
//! shape that it should have, and what does not fit is refused in the words of the library. One test at a time.

mod common;

use common::{refused, world};
use dtg::{
    Attention, BatchNorm, Combiner, Conv, DType, Dense, Direction, EmbeddingBag, ErrorKind, Graph, Initializer, Model, Noise, Norm,
    Optimizer, Padding, PositionEmbedding, PositionKind, Recurrent, RecurrentKind, Scope, Session, Tensor, Value, VariableSpec,
    ops,
};

fn model() -> Model {
    Model::new(Graph::new().unwrap(), 3).unwrap()
}

/// Sequences of 6 steps of 4 numbers in [-0.5, 0.5), and whether the last step of each is greater than its first.
fn sequences() -> (Vec<f32>, Vec<i64>) {
    let mut state = 1u32;
    let numbers: Vec<f32> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    })
    .take(16 * 6 * 4)
    .collect();
    let classes = numbers.chunks(24).map(|steps| i64::from(steps[20] > steps[0])).collect();
    (numbers, classes)
}

/// A convolution that looks back, batch normalization with a switch, a recurrent layer both ways, attention, layer normalization.
#[test]
fn a_network_of_them_learns() {
    let _world = world();
    let model = model();
    let x = model.placeholder("x", DType::F32, Some(&[-1, 6, 4])).unwrap();
    let labels = model.placeholder("labels", DType::I64, Some(&[-1])).unwrap();
    let training = model.placeholder("training", DType::BOOL, Some(&[])).unwrap();
    let y = model.conv1d(x, &Conv { filters: 6, causal: true, ..Default::default() }).unwrap();
    let norm = BatchNorm { momentum: 0.5, training: Some(training), ..Default::default() };
    let y = model.batch_norm(y, &norm).unwrap();
    let gru = Recurrent { kind: RecurrentKind::Gru, direction: Direction::Both, units: 5, ..Default::default() };
    let steps = model.recurrent(y, &gru).unwrap();
    assert_eq!(steps.cell, None);
    assert_eq!(model.shape(steps.outputs).unwrap(), Some(vec![-1, 6, 10]));
    assert_eq!(model.shape(steps.hidden).unwrap(), Some(vec![-1, 10]));
    let heads = Attention { heads: 2, key_width: 2, ..Default::default() };
    let y = model.attention(steps.outputs, steps.outputs, &heads).unwrap();
    let y = model.layer_norm(y, &Norm::default()).unwrap();
    let y = model.global_avg_pool(y, false).unwrap();
    let logits = model.dense(y, &Dense { units: 2, ..Default::default() }).unwrap();
    let loss = model.sparse_softmax_cross_entropy(labels, logits).unwrap();
    let train = model.minimize(loss, &Optimizer::adam(0.02)).unwrap().train;
    let init = model.init().unwrap();
    let mean = model.find_variable("batch_normalization/moving_mean").unwrap();
    assert!(!mean.trainable);
    let session = Session::connect("local", &model).unwrap();
    session.run_target(init).unwrap();

    let (numbers, classes) = sequences();
    let (numbers, classes) = (Tensor::from_slice(&[16, 6, 4], &numbers).unwrap(), Tensor::from_slice(&[16], &classes).unwrap());
    let (on, off) = (Tensor::from_slice(&[], &[true]).unwrap(), Tensor::from_slice(&[], &[false]).unwrap());
    let run = |mode| session.run().feed(x, &numbers).feed(labels, &classes).feed(training, mode);
    let step = |mode| drop(run(mode).target(train).call().unwrap());
    let moving = || session.run().fetch(mean.read).call().unwrap().slice::<f32>(0).unwrap().to_vec();
    let first = run(&on).fetch(loss).call().unwrap().scalar::<f32>(0).unwrap();
    assert_eq!(moving(), [0.0; 6], "a run that is no step");
    step(&on);
    let moved = moving();
    assert_ne!(moved, [0.0; 6]);
    step(&off);
    assert_eq!(moving(), moved, "a step that is no training");
    for _ in 0..60 {
        step(&on);
    }
    let last = run(&off).fetch(loss).call().unwrap().scalar::<f32>(0).unwrap();
    assert!(last < first / 2.0, "{first}, then {last}");
}

#[test]
fn every_layer_has_its_shape() {
    let _world = world();
    let m = model();
    let sequence = m.placeholder("sequence", DType::F32, Some(&[2, 5, 4])).unwrap();
    let image = m.placeholder("image", DType::F32, Some(&[2, 8, 6, 4])).unwrap();
    let volume = m.placeholder("volume", DType::F32, Some(&[2, 5, 8, 6, 4])).unwrap();
    let lengths = m.placeholder("lengths", DType::I32, Some(&[2])).unwrap();
    let state = m.placeholder("state", DType::F32, Some(&[2, 3])).unwrap();
    let mask = m.placeholder("mask", DType::BOOL, Some(&[2, 5, 5])).unwrap();
    let lstm = Recurrent {
        name: Some("memory"),
        units: 3,
        direction: Direction::Backward,
        lengths: Some(lengths),
        hidden: Some(state),
        cell: Some(state),
        kernel: Initializer::Orthogonal,
        no_forget_bias: true,
        ..Default::default()
    };
    let memory = m.recurrent(sequence, &lstm).unwrap();
    let variables = m.variable_count();
    let again = m.recurrent(sequence, &Recurrent { units: 3, weights_of: Some("memory"), ..Default::default() }).unwrap();
    assert_eq!(m.variable_count(), variables, "weights of their own");
    let simple = Recurrent { kind: RecurrentKind::Simple, units: 6, no_bias: true, ..Default::default() };
    let heads = Attention {
        name: Some("look"),
        heads: 2,
        key_width: 3,
        value_width: 2,
        output_width: 7,
        causal: true,
        mask: Some(mask),
        lengths: Some(lengths),
        key: Some(sequence),
        ..Default::default()
    };
    let steps = Conv { filters: 3, kernel_size: [2, 0, 0], dilations: [2, 0, 0], ..Default::default() };
    let film = Conv { filters: 3, kernel_size: [2, 3, 4], strides: [1, 2, 1], ..Default::default() };
    let larger = Conv { filters: 3, strides: [2, 0, 0], padding: Padding::Same, ..Default::default() };
    let made: [(dtg::Result<Value>, &[i64]); 17] = [
        (m.rms_norm(sequence, &Norm { name: Some("root"), ..Default::default() }), &[2, 5, 4]),
        (m.group_norm(image, &Norm { groups: 2, no_scale: true, ..Default::default() }), &[2, 8, 6, 4]),
        (m.layer_norm(image, &Norm { no_center: true, ..Default::default() }), &[2, 8, 6, 4]),
        (m.batch_norm(image, &BatchNorm { no_center: true, no_scale: true, ..Default::default() }), &[2, 8, 6, 4]),
        (Ok(memory.outputs), &[2, 5, 3]),
        (Ok(memory.hidden), &[2, 3]),
        (Ok(memory.cell.unwrap()), &[2, 3]),
        (Ok(again.outputs), &[2, 5, 3]),
        (m.recurrent(sequence, &simple).map(|steps| steps.outputs), &[2, 5, 6]),
        (m.attention(sequence, sequence, &heads), &[2, 5, 7]),
        (m.conv1d(sequence, &steps), &[2, 3, 3]),
        (m.conv3d(volume, &film), &[2, 4, 3, 3, 3]),
        (m.conv2d_transpose(image, &larger), &[2, 16, 12, 3]),
        (m.depthwise_conv2d(image, &Conv { multiplier: 2, ..Default::default() }), &[2, 6, 4, 8]),
        (m.separable_conv2d(image, &Conv { filters: 5, no_bias: true, ..Default::default() }), &[2, 6, 4, 5]),
        (m.global_avg_pool(image, true), &[2, 1, 1, 4]),
        (m.global_max_pool(volume, false), &[2, 4]),
    ];
    for (value, shape) in made {
        let value = value.unwrap();
        assert_eq!(m.shape(value).unwrap().as_deref(), Some(shape), "{}", m.name(value).unwrap());
    }
    for (bilinear, high, wide) in [(false, 2, 3), (true, 3, 1)] {
        let larger = m.up_sampling2d(image, high, wide, bilinear).unwrap();
        assert_eq!(m.shape(larger).unwrap(), Some(vec![2, 8 * high, 6 * wide, 4]));
    }
    for (name, dims) in [
        ("memory/recurrent_kernel", vec![3, 12]),
        ("root/scale", vec![4]),
        ("conv3d/kernel", vec![2, 3, 4, 4, 3]),
        ("look/attention_output/kernel", vec![2, 2, 7]),
        ("separable_conv2d/pointwise_kernel", vec![1, 1, 4, 5]),
    ] {
        assert_eq!(m.find_variable(name).unwrap().dims, dims, "{name}");
    }
    refused(m.find_variable("batch_normalization/gamma"), ErrorKind::NotFound, "gamma");
}

/// Rows of length 1 and at right angles.
/// Places, bags and chance have their shapes; attention step by step gives what it gives at once.
#[test]
fn places_bags_and_chance() {
    let _world = world();
    let m = model();
    let sequence = m.placeholder("sequence", DType::F32, Some(&[2, 5, 4])).unwrap();
    let image = m.placeholder("image", DType::F32, Some(&[2, 8, 6, 4])).unwrap();
    let ids = m.placeholder("ids", DType::I64, Some(&[2, 3])).unwrap();
    let lengths = m.placeholder("lengths", DType::I32, Some(&[2])).unwrap();
    let step = m.scalar(3i64).unwrap();
    let shape = |value: Value| m.shape(value).unwrap().unwrap();
    assert_eq!(shape(m.position_embedding(sequence, &PositionEmbedding::default()).unwrap()), [2, 5, 4]);
    let learned = PositionEmbedding { kind: PositionKind::Learned, longest: 9, ..Default::default() };
    assert_eq!(shape(m.position_embedding(sequence, &learned).unwrap()), [2, 5, 4]);
    let bag = EmbeddingBag { rows: 7, width: 6, combiner: Combiner::SqrtN, lengths: Some(lengths), ..Default::default() };
    assert_eq!(shape(m.embedding_bag(ids, &bag).unwrap()), [2, 6]);
    for kind in [Noise::SpatialDropout, Noise::Gaussian, Noise::GaussianDropout, Noise::AlphaDropout] {
        assert_eq!(shape(m.noise(sequence, kind, 0.5, step, None).unwrap()), [2, 5, 4]);
    }
    assert_eq!(shape(m.adaptive_avg_pool(image, &[3, 4]).unwrap()), [2, 3, 4, 4]);
    assert_eq!(shape(m.adaptive_max_pool(sequence, &[2]).unwrap()), [2, 2, 4]);
    refused(m.noise(image, Noise::GaussianDropout, 1.0, step, None), ErrorKind::InvalidArgument, "[0, 1)");
    refused(m.adaptive_avg_pool(image, &[3]), ErrorKind::InvalidArgument, "2 are needed");

    let layer = Attention { name: Some("look"), heads: 2, key_width: 3, causal: true, ..Default::default() };
    let whole = m.within(Scope::Recompute, |m| m.attention(sequence, sequence, &layer)).unwrap();
    let layer = Attention { weights_of: Some("look"), ..layer };
    let cut = |from: i32, count: i32| {
        let (begin, size) = (m.vector(&[0, from, 0]).unwrap(), m.vector(&[2, count, 4]).unwrap());
        ops::slice(&m, sequence, begin, size).build().unwrap()
    };
    let cache = m.attention_cache(cut(0, 4), &layer, 5).unwrap();
    let (out, after) = m.attention_step(cut(4, 1), &layer, &cache).unwrap();
    assert_eq!(shape(out), [2, 1, 4]);
    assert_eq!(shape(after.keys), [2, 5, 2, 3]);
    let init = m.init().unwrap();
    let session = Session::connect("local", &m).unwrap();
    session.run_target(init).unwrap();
    let numbers: Vec<f32> = (0..40).map(|i| (i % 7) as f32 - 3.0).collect();
    let given = Tensor::from_slice(&[2, 5, 4], &numbers).unwrap();
    let results = session.run().feed(sequence, &given).fetch(whole).fetch(out).call().unwrap();
    let (all, last) = (results.slice::<f32>(0).unwrap(), results.slice::<f32>(1).unwrap());
    for b in 0..2 {
        for i in 0..4 {
            assert!((all[(b * 5 + 4) * 4 + i] - last[b * 4 + i]).abs() < 1e-5);
        }
    }
}

#[test]
fn orthogonal_first_values() {
    let _world = world();
    let model = model();
    let spec = VariableSpec { dims: &[3, 5], initializer: Initializer::Orthogonal, ..VariableSpec::new("w") };
    let w = model.add_variable(&spec).unwrap();
    let square = ops::mat_mul(&model, w.read, w.read).transpose_b(true).build().unwrap();
    let session = Session::connect("local", &model).unwrap();
    session.run_target(w.assign).unwrap();
    let out = session.run().fetch(square).call().unwrap();
    for (i, value) in out.slice::<f32>(0).unwrap().iter().enumerate() {
        let wanted = if i % 4 == 0 { 1.0 } else { 0.0 };
        assert!((value - wanted).abs() < 1e-4, "{value} at {i}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let _world = world();
    let m = model();
    let sequence = m.placeholder("s", DType::F32, Some(&[2, 3, 4])).unwrap();
    let image = m.placeholder("i", DType::F32, Some(&[2, 8, 8, 6])).unwrap();
    let flag = m.placeholder("f", DType::F32, Some(&[])).unwrap();
    let wrong = ErrorKind::InvalidArgument;
    refused(m.batch_norm(image, &BatchNorm { training: Some(flag), ..Default::default() }), wrong, "bool scalar");
    refused(m.batch_norm(image, &BatchNorm { momentum: 2.0, ..Default::default() }), wrong, "[0, 1]");
    refused(m.group_norm(image, &Norm { groups: 4, ..Default::default() }), wrong, "equal groups");
    refused(m.recurrent(sequence, &Recurrent::default()), wrong, "at least 1");
    refused(m.recurrent(image, &Recurrent { units: 1, ..Default::default() }), wrong, "rank");
    refused(m.recurrent(sequence, &Recurrent { units: 2, lengths: Some(flag), ..Default::default() }), wrong, "lengths");
    refused(m.attention(sequence, sequence, &Attention::default()), wrong, "at least 1");
    let heads = Attention { heads: 1, key_width: 1, weights_of: Some("nobody"), ..Default::default() };
    refused(m.attention(sequence, sequence, &heads), ErrorKind::NotFound, "nobody");
    refused(m.conv1d(sequence, &Conv::default()), wrong, "filters");
    refused(m.conv1d(sequence, &Conv { filters: 2, kernel_size: [4, 0, 0], ..Default::default() }), wrong, "does not fit");
    let dilated = Conv { filters: 1, dilations: [2, 0, 0], ..Default::default() };
    refused(m.conv2d_transpose(image, &dilated), ErrorKind::Unimplemented, "dilation");
    refused(m.depthwise_conv2d(image, &Conv { strides: [1, 2, 0], ..Default::default() }), wrong, "equal");
    refused(m.up_sampling2d(image, 0, 1, false), wrong, "at least 1");
    assert_eq!(m.variable_count(), 0, "what was refused leaves no variables");
}
