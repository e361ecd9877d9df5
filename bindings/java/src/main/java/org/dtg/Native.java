// Every crossing into C, noun by noun, and nothing else: natives are static, handles are longs, texts are UTF-8 in byte arrays, structs are
// packets (Packet.java). Callers hold what they pass (Handle.hold). Any thread, under the rules of the noun.

package org.dtg;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;

final class Native {
  static {
    Library.load();
  }

  private Native() {}

  /** The bytes of a text; null stays null. */
  static byte[] utf8(String text) {
    return text == null ? null : whole(text, "a file or a name that it is in would be another's").getBytes(StandardCharsets.UTF_8);
  }

  /** The same text, refused where half of a surrogate pair stands alone: it is no character, and Java would write a question mark. */
  static String whole(String text, String hint) {
    for (int i = 0; i < text.length(); i++) {
      char half = text.charAt(i);
      if (!Character.isSurrogate(half)) continue;
      if (Character.isHighSurrogate(half) && i + 1 < text.length() && Character.isLowSurrogate(text.charAt(i + 1))) {
        i++;
        continue;
      }
      throw new DtgException.InvalidArgument(String.format("the text \"%s\\u%04x%s\" has half of a surrogate pair at index %d, which is no character and"
          + " has no bytes in UTF-8; %s", text.substring(Math.max(0, i - 40), i), (int) half, i + 1 < text.length() ? "..." : "", i, hint));
    }
    return text;
  }

  /** The columns of a table that are to be read. A list without one is not all of them: it was filled, and nothing came of it. */
  static List<String> columns(String[] names) {
    if (Handle.given(names, "columns").length == 0) {
      throw new DtgException.InvalidArgument("columns is an empty list, which names no column to read; name some, or leave columns out to read all");
    }
    for (int i = 0; i < names.length; i++) Handle.given(names[i], "columns[" + i + "]");
    return List.of(names);
  }

  /** A text that may be null for none. One that is empty was meant, as by a variable of the environment that is not set. */
  static String notEmpty(String text, String name) {
    if (text != null && text.isEmpty()) throw new DtgException.InvalidArgument(name + " is empty; give one, or null for none");
    return text;
  }

  /** The text of a path, which must be there. */
  static String path(java.nio.file.Path path, String name) {
    return Handle.given(path, name).toString();
  }

  /** The same text, refused where C would cut it at a NUL. */
  static String plain(String text) {
    if (text != null && text.indexOf('\0') >= 0) {
      throw new DtgException.InvalidArgument("the text \"" + text.replace("\0", "\\0") + "\" has a NUL inside; leave it out");
    }
    return text;
  }

  /** The text of bytes; null stays null. */
  static String text(byte[] bytes) {
    return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
  }

  // base, runtime
  static native int abiVersion();

  static native byte[] version();

  static native boolean hasFeature(byte[] name);

  static native long dtypeSize(int dtype);

  static native byte[] dtypeName(int dtype);

  static native int dtypeFromName(byte[] name);

  static native long liveHandles();

  static native byte[] codeName(int code);

  static native void release(int kind, long handle);

  static native long runtimeCreate(byte[] options, long sink);

  static native int runtimeThreads(long runtime);

  static native byte[] opsJson(long runtime);

  static native byte[] runtimeMetrics(long runtime);

  static native void runtimeTrim(long runtime);

  static native byte[] datasetSchema(long data);

  static native void datasetNormalize(long data, long component, byte[] normalization);

  static native byte[] datasetFitNormalization(long data, long component, int kind);

  static native long[] datasetSplit(long data, byte[] how);

  static native long modelImport(long graph, long seed);

  static native void modelExport(long model, long session, byte[] what);

  static native long[] modelLoad(long runtime, byte[] path);

  static native long modelEndpoint(long model, byte[] name);

  static native byte[] modelEndpoints(long model);
  static native void modelSetClasses(long model, byte[] what);
  static native long modelClasses(long model, byte[] output);

