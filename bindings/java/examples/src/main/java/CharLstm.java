// CharLstm.java: a recurrent network learns six words, letter by letter, in sequences of different lengths, and then writes them from
// their first letter; capi/examples/char_lstm.c in Java. Alone it trains in this process; as the worker of a job (TF_CONFIG) it keeps
// its variables on the ps, with the same losses. --device places everything else, and --cell the steps of the network, inside the loops.
//
//   java ... CharLstm [--device /device:EMU:0 [--cell /device:EMU:1]]
//   dtg run --local --ps 1 --workers 1 -- java ... CharLstm

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.List;
import org.dtg.*;

class CharLstm {
  static final int LETTERS = 27; // letter 0 ends a word
  static final int EMBEDDING = 8;
  static final int HIDDEN = 16;
  static final int SEQUENCES = 3;
  static final int STEPS = 60;
  static final int LONGEST = 12;
  static final String[][] WORDS = {{"if", "loop", "case"}, {"graph", "tensor", "variable"}};

  final Graph graph;
  final String cellDevice; // "": as what is around it
  final Value rows, kernel, bias, output, offset; // weights
  final Value text, lengths, first; // fed
  final Value loss, written;
  final Training training;

  CharLstm(Graph graph, Model model, String cellDevice) {
    this.graph = graph;
    this.cellDevice = cellDevice;
    rows = variable(model, "embedding", Initializer.of(Initializer.Kind.GLOROT_UNIFORM), LETTERS, EMBEDDING);
    kernel = variable(model, "kernel", Initializer.of(Initializer.Kind.GLOROT_UNIFORM), EMBEDDING + HIDDEN, 4 * HIDDEN);
    bias = variable(model, "bias", Initializer.ZEROS, 4 * HIDDEN);
    output = variable(model, "output", Initializer.of(Initializer.Kind.GLOROT_UNIFORM), HIDDEN, LETTERS);
    offset = variable(model, "offset", Initializer.ZEROS, LETTERS);
    text = graph.placeholder("text", DType.I32, -1, SEQUENCES);
    lengths = graph.placeholder("lengths", DType.I32, SEQUENCES);
    first = graph.placeholder("first", DType.I32, new long[0]);
    loss = loss();
    written = write();
    training = model.minimize(loss, Optimizer.adam().rate(0.05));
  }

  static Value variable(Model model, String name, Initializer initializer, long... shape) {
    return model.addVariable(new VariableSpec(name, shape).initializer(initializer)).read();
  }

  static Value ints(Graph graph, int... values) {
    try (Tensor tensor = Tensor.of(values)) {
      return graph.constant(tensor);
    }
  }

  static Value zeros(Graph graph, int rows) {
    try (Tensor tensor = Tensor.of(new float[rows * HIDDEN], rows, HIDDEN)) {
      return graph.constant(tensor);
    }
  }

  /** One step of an LSTM: {@code letter} is a vector, one element per sequence. The answer is the new h and c. */
  @SuppressWarnings("try") // the scope is only there to be left
  List<Value> cell(Graph b, Value letter, Value h, Value c) {
    try (Graph.Scope scope = b.device(cellDevice)) {
      return step(b, letter, h, c);
    }
  }

  List<Value> step(Graph b, Value letter, Value h, Value c) {
    Value x = b.gatherV2(rows, letter, b.constant(0));
    Value z = b.biasAdd(b.matMul(b.concatV2(List.of(x, h), b.constant(1)), kernel), bias);
    List<Value> gates = b.split(b.constant(1), z, 4); // input, forget, candidate, output
    Value forget = b.sigmoid(b.addV2(gates.get(1), b.constant(1f)));
    Value next = b.addV2(b.mul(forget, c), b.mul(b.sigmoid(gates.get(0)), b.tanh(gates.get(2))));
    return List.of(b.mul(b.sigmoid(gates.get(3)), b.tanh(next)), next);
  }

  Value logits(Graph b, Value h) {
    return b.biasAdd(b.matMul(h, output), offset);
  }

  /**
   * A round: the time, h, c, and the list of all h. While all sequences go on the new state is taken as it is; afterwards those that have
   * ended keep theirs.
   */
  List<Value> round(Graph b, List<Value> v, Value shortest) {
    Value t = v.get(0);
    List<Value> next = cell(b, b.gatherV2(text, t, b.constant(0)), v.get(1), v.get(2));
    List<Value> state = b.ifElse(b.less(t, shortest), all -> next, some -> {
      Value running = some.expandDims(some.less(t, lengths), some.constant(1));
      return List.of(some.selectV2(running, next.get(0), v.get(1)), some.selectV2(running, next.get(1), v.get(2)));
    });
    return List.of(b.addV2(t, b.constant(1)), state.get(0), state.get(1), b.tensorListPushBack(v.get(3), state.get(0)));
  }

