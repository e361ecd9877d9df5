// No word of C reaches a Java program: every public method and constructor of every class is called with nothing (null, zero, empty strings),
// and what it says is looked at.

package dtgtest;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class WordsTest {
  private static final Pattern WORD = Pattern.compile("\\bNULL\\b|\\bdtg_\\w+|\\bDTG_\\w+|\\w_ns\\b|struct_size|value is invalid \\(0\\)");
  /** What waits, ends things, or is of every object. */
  private static final Set<String> LEFT_OUT = Set.of("close", "join", "await", "get", "wait", "notify", "notifyAll", "hashCode", "getClass");

  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  private final List<AutoCloseable> made = new ArrayList<>();
  private int messages;

  private <T extends AutoCloseable> T keep(T object) {
    made.add(0, object);
    return object;
  }

  /** How to come by an open object of a class. */
  private Map<Class<?>, Supplier<Object>> subjects(Path folder) {
    Map<Class<?>, Supplier<Object>> all = new HashMap<>();
    Supplier<Graph> graph = () -> keep(new Graph());
    all.put(Graph.class, graph::get);
    all.put(Model.class, () -> keep(new Model(graph.get(), 1)));
    all.put(Session.class, () -> keep(Session.connect("local", graph.get())));
    all.put(Run.class, () -> keep(Session.connect("local", graph.get())).run());
    all.put(Dataset.class, () -> keep(Dataset.range(0, 3, 1)));
    all.put(Weights.class, () -> keep(new Weights()));
    all.put(Tensor.class, () -> keep(Tensor.of(new float[] {1, 2})));
    all.put(DtgRuntime.class, () -> keep(new DtgRuntime(new RuntimeOptions())));
    all.put(Cluster.class, () -> keep(Cluster.parse("worker=unix:" + folder.resolve("w"))));
    all.put(EventWriter.class, () -> keep(new EventWriter(folder.resolve("events"))));
    all.put(Value.class, () -> graph.get().constant(1f));
    return all;
  }

  /** The argument that says least. */
  private static Object nothing(Class<?> type) {
    if (type == String.class) return "";
    return type.isPrimitive() ? Array.get(Array.newInstance(type, 1), 0) : null;
  }

  private void call(String what, Executable called, Object on, boolean withNulls) throws Exception {
    Object[] arguments = new Object[called.getParameterCount()];
    for (int i = 0; i < arguments.length; i++) {
      Class<?> type = called.getParameterTypes()[i];
      arguments[i] = withNulls && !type.isPrimitive() ? null : nothing(type);
    }
    try {
      Object result = called instanceof Method method ? method.invoke(on, arguments) : ((Constructor<?>) called).newInstance(arguments);
      if (result instanceof AutoCloseable open && !result.getClass().isRecord() && result != on && !made.contains(open)) keep(open);
    } catch (InvocationTargetException e) {
      Throwable thrown = e.getCause();
      if (thrown instanceof VirtualMachineError) throw e;
      String[] parts = String.valueOf(thrown.getMessage()).split("\"", -1);
      messages++;
      for (int i = 0; i < parts.length; i += 2) {
        Matcher word = WORD.matcher(parts[i]);
        if (word.find()) fail(what + " says " + word.group() + ": " + thrown.getMessage());
      }
    }
  }

  private void closeAll() throws Exception {
    for (AutoCloseable each : List.copyOf(made)) each.close();
    made.clear();
  }

  @Test
  void noWordOfCIsSaid(@TempDir Path folder) throws Exception {
    Map<Class<?>, Supplier<Object>> subjects = subjects(folder);
    Path classes = Path.of(Graph.class.getProtectionDomain().getCodeSource().getLocation().toURI()).resolve("org/dtg");
    try (DirectoryStream<Path> files = Files.newDirectoryStream(classes, "*.class")) {
      for (Path file : files) {
        String name = file.getFileName().toString().replace(".class", "");
        if (name.contains("-") || name.equals("module") || name.startsWith("Ops")) continue;
        Class<?> type = Class.forName("org.dtg." + name);
        if (!Modifier.isPublic(type.getModifiers()) || type.isEnum() || Throwable.class.isAssignableFrom(type)) continue;
        List<Executable> all = new ArrayList<>(List.of(type.getMethods()));
        if (!Modifier.isAbstract(type.getModifiers())) all.addAll(List.of(type.getConstructors()));
        for (Executable each : all) {
          if (each.getDeclaringClass() == Object.class || LEFT_OUT.contains(each.getName())) continue;
          boolean onObject = each instanceof Method && !Modifier.isStatic(each.getModifiers());
          if (onObject && !subjects.containsKey(type)) continue;
          if (each.getDeclaringClass().getSimpleName().equals("Ops") && each.getParameterCount() > 3) continue; // two thousand that are alike
          for (boolean withNulls : new boolean[] {false, true}) {
            call(type.getSimpleName() + "." + each.getName(), each, onObject ? subjects.get(type).get() : null, withNulls);
            closeAll();
          }
        }
      }
    }
    assertTrue(messages > 200, messages + " messages were looked at");
  }
}