  static native byte[] modelRestoreFrom(long model, long session, byte[] path, byte[] options);

  static native long nnNormalize(long model, long x, byte[] normalization);

  static native void modelSetMetadata(long model, byte[] key, byte[] value);

  static native byte[] modelMetadata(long model, byte[] key);

  static native void traceStart(long runtime);

  static native byte[] traceStop(long runtime);

  static native byte[][] eventsNext(long timeoutMs, long[] numbers);

  // tensor
  static native long tensorAllocate(int dtype, long[] dims);

  static native long tensorStrings(long[] dims, byte[] bytes, long[] lengths);

  static native byte[] tensorString(long tensor, long index);

  static native long tensorBorrow(int dtype, long[] dims, long address, long bytes, long number);

  static native long bufferAddress(ByteBuffer buffer);

  static native long[] tensorDescribe(long tensor);

  static native ByteBuffer tensorView(long tensor, long offset, long bytes);

  static native long tensorRetain(long tensor);

  static native void tensorCopy(long tensor, long at, Object array, int kind, int count, boolean in);

  // graph, value
  static native long graphCreate(long runtime);

  static native long[] graphAddOp(long graph, byte[] spec);

  static native long graphNodeCount(long graph);

  static native long graphNodeAt(long graph, long index);

  static native long graphFind(long graph, byte[] name);

  static native void graphPushText(long graph, int device, byte[] scope);

  static native void graphPushControls(long graph, long[] values);

  static native void graphPushColocation(long graph, long value);

  static native void graphPushRecompute(long graph);

  static native void graphPushSetter(long graph, long cluster, byte[] setter);

  static native void graphPop(long graph, int scope);

  static native long[] graphAddGradients(long graph, long[] ys, long[] xs, long[] gradYs);

  static native long graphDensify(long graph, long dense, long values, long indices, long shape);

  static native byte[] graphSerialize(long graph);

  static native void graphImport(long graph, byte[] bytes);

  // function
  static native long functionBegin(long outer, byte[] name);

  static native long functionArgument(long body, int dtype, long[] dims);

  static native long functionArgumentLike(long body, long value);

  static native long functionEnd(long body, long[] results);

  static native long[] functionCaptures(long function);

  static native long[] graphAddIf(long graph, long condition, long yes, long no, int results);

  static native long[] graphAddCase(long graph, long index, long[] branches, int results);

  static native long[] graphAddWhile(long graph, long[] start, long condition, long body);

  static native long[] graphAddCall(long graph, long function, long[] arguments, int results);

  static native byte[] valueText(long graph, long value, int which);

  static native long valueNumOutputs(long graph, long value);

  static native long valueOutput(long graph, long value, long i);

  static native int valueDtype(long graph, long value);

  static native long[] valueShape(long graph, long value);

  // model
  static native long modelCreate(long graph, long seed);

  static native long modelInside(long model, long body);

  static native long[] modelAddVariable(long model, byte[] spec);

  static native long modelVariableCount(long model);

  static native long[] modelVariable(long model, long i);

  static native long[] modelFindVariable(long model, byte[] name);

  static native long[] modelGlobalStep(long model);

  static native long modelInit(long model);

  static native void modelSaveRestore(long model, long session, byte[] path, boolean save);

  static native void modelNextTower(long model);

  static native void modelWaitReady(long model, long session, long timeoutNs);

  static native void modelRecover(long model, long session, long timeoutNs);

  // checkpoint
  static native long checkpointOpen(long model, long session, byte[] options);

  static native void checkpointAddData(long checkpoint, byte[] name, long dataset);

  static native byte[] checkpointRestore(long checkpoint, byte[] set, long[] step);

  static native boolean checkpointReached(long checkpoint, long step);

  static native void checkpointSave(long checkpoint, long step, long timeoutNs, boolean wait);

  static native void checkpointAwait(long checkpoint, long timeoutNs);

  static native byte[] checkpointStatus(long checkpoint);

  // layers, training
  static native long nnDense(long model, long x, byte[] layer);

