//! Ten tasks, each as short as it goes; RECIPES.md shows them one by one. All use the digits of tests/data, images of 8 x 8 and what they
//! show. capi/examples/recipes.c in Rust.
use dtg::*;

/// What every recipe has: data, a model with its graph and inputs.
struct Task {
    data: Dataset,
    model: Model,
    x: Value,
    y: Value,
    /// For what is served.
    file: String,
}

impl Task {
    fn begin(path: &str, label: &str, file: &str) -> Result<Self> {
        let data = Dataset::csv(path, &Csv { label: Some(label), ..Default::default() })?.scale(0, 16.0)?;
        let data = data.shuffle(0, 1)?.batch(32, true)?;
        let model = Model::new(Graph::new()?, 1)?;
        let x = model.placeholder("x", DType::F32, Some(&[-1, 64]))?;
        let y = model.placeholder("y", DType::I64, Some(&[-1]))?;
        Ok(Self { data, model, x, y, file: file.into() })
    }

    /// One epoch with Adam; the loss of its last step.
    fn train(&mut self, loss: Value) -> Result<f32> {
        // Of an embedding only the rows that were used move.
        let training = self.model.minimize(loss, &Optimizer { lazy: true, ..Optimizer::adam(0.01) })?;
        let init = self.model.init()?;
        let session = Session::connect("local", &self.model)?;
        session.run_target(init)?;
        let mut last = 0.0;
        for batch in self.data.by_ref() {
            let batch = batch?;
            let run = session.run().feed(self.x, &batch[0]).feed(self.y, &batch[1]);
            last = run.fetch(loss).target(training.train).call()?.scalar::<f32>(0)?;
        }
        Ok(last)
    }

    fn dense(&mut self, x: Value, units: i64, activation: Activation) -> Result<Value> {
        self.model.dense(x, &Dense { units, activation, ..Default::default() })
    }

    fn reshaped(&mut self, x: Value, dims: &[i64]) -> Result<Value> {
        let shape = self.model.constant(&Tensor::from_slice(&[dims.len()], dims)?)?;
        ops::reshape(&self.model, x, shape).build()
    }

    /// The labels as numbers in a column, [batch, 1].
    fn column(&mut self) -> Result<Value> {
        let numbers = ops::cast(&self.model, self.y, DType::F32).build()?;
        self.reshaped(numbers, &[-1, 1])
    }
}

/// Regression: a number for each row. Here it is the number that the image shows.
fn regression(mut t: Task) -> Result<f32> {
    let hidden = t.dense(t.x, 32, Activation::Relu)?;
    let number = t.dense(hidden, 1, Activation::None)?;
    let wanted = t.column()?;
    let loss = t.model.mean_squared_error(wanted, number)?;
    t.train(loss)
}

/// An image classifier: convolutions over [batch, height, width, channels].
fn images(mut t: Task) -> Result<f32> {
    let image = t.reshaped(t.x, &[-1, 8, 8, 1])?;
    let conv = Conv2D { filters: 8, padding: Padding::Same, activation: Activation::Relu, ..Default::default() };
    let convolved = t.model.conv2d(image, &conv)?;
    let pooled = t.model.max_pool2d(convolved, &Pool2D::default())?;
    let flat = t.model.flatten(pooled)?;
    let logits = t.dense(flat, 10, Activation::None)?;
    let loss = t.model.sparse_softmax_cross_entropy(t.y, logits)?;
    t.train(loss)
}

/// Embeddings: a vector per number, learned. Here one for each digit, from which its image is to be drawn.
fn embeddings(mut t: Task) -> Result<f32> {
    let vector = t.model.embedding(t.y, &Embedding { rows: 10, width: 4, ..Default::default() })?;
    let drawn = t.dense(vector, 64, Activation::Sigmoid)?;
    let loss = t.model.mean_squared_error(t.x, drawn)?;
    t.train(loss)
}

/// Texts that are fed: a vocabulary gives them numbers, row 0 of the table is for all that it does not know. Here the names of digits.
fn texts(mut t: Task) -> Result<f32> {
    let words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    let vocabulary = Tensor::from_strings(&[10], &words)?;
    let known = Lookup { vocabulary: Some(&vocabulary), ..Default::default() };
    // Instead of this a program has a placeholder of DType::STRING.
    let fed = t.model.lookup(t.y, &Lookup { invert: true, no_oov: true, ..known })?;
    let numbers = t.model.lookup(fed, &known)?;
    let vector = t.model.embedding(numbers, &Embedding { rows: 11, width: 4, ..Default::default() })?;
    let drawn = t.dense(vector, 64, Activation::Sigmoid)?;
    let loss = t.model.mean_squared_error(t.x, drawn)?;
    t.train(loss)
}

/// One-hot: a column whose numbers stand for names becomes as many columns of 0 and 1. Here pixel 20, as if its 17 shades were names.
fn one_hot(mut t: Task) -> Result<f32> {
    let sizes = t.model.constant(&Tensor::from_slice(&[3], &[20i64, 1, 43])?)?;
    let axis = t.model.scalar(1i32)?;
    let parts = ops::split_v(&t.model, t.x, sizes, axis, 3).build()?;
    let numbers = t.model.expr(parts[1]) * 16.0; // all columns were divided by that
    let names = numbers.cast(DType::I64).one_hot(17, 1f32, 0f32).value()?;
    let columns = t.reshaped(names, &[-1, 17])?;
    let all = ops::concat_v2(&t.model, &[parts[0], columns, parts[2]], axis).build()?;
    let logits = t.dense(all, 10, Activation::None)?;
    let loss = t.model.sparse_softmax_cross_entropy(t.y, logits)?;
    t.train(loss)
}