  /** The mean over all letters of all sequences, which are the columns of text; over time as long as the longest of them. */
  Value loss() {
    Graph g = graph;
    Value begin = zeros(g, SEQUENCES);
    Value shape = ints(g, SEQUENCES, HIDDEN);
    Value longest = g.max(lengths, g.constant(0)), shortest = g.min(lengths, g.constant(0));
    List<Value> start = List.of(g.constant(0), begin, begin, g.emptyTensorList(shape, g.constant(-1), DType.F32));
    List<Value> end = g.whileLoop(start, (b, v) -> b.less(v.get(0), longest), (b, v) -> round(b, v, shortest));
    Value all = g.reshape(g.tensorListStack(end.get(3), shape, DType.F32), ints(g, -1, HIDDEN));
    Value wanted = g.reshape(g.slice(text, ints(g, 1, 0), ints(g, -1, -1)), ints(g, -1));
    Value each = g.sparseSoftmaxCrossEntropyWithLogits(logits(g, all), wanted).loss();
    Value time = g.expandDims(g.range(g.constant(0), longest, g.constant(1)), g.constant(1));
    Value counts = g.reshape(g.cast(g.less(time, lengths), DType.F32), ints(g, -1));
    return g.realDiv(g.sum(g.mul(each, counts), g.constant(0)), g.sum(counts, g.constant(0)));
  }

  /** Goes on from a letter, with the likeliest one each time, until a word ends. */
  Value write() {
    Graph g = graph;
    Value begin = zeros(g, 1), none = ints(g);
    List<Value> start = List.of(g.constant(0), first, begin, begin, g.emptyTensorList(none, g.constant(-1), DType.I32));
    List<Value> end = g.whileLoop(start,
        (b, v) -> b.logicalAnd(b.less(v.get(0), b.constant(LONGEST)), b.greater(v.get(1), b.constant(0))),
        (b, v) -> {
          List<Value> next = cell(b, b.expandDims(v.get(1), b.constant(0)), v.get(2), v.get(3));
          Value best = b.argMax(logits(b, next.get(0)), b.constant(1), new Ops.ArgMaxOptions().outputType(DType.I32));
          Value letters = b.tensorListPushBack(v.get(4), v.get(1));
          return List.of(b.addV2(v.get(0), b.constant(1)), b.reshape(best, ints(b)), next.get(0), next.get(1), letters);
        });
    return g.tensorListStack(end.get(4), none, DType.I32);
  }

  /** One step on a column per word, a row more than the longest has letters. */
  float step(Session session, String[] words) {
    int[] sizes = new int[SEQUENCES];
    int count = 0;
    for (int k = 0; k < SEQUENCES; k++) count = Math.max(count, (sizes[k] = words[k].length()) + 1);
    int[] columns = new int[count * SEQUENCES];
    for (int k = 0; k < SEQUENCES; k++) {
      for (int t = 0; t < sizes[k]; t++) columns[t * SEQUENCES + k] = words[k].charAt(t) - 'a' + 1;
    }
    try (Tensor letters = Tensor.of(columns, count, SEQUENCES); Tensor all = Tensor.of(sizes)) {
      return session.run().feed(text, letters).feed(lengths, all).fetch(loss).targets(training.train()).callFloat();
    }
  }

  String write(Session session, char from) {
    StringBuilder word = new StringBuilder();
    try (Tensor letter = Tensor.scalar(from - 'a' + 1); Results out = session.run().feed(first, letter).fetch(written).call()) {
      for (int one : out.get(0).toInts()) word.append((char) (one - 1 + 'a'));
    }
    return word.toString();
  }

  static void train(CharLstm program, Model model, Session session) {
    session.run(model.init());
    for (int step = 1; step <= STEPS; step++) {
      float loss = program.step(session, WORDS[step % 2]);
      System.out.println("{\"step\": " + step + ", \"loss\": " + new BigDecimal(loss).setScale(6, RoundingMode.HALF_EVEN) + ", \"bits\": \""
          + String.format("%08x", Float.floatToIntBits(loss)) + "\"}");
    }
    for (String[] words : WORDS) {
      for (String word : words) {
        char from = word.charAt(0);
        System.out.println("{\"first\": \"" + from + "\", \"word\": \"" + program.write(session, from) + "\"}");
      }
    }
  }

  static void work(Cluster.Place place, String device, String cell) {
    try (Graph graph = new Graph(); Model model = new Model(graph, 7)) {
      if (place.cluster() == null) {
        graph.device(device);
        CharLstm program = new CharLstm(graph, model, cell);
        SessionOptions devices = new SessionOptions().emuDevices(device.contains("EMU") ? 2 : 0);
        try (Session session = Session.connect(null, "local", graph, devices)) {
          train(program, model, session);
        }
        return;
      }
      Task self = place.task();
      try (Server server = Server.start(place.cluster(), new ServerOptions().job(self.type()).task(self.index()))) {
        if (self.type().equals("ps")) {
          server.join(null);
          return;
        }
        graph.device(new DeviceSetter().cluster(place.cluster()).workerDevice("/job:" + self.type() + "/task:" + self.index() + device));
        CharLstm program = new CharLstm(graph, model, cell);
        try (Session session = Session.connect(server.target(), graph)) {
          train(program, model, session);
          session.endJob(null);
        }
      }
    }
  }

  static String option(String[] args, String name) {
    for (int i = 0; i + 1 < args.length; i += 2) {
      if (args[i].equals(name)) return args[i + 1];
    }
    return "";
  }

  public static void main(String[] args) {
    try (Cluster.Place place = Cluster.fromTfConfig()) {
      work(place, option(args, "--device"), option(args, "--cell"));
    } catch (DtgException e) {
      System.err.println(e.code() + ": " + e.getMessage());
      System.exit(1);
    }
  }
}