  static native long nnConv2d(long model, long x, byte[] layer);

  static native long nnPool2d(long model, long x, byte[] layer, boolean average);

  static native long nnEmbedding(long model, long ids, byte[] layer);

  static native long nnFlatten(long model, long x);

  static native long nnDropout(long model, long x, double rate, long step, long training);

  static native long nnActivation(long model, long x, int kind);

  static native long nnBatchNorm(long model, long x, byte[] layer);

  static native long nnNorm(long model, int which, long x, byte[] layer);

  static native long[] nnRecurrent(long model, long x, byte[] layer);

  static native long nnAttention(long model, long query, long value, byte[] layer);

  static native long nnConv(long model, int which, long x, byte[] layer);

  static native long nnGlobalPool(long model, long x, boolean keepDims, boolean greatest);

  static native long nnPositionEmbedding(long model, long x, byte[] layer);

  static native long nnEmbeddingBag(long model, long ids, byte[] layer);

  static native long nnHashing(long model, long x, byte[] layer);

  static native long nnLookup(long model, long x, byte[] layer);

  static native long nnNoise(long model, long x, int kind, double amount, long step, long training);

  static native long nnAdaptivePool(long model, long x, long[] sizes, boolean greatest);

  static native long[] nnAttentionCache(long model, long value, byte[] layer, long longest);

  static native long[] nnAttentionStep(long model, long query, byte[] layer, long[] cache);

  static native long nnUpSampling2d(long model, long x, long high, long wide, boolean bilinear);

  static native long nnLoss(long model, long labels, long predictions, long weights, byte[] loss);

  static native long nnTripletLoss(long model, long anchor, long positive, long negative, double margin);

  static native long nnRegularize(long model, long loss, long[] handles, double l1, double l2);

  static native long nnSampledLoss(long model, long labels, long x, byte[] loss);

  static native long[] nnMetric(long model, long[] values, byte[] metric, byte[] loss);

  static native long nnJudge(long model, int which, long labels, long logits);

  static native long[] nnMinimize(long model, long[] losses, byte[] optimizer, boolean towers);

  static native long[] nnMinimizeAllReduce(long model, long loss, byte[] how);

  static native long[] nnMinimizeReplicated(long model, long loss, byte[] optimizer);

  static native long[] nnApply(long model, long[] handles, long[] gradients, byte[] optimizer, boolean replicated);

  static native long nnExponentialDecay(long model, long step, double rate, double every, double factor, boolean staircase);

  static native long nnCosineDecay(long model, long step, double rate, double steps, double floor, double warmup);

  static native long nnSchedule(long model, long step, byte[] schedule);

  // session, async
  static native long sessionConnect(long runtime, byte[] target, long graph, byte[] options);

  static native void sessionRun(long session, long[] request);

  static native boolean sessionRunIfBrief(long session, long[] request);

  static native long sessionRunAsync(long session, long[] request, long cq, long tag);

  static native long sessionRunRepeatedly(long session, long[] targets, long cq, long tag);

  static native long sessionPrepare(long session, long[] request);

  static native void callableStep(long callable, long feed, long fetched, long timeoutNs);

  static native void callableRun(long callable, long[] tensors, int feeds, int fetches, long timeoutNs, long cancellation);

  static native byte[][] sessionDevices(long session);

  static native void sessionReset(long session, byte[] containers);

  static native void sessionStop(long session, long timeoutNs);

  static native void sessionEndJob(long session, long timeoutNs);

  static native void sessionEndJobNow(long session, long timeoutNs);

  static native void sessionBarrier(long session, byte[] name, long timeoutNs);

  static native int sessionOutcome(long session, long write, long timeoutNs);

  static native byte[] sessionClusterStatus(long session, long timeoutNs);

  // coordinator
  static native long coordinatorCreate(long session, byte[] options);

  static native long coordinatorPrepare(long coordinator, long[] feeds, long[] fetches, long[] targets, long worker);