/// Several outputs: one trunk, two heads, one loss that is the sum of theirs.
fn outputs(mut t: Task) -> Result<f32> {
    let hidden = t.dense(t.x, 32, Activation::Relu)?;
    let logits = t.dense(hidden, 10, Activation::None)?;
    let number = t.dense(hidden, 1, Activation::None)?;
    let wanted = t.column()?;
    let first = t.model.sparse_softmax_cross_entropy(t.y, logits)?;
    let second = t.model.mean_squared_error(wanted, number)?;
    let loss = (t.model.expr(first) + second).value()?;
    t.train(loss)
}

/// A loss of one's own: any nodes that end in a scalar. Here log(cosh(error)), which outliers pull less.
fn own_loss(mut t: Task) -> Result<f32> {
    let number = t.dense(t.x, 1, Activation::None)?;
    let wanted = t.column()?;
    let error = t.model.expr(number) - wanted;
    let loss = error.cosh().log().mean([0, 1]).value()?;
    t.train(loss)
}

/// A sequence: an image read row by row, 8 steps of 8 numbers, by an LSTM. Steps beyond the last row with ink do not count.
fn sequences(mut t: Task) -> Result<f32> {
    let steps = t.reshaped(t.x, &[-1, 8, 8])?;
    let places = t.model.constant(&Tensor::from_slice(&[8], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])?)?;
    let last = (t.model.expr(steps).sum([2]).sign() * places).max([1]);
    let lstm = Recurrent { units: 32, lengths: Some(last.cast(DType::I64).value()?), ..Default::default() };
    let read = t.model.recurrent(steps, &lstm)?;
    let logits = t.dense(read.hidden, 10, Activation::None)?;
    let loss = t.model.sparse_softmax_cross_entropy(t.y, logits)?;
    t.train(loss)
}

/// A switch: dropout and batch normalization do their work in training only. It is off unless a run feeds it, so who serves need not know.
fn switched(mut t: Task) -> Result<f32> {
    let off = t.model.scalar(false)?;
    let training = ops::placeholder_with_default(&t.model, off, Some(&[])).build()?;
    let hidden = t.dense(t.x, 32, Activation::Relu)?;
    let normal = t.model.batch_norm(hidden, &BatchNorm { training: Some(training), ..Default::default() })?;
    let step = t.model.global_step()?.read;
    let dropped = t.model.dropout(normal, 0.2, step, Some(training))?;
    let logits = t.dense(dropped, 10, Activation::None)?;
    let loss = t.model.sparse_softmax_cross_entropy(t.y, logits)?;
    let train = t.model.minimize(loss, &Optimizer::default())?.train;
    let init = t.model.init()?;
    let session = Session::connect("local", &t.model)?;
    session.run_target(init)?;
    let yes = Tensor::scalar(true)?;
    let mut last = None;
    for batch in t.data.by_ref() {
        let batch = batch?;
        session.run().feed(t.x, &batch[0]).feed(t.y, &batch[1]).feed(training, &yes).target(train).call()?;
        last = batch.into_iter().next();
    }
    // Served from a file; the last batch once more, with the switch off.
    t.model.export(&session, &t.file, &Export { inputs: &[("pixels", t.x)], outputs: &[("scores", logits)], freeze: false })?;
    let (served, server) = Model::load(&t.file)?;
    let Some(pixels) = last else { return Ok(0.0) };
    let found = server.run().feed(served.endpoint("pixels")?, &pixels).fetch(served.endpoint("scores")?).call()?;
    Ok(found.slice::<f32>(0)?[0])
}

/// Serving from many threads: one callable, prepared once, called by all of them at once.
fn serving(mut t: Task) -> Result<f32> {
    let chances = t.dense(t.x, 10, Activation::Softmax)?;
    let init = t.model.init()?;
    let session = Session::connect("local", &t.model)?;
    session.run_target(init)?;
    let ask = session.prepare(&[t.x], &[chances], &[])?;
    let Some(batch) = t.data.next_element()? else { return Ok(0.0) };
    let image = &batch[0];
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                let ask = ask.clone();
                scope.spawn(move || -> Result<f32> {
                    let mut sum = 0.0;
                    for _ in 0..100 {
                        sum += ask.run(&[image])?.slice::<f32>(0)?[0];
                    }
                    Ok(sum)
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().expect("a client that does not panic")).sum()
    })
}

fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or("tests/data/digits.csv.gz".into());
    let file = std::env::args().nth(2).unwrap_or("recipe.dtg".into());
    type Recipe = fn(Task) -> Result<f32>;
    let recipes: [(&str, Recipe); 10] = [
        ("regression", regression),
        ("images", images),
        ("embeddings", embeddings),
        ("texts", texts),
        ("one-hot", one_hot),
        ("outputs", outputs),
        ("own loss", own_loss),
        ("sequences", sequences),
        ("a switch", switched),
        ("serving", serving),
    ];
    for (name, recipe) in recipes {
        println!("{name}: {:.4}", recipe(Task::begin(&path, "c64", &file)?)?);
    }
    Ok(())
}
