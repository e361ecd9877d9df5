// Strategies: one model trained on several devices, or by several workers. One thread, the one that builds the model.

package org.dtg;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/**
 * One model trained on several devices, or by several workers, behind one interface. Everything here adds nodes to the model's graph; sessions
 * run what comes of it. Functions given to {@link #run} are called on the calling thread, once per replica.
 */
public final class Strategy extends Handle {
  /** For {@link #reduce(Reduction, PerReplica, int)}: over replicas only. */
  public static final int NO_AXIS = Integer.MIN_VALUE;

  /** How a value changes a variable; in the order of C's numbers. */
  public enum Assign {
    /** It takes its place. */
    SET,
    /** It is added. */
    ADD,
    /** It is subtracted. */
    SUB
  }

  /** One value for each replica of one strategy. */
  public static final class PerReplica {
    final long id;

    PerReplica(long id) {
      this.id = id;
    }

    static long id(PerReplica value) {
      return value == null ? 0 : value.id;
    }
  }

  /** What is built once per replica. */
  @FunctionalInterface
  public interface Replica {
    /**
     * Adds the replica's part.
     *
     * @param replica which, from 0
     * @param inputs its values of the run's inputs
     * @return its results
     */
    List<Value> build(int replica, List<Value> inputs);
  }

  private final Graph graph;

  /**
   * A strategy for a model, which it keeps alive.
   *
   * @param model the model
   * @param options what it is
   */
  public Strategy(Model model, StrategyOptions options) {
    super(Kind.STRATEGY, make(model, options));
    this.graph = model.graph;
  }

  private static long make(Model model, StrategyOptions options) {
    return given(model, "model").build(it -> {
      long workers = hold(given(options, "options").group);
      try {
        return Native.strategyCreate(it, workers, options.packet().bytes());
      } finally {
        drop(options.group);
      }
    });
  }

  @FunctionalInterface
  private interface Call {
    long on(long strategy);
  }

  private long call(Call call) {
    return build(call::on);
  }

  private Value value(Call call) {
    return Value.orNull(graph, call(call));
  }

  private List<Value> values(long[] ids) {
    List<Value> out = new ArrayList<>();
    for (long id : ids) out.add(Value.orNull(graph, id));
    return out;
  }

  /**
   * How many replicas this process builds.
   *
   * @return their number
   */
  public int replicas() {
    return (int) call(it -> Native.strategyDescribe(it)[0]);
  }

  /**
   * How many replicas make one update together: to divide a global batch, or a loss, by.
   *
   * @return their number
   */
  public int replicasInSync() {
    return (int) call(it -> Native.strategyDescribe(it)[1]);
  }

  /**
   * Builds in the scope: variables that are made inside, by whatever layer, are the strategy's.
   *
   * @param <T> what is built
   * @param build builds it
   * @return what it answers
   * @throws DtgException.FailedPrecondition when the scope of another strategy is open on the model
   */
  public <T> T scope(Supplier<T> build) {
    return build(mine -> {
      Native.strategyScope(mine, true);
      try {
        return build.get();
      } finally {
        Native.strategyScope(mine, false);
      }
    });
  }

  /**
   * Calls a function once per replica, in order, each time in its replica context. When it throws, the model is as before.
   *
   * @param build adds one replica's part
   * @param inputs per-replica values, of which it is given its own
   * @return its results, as per-replica values
   */
  public List<PerReplica> run(Replica build, PerReplica... inputs) {
    return build(mine -> {
      long[] made = {};
      long replicas = Native.strategyDescribe(mine)[0];
      for (int r = 0; r < replicas; r++) {
        Native.strategyBeginReplica(mine, r);
        long[] results = null;
        try {
          long[] own = new long[inputs.length];
          for (int i = 0; i < own.length; i++) own[i] = Native.strategyLocal(mine, PerReplica.id(inputs[i]));
          results = Value.ids(build.build(r, values(own)), "results");
        } finally {
          if (results == null) Native.strategyAbandonRun(mine);
        }
        made = Native.strategyEndReplica(mine, results);
      }
      List<PerReplica> out = new ArrayList<>();
      for (long id : made) out.add(new PerReplica(id));
      return out;
    });
  }