  static native void coordinatorPerWorker(long coordinator, long closure, long[] tensors);

  static native long coordinatorSchedule(long coordinator, long closure, long[] tensors, long cq, long tag);

  static native void coordinatorJoin(long coordinator, long timeoutNs, long cancellation);

  static native boolean coordinatorDone(long coordinator);

  static native void coordinatorCancel(long coordinator);

  static native byte[] coordinatorStatus(long coordinator);

  static native long[] remoteValueFetch(long value, int count);

  static native long partitionerShards(int kind, int axis, long[] sizes, int dtype, long[] dims);

  static native long[] shardRows(long rows, long shards, long shard);

  static native byte[] shardedAdd(long model, byte[] spec);

  static native long[] shardedDescribe(long model, byte[] name);

  static native long[] shardedShard(long model, byte[] name, long i);

  static native long shardedLookup(long model, byte[] name, long ids);

  static native long shardedEmbedding(long model, long ids, byte[] layer);

  static native long meshCreate(long model, byte[] options);

  static native void meshBegin(long mesh, long[] batch, long microBatches, boolean forwardOnly);

  static native long[] meshNext(long mesh);

  static native void meshGive(long mesh, long[] outputs);

  static native void meshAbandon(long mesh);

  static native long meshResult(long mesh, long k);

  static native long[] meshMinimize(long mesh, byte[] optimizer);

  static native long[] meshColumnDense(long mesh, long x, int parts, byte[] layer);

  static native long meshRowDense(long mesh, long[] parts, byte[] layer);

  static native long meshTogether(long mesh, long[] parts, int axis);

  static native long meshEmbedding(long mesh, long ids, int by, byte[] layer);

  static native long meshAttention(long mesh, long query, long value, byte[] layer);

  static native long cancellationCreate();

  static native void cancellationCancel(long cancellation);

  static native void runCancel(long run);

  static native long runTakeResult(long run, long i);

  static native long cqCreate();

  static native int cqNext(long cq, long timeoutNs, long[] tags, Throwable[] errors);

  // cluster, server
  static native long clusterParse(byte[] text);

  static native long clusterFromTfConfig(byte[] json, long[] numbers, byte[][] texts);

  static native byte[] clusterStatus(long runtime, byte[] target, byte[] options);

  static native byte[] clusterTarget(long cluster, byte[] task);

  static native byte[] clusterJson(long cluster);

  static native long clusterJobCount(long cluster);

  static native byte[] clusterJob(long cluster, long i);

  static native long[] clusterTasks(long cluster, byte[] job);

  static native byte[] clusterAddress(long cluster, byte[] job, int index);

  static native void keygen(byte[] path);

  static native long serverStart(long runtime, long cluster, byte[] options);

  static native byte[] serverTarget(long server);

  static native void serverJoin(long server, long timeoutNs);

  static native void serverStop(long server, long timeoutNs);

  static native byte[] serverStatus(long server);

  static native long strategyCreate(long model, long group, byte[] options);

  static native long[] strategyDescribe(long strategy);

  static native void strategyScope(long strategy, boolean enter);

  static native void strategyBeginReplica(long strategy, int replica);

  static native long[] strategyEndReplica(long strategy, long[] results);

  static native void strategyAbandonRun(long strategy);

  static native long strategyReduce(long strategy, int op, long value, int axis);

  static native long strategyGather(long strategy, long value, int axis);

  static native long strategyLocal(long strategy, long value);

  static native long strategyDistribute(long strategy, long[] values);

  static native long strategyBroadcast(long strategy, long value);

  static native long strategySplit(long strategy, long batch);

  static native long[] strategyLocalResults(long strategy, long value);

  static native long[] strategyMinimize(long strategy, long losses, int op, byte[] optimizer);

  static native long[] strategyReplicated(long strategy);

  static native long strategyAssign(long strategy, long handle, int op, long value);

  static native long strategyUpdates(long strategy);

  static native long strategyLevel(long strategy);

  static native long groupJoin(long server, byte[] options);

