// Null in the place of each argument of each public method: it is refused by its name, or it means something. What the JVM says by itself of a
// null that it met ("Cannot invoke ... because ... is null") is told nowhere.

package dtgtest;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.*;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.*;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NullsTest {
  @TempDir
  Path folder;

  private final Map<Class<?>, Object> made = new HashMap<>();
  private final List<AutoCloseable> open = new ArrayList<>();
  private final List<String> bare = new ArrayList<>();
  private int calls;

  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  private static List<Class<?>> classes() throws Exception {
    Path from = Path.of(Graph.class.getProtectionDomain().getCodeSource().getLocation().toURI()).resolve("org/dtg");
    List<Class<?>> out = new ArrayList<>();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(from, "*.class")) {
      for (Path file : files) {
        String name = file.getFileName().toString().replace(".class", "");
        if (name.contains("-")) continue;
        Class<?> type = Class.forName("org.dtg." + name, false, Graph.class.getClassLoader());
        boolean seen = Modifier.isPublic(type.getModifiers()) && (type.getDeclaringClass() == null || Modifier.isPublic(type.getDeclaringClass().getModifiers()));
        if (seen && !type.isInterface() && !type.isEnum()) out.add(type);
      }
    }
    out.sort(Comparator.comparing(Class::getName));
    return out;
  }

  private <T> T keep(T object) {
    made.put(object.getClass(), object);
    if (object instanceof AutoCloseable closeable) open.add(closeable);
    return object;
  }

  /** One of each noun, so that a method has its object and its other arguments. */
  private void begin() throws Exception {
    Graph graph = keep(new Graph());
    Model model = keep(new Model(graph, 1));
    Value x = keep(graph.placeholder("x", DType.F32, -1, 4));
    Value y = graph.placeholder("y", DType.F32, -1, 2);
    Value scores = model.dense(x, new Dense(2));
    Value loss = model.meanSquaredError(y, scores);
    Session session = keep(Session.connect("local", graph));
    keep(session.run());
    keep(Tensor.of(new float[] {1, 2}));
    keep(Dataset.range(0, 4, 1));
    keep(new Weights());
    keep(new Cancellation());
    keep(Cluster.parse("worker=127.0.0.1:0"));
    keep(new EventWriter(folder.resolve("events").toString()));
    keep(new Trainer(model, new TrainerOptions().feeds(x, y).loss(loss).outputs(scores)));
    keep(new Checkpoint(model, session, folder.resolve("sets").toString(), new CheckpointOptions()));
    keep(session.prepare(List.of(x), List.of(scores), List.of()));
    keep(model.variables().get(0));
    keep(Lifetime.open());
    session.run(model.init()); // so that nobody waits for values
  }

  private void end() {
    for (int i = open.size() - 1; i >= 0; i--) {
      try {
        open.get(i).close();
      } catch (Exception e) {
        // was closed by what was called
      }
    }
    open.clear();
    made.clear();
  }

  private Object sample(Type type) {
    if (type instanceof ParameterizedType of && of.getRawType() == List.class) {
      Type element = of.getActualTypeArguments()[0];
      if (element instanceof WildcardType any) element = any.getUpperBounds()[0];
      Object one = sample(element);
      return one == null ? List.of() : List.of(one);
    }
    if (!(type instanceof Class<?> of)) return type instanceof ParameterizedType p ? sample(p.getRawType()) : null;
    if (of == boolean.class) return true;
    if (of == int.class) return 1;
    if (of == long.class) return 1L;
    if (of == float.class) return 1f;
    if (of == double.class) return 0.5;
    if (of == byte.class) return (byte) 1;
    if (of == short.class) return (short) 1;
    if (of == char.class) return ',';
    if (of == String.class || of == Object.class) return "x";
    if (of == Path.class) return folder.resolve("x");
    if (of == Duration.class) return Duration.ofMillis(200);
    if (of == ByteBuffer.class) return ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder());
    if (of == Map.class) return Map.of();
    if (of == AtomicLong.class) return new AtomicLong();
    if (of == Class.class) return Float.class;
    if (of.isEnum()) return of.getEnumConstants()[0];
    if (of.isArray()) {
      Object one = sample(of.getComponentType());
      Object out = Array.newInstance(of.getComponentType(), one == null ? 0 : 1);
      if (one != null) Array.set(out, 0, one);
      return out;
    }
    if (made.containsKey(of)) return made.get(of);
    if (of.isInterface()) return Proxy.newProxyInstance(of.getClassLoader(), new Class<?>[] {of}, (self, method, arguments) -> null);
    for (Constructor<?> constructor : of.getConstructors()) {
      if (AutoCloseable.class.isAssignableFrom(of) || Throwable.class.isAssignableFrom(of)) break;
      try {
        return constructor.newInstance(Arrays.stream(constructor.getGenericParameterTypes()).map(this::sample).toArray());
      } catch (ReflectiveOperationException e) {
        // another one may do
      }
    }
    return null;
  }

  /** What is wrong with how a null was met; null: nothing is. */
  private static String fault(Throwable met) {
    while (met instanceof InvocationTargetException || met instanceof java.util.concurrent.ExecutionException) met = met.getCause();
    if (met instanceof NullPointerException || met instanceof ClassCastException || met instanceof ArrayStoreException) return met.toString();
    if (met instanceof DtgException ours && ours.code() == Code.INTERNAL) return met.toString();
    return met.getMessage() == null ? met.getClass() + " without a message" : null;
  }

  private void call(Executable what, Object on, int at) throws Exception {
    Type[] types = what.getGenericParameterTypes();
    Object[] arguments = Arrays.stream(types).map(this::sample).toArray();
    // What makes files makes them in the test's folder.
    if (what.getDeclaringClass() == EventWriter.class && what instanceof Constructor<?> && types[0] == String.class) arguments[0] = folder.resolve("x").toString();
    arguments[at] = null;
    calls++;
    what.setAccessible(true); // what a class that is not public gives to one that is
    try {
      Object out = what instanceof Method method ? method.invoke(on, arguments) : ((Constructor<?>) what).newInstance(arguments);
      if (out instanceof CompletableFuture<?> future) {
        future.cancel(true);
      } else if (out instanceof AutoCloseable closeable && out != on) {
        closeable.close();
      } else if (out != null) { // options are looked at when they are used
        Method packet = Arrays.stream(out.getClass().getDeclaredMethods()).filter(m -> m.getName().equals("packet") && m.getParameterCount() == 0).findFirst().orElse(null);
        if (packet != null) {
          packet.setAccessible(true);
          packet.invoke(out);
        }
      }
    } catch (Exception e) {
      String wrong = fault(e);
      if (wrong != null) bare.add(what + ", argument " + at + ": " + wrong);
    }
  }

  /** What waits for others or for its caller to give up, and what takes the address of a struct of C. */
  private static boolean waits(Executable what) {
    return Set.of("wait", "join", "equals", "compareTo", "connect", "valueOf", "arrow", "fromDlPack").contains(what.getName());
  }

  private static List<Executable> callsOf(Class<?> type) {
    List<Executable> out = new ArrayList<>();
    if (!Modifier.isAbstract(type.getModifiers())) out.addAll(List.of(type.getConstructors()));
    for (Method method : type.getMethods()) {
      boolean ours = method.getDeclaringClass().getName().startsWith("org.dtg.") && !method.isSynthetic() && !method.isBridge();
      if (ours && !waits(method) && (method.getDeclaringClass() == type || !Modifier.isPublic(method.getDeclaringClass().getModifiers()))) out.add(method);
    }
    return out;
  }

  @Test
  void nullsAreNamedOrMeanSomething() throws Exception {
    for (Class<?> type : classes()) {
      if (Throwable.class.isAssignableFrom(type)) continue;
      for (Executable what : callsOf(type)) {
        for (int at = 0; at < what.getParameterCount(); at++) {
          if (what.getParameterTypes()[at].isPrimitive()) continue;
          begin();
          try {
            boolean needs = what instanceof Method method && !Modifier.isStatic(method.getModifiers());
            Object on = !needs ? null : sample(type == Ops.class ? Graph.class : type);
            if (needs && on == null) continue;
            call(what, on, at);
          } finally {
            end();
          }
        }
      }
    }
    assertEquals("", String.join("\n", bare), bare.size() + " of " + calls);
    assertTrue(calls > 1000, calls + " calls were made");
  }
}