  /**
   * The sum or the mean over replicas.
   *
   * @param reduction SUM or MEAN
   * @param value what is reduced
   * @return one value
   */
  public Value reduce(Reduction reduction, PerReplica value) {
    return reduce(reduction, value, NO_AXIS);
  }

  /**
   * The same, each added up along an axis as well; the mean is over all elements.
   *
   * @param reduction SUM or MEAN
   * @param value what is reduced
   * @param axis negative: from behind
   * @return one value
   */
  public Value reduce(Reduction reduction, PerReplica value, int axis) {
    return value(it -> Native.strategyReduce(it, reduction.ordinal(), PerReplica.id(value), axis));
  }

  /**
   * The replicas' values one behind the other.
   *
   * @param value what is gathered
   * @param axis along which
   * @return one value
   */
  public Value gather(PerReplica value, int axis) {
    return value(it -> Native.strategyGather(it, PerReplica.id(value), axis));
  }

  /**
   * Makes values[r] the value of replica r.
   *
   * @param values one per replica
   * @return the per-replica value
   */
  public PerReplica distribute(List<Value> values) {
    return new PerReplica(call(it -> Native.strategyDistribute(it, Value.ids(values, "values"))));
  }

  /**
   * The same value for every replica.
   *
   * @param value the value
   * @return the per-replica value
   */
  public PerReplica broadcast(Value value) {
    return new PerReplica(call(it -> Native.strategyBroadcast(it, Value.id(value, "value"))));
  }

  /**
   * A batch cut along its first axis as evenly as can be: the first replicas have a row more.
   *
   * @param batch the batch
   * @return a share for each replica
   */
  public PerReplica split(Value batch) {
    return new PerReplica(call(it -> Native.strategySplit(it, Value.id(batch, "batch"))));
  }

  /**
   * The values of all replicas of this process.
   *
   * @param value a per-replica value
   * @return one for each
   */
  public List<Value> localResults(PerReplica value) {
    return build(mine -> values(Native.strategyLocalResults(mine, PerReplica.id(value))));
  }

  /**
   * Adds the gradients of each replica's loss, reduces them and applies the result to every copy of the variables. MEAN is right for losses that
   * are means over equal shares; where shares differ, let losses be sums divided by the rows of the whole batch, and ask for SUM.
   *
   * @param losses a scalar for each replica
   * @param reduction SUM or MEAN
   * @param optimizer how; null: SGD
   * @return what was added
   */
  public Training minimize(PerReplica losses, Reduction reduction, Optimizer optimizer) {
    return build(mine -> {
      byte[] how = Optimizer.packet(optimizer).bytes();
      return Training.of(graph, Native.strategyMinimize(mine, PerReplica.id(losses), reduction.ordinal(), how));
    });
  }

  /**
   * PARAMETER_SERVER: the targets that the last {@link #minimize} added.
   *
   * @return this worker's share
   */
  public Replicated replicated() {
    return build(mine -> Replicated.of(graph, Native.strategyReplicated(mine)));
  }

  /**
   * Writes to a variable: outside of a run to all copies; in a run what the replicas give is combined by the variable's aggregation (on read: each
   * replica writes its own), and {@link #updates} is the target.
   *
   * @param variable the variable
   * @param how what the value does to it
   * @param value the value
   * @return the target; null where other replicas are still to come
   */
  public Value assign(Variable variable, Assign how, Value value) {
    return value(it -> Native.strategyAssign(it, Value.id(variable.handle(), "variable"), how.ordinal(), Value.id(value, "value")));
  }

  /**
   * The target of everything that the last run assigned in its replicas.
   *
   * @return the target
   */
  public Value updates() {
    return value(Native::strategyUpdates);
  }

  /**
   * The target that gives every worker what the one has that has made the most steps: after {@link Group#reform}, and when one of them has restored
   * what it saved. A process that begins runs that of {@link Model#init} meanwhile. Other kinds: a target that does nothing.
   *
   * @return the target
   */
  public Value level() {
    return value(Native::strategyLevel);
  }
}