  static native long groupCollect(long group, int kind, long tensor, int reduction, int root, long[] splits);

  static native void groupBarrier(long group, long timeoutNs);

  static native void groupReform(long group, long least, long timeoutNs);

  static native void groupLeave(long group);

  static native int groupRank(long group);

  static native int groupSize(long group);

  static native long groupEpoch(long group);

  static native byte[] groupMember(long group, int rank);

  // data, io
  static native long datasetArrow(long runtime, long stream, byte[] options);

  static native void datasetMapHost(long data, byte[] components, HostData.Change function);

  static native void datasetFilterHost(long data, HostData.Choice function);

  static native long datasetSource(long runtime, byte[] what, HostData.Rows rows);

  static native long[] datasetAddArguments(long data, long body, int count);

  static native void datasetApply(long data, int which, long function, int parallel, long session);

  static native long datasetTensors(long runtime, long[] tensors);

  static native long datasetRange(long runtime, long begin, long end, long step);

  static native long datasetIdx(long runtime, byte[] paths);

  static native long datasetCsv(long runtime, byte[] options);

  static native void datasetCombine(long dataset, int which, long[] others, long block);

  static native void datasetWindow(long dataset, long size, long shift, long stride, int dropRemainder);

  static native void datasetBuckets(long dataset, long component, long[] boundaries, long[] sizes, int dropRemainder, double padding);

  static native long datasetNpy(long runtime, byte[] paths);

  static native long datasetNpz(long runtime, byte[] what);

  static native long datasetTfrecord(long runtime, byte[] what);

  static native long datasetJsonLines(long runtime, byte[] options);

  static native long datasetBadRows(long data);

  static native byte[] datasetWhyBad(long data);

  static native void datasetTransform(long dataset, int which, long a, long b, double divisor);

  static native long[] batchSizes(long globalBatch, long workers, long replicas, long worker);

  static native long[] datasetNext(long dataset);

  static native long[] datasetPosition(long dataset);

  static native void datasetMoveTo(long dataset, long[] position);

  static native void datasetDeal(long dataset, long model, long session, long timeoutNs);

  static native long[] datasetDealt(long dataset);

  static native long datasetCardinality(long dataset);

  static native long datasetComponentCount(long dataset);

  static native long[] datasetComponent(long dataset, long i);

  static native long weightsCreate();

  static native long weightsLoad(long runtime, byte[] path);

  static native void weightsSave(long weights, byte[] path);

  static native void weightsSet(long weights, byte[] name, long tensor);

  static native long weightsGet(long weights, byte[] name);

  static native long weightsCount(long weights);

  static native byte[] weightsName(long weights, long i);

  static native void weightsSetMetadata(long weights, byte[] key, byte[] value);

  static native byte[] weightsMetadata(long weights, byte[] key);

  static native long writerOpen(byte[] directory, long flushEveryNs, long resumedAtStep);

  static native void writerScalar(long writer, byte[] tag, long step, double value);

  static native void writerHistogram(long writer, byte[] tag, long step, long tensor);

  static native void writerText(long writer, byte[] tag, long step, byte[] markdown);

  static native void writerFlush(long writer);

  static native void writerClose(long writer);

  // trainer
  static native long trainerCreate(long model, long session, long strategy, byte[] options);

  static native void trainerAddMetric(long trainer, byte[] name, long[] values);

  static native long trainerSession(long trainer);

  static native void trainerBegin(long trainer, long data, long validation, long cancellation, byte[] how);

  static native byte[] trainerNext(long trainer);

  static native void trainerExport(long trainer, byte[] path);

  static native void trainerGiveUp(long trainer);

  static native void trainerStop(long trainer);

  static native byte[] trainerSummary(long trainer);

  static native double trainerStep(long trainer, long[] tensors, long cancellation);

  static native byte[] trainerEvaluate(long trainer, long data, long steps, long cancellation);

  static native long[] trainerPredict(long trainer, long data, long cancellation, int outputs);
}
