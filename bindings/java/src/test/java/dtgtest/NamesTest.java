// Programs import by star: no name of this package may be one of the packages that programs import so. That this file compiles is a part of
// the test, and one that is made of all the names; texts of what a program prints are another.

package dtgtest;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.*;
import java.lang.reflect.Executable;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.*;
import org.dtg.*;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NamesTest {
  private static final List<String> PACKAGES =
      List.of("java.lang", "java.util", "java.util.concurrent", "java.util.function", "java.util.stream", "java.io", "java.math", "java.net",
          "java.nio", "java.nio.file", "java.security", "java.text", "java.time");

  private static Path classes() throws Exception {
    return Path.of(Graph.class.getProtectionDomain().getCodeSource().getLocation().toURI());
  }

  /** The public names of this package, from its class files. */
  private static List<String> names() throws Exception {
    List<String> names = new ArrayList<>();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(classes().resolve("org/dtg"), "*.class")) {
      for (Path file : files) {
        String name = file.getFileName().toString().replace(".class", "");
        if (name.contains("$") || name.contains("-") || !Modifier.isPublic(Class.forName("org.dtg." + name).getModifiers())) continue;
        names.add(name);
      }
    }
    assertTrue(names.size() > 40, names.size() + " classes were found");
    return names;
  }

  /** Every public name of this package, looked for in theirs. */
  @Test
  void noNameClashes() throws Exception {
    for (String name : names()) {
      for (String there : PACKAGES) {
        assertThrows(ClassNotFoundException.class, () -> Class.forName(there + "." + name), () -> name + " is in " + there + " too");
      }
    }
  }

  /** A program that imports all of them by star and says every name of this package by itself. */
  @Test
  void aProgramOfStarImportsCompiles(@TempDir Path folder) throws Exception {
    StringBuilder program = new StringBuilder("import org.dtg.*;\n");
    for (String there : PACKAGES) program.append("import ").append(there).append(".*;\n");
    program.append("class Program {\n");
    for (String name : names()) program.append("  Class<?> of").append(name).append(" = ").append(name).append(".class;\n");
    program.append("}\n");
    Path source = Files.writeString(folder.resolve("Program.java"), program);
    Process compiler = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "javac").toString(), "-proc:none", "-cp",
        classes().toString(), "-d", folder.toString(), source.toString()).redirectErrorStream(true).start();
    String said = new String(compiler.getInputStream().readAllBytes());
    assertEquals(0, compiler.waitFor(), said);
  }

  @Test
  void whatIsPrintedSaysWhatItIs() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      model.dense(graph.placeholder("x", DType.F32, -1, 4), new Dense(2));
      assertEquals("dense/kernel float32[4, 2]", model.variable("dense/kernel").toString());
      try (Tensor ten = Tensor.of(new long[] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}); Tensor none = Tensor.allocate(DType.F32, 0, 3);
          Session session = Session.connect("local", graph); Results out = session.run().fetch(graph.constant(2.5)).call()) {
        assertEquals("int64[10] [1, 2, 3, 4, 5, 6, ...]", ten.toString());
        assertEquals("float32[0, 3] []", none.toString());
        assertEquals("[float64[] [2.5]]", out.toString());
      }
    }
  }

  private static final java.util.regex.Pattern PATHS = java.util.regex.Pattern.compile("(?i)(path|file|dir|directory|folder)s?$");

  /** Whether a parameter names a file or a folder, by a text. */
  private static boolean namesFile(Parameter parameter) {
    String type = parameter.getParameterizedType().getTypeName();
    boolean text = Set.of("java.lang.String", "java.lang.String[]", "java.util.List<java.lang.String>").contains(type);
    return text && PATHS.matcher(parameter.getName()).find();
  }

  /** The types of its parameters, but for those that name files. */
  private static List<Class<?>> besides(Executable what, Predicate<Parameter> files) {
    return Arrays.stream(what.getParameters()).filter(files.negate()).<Class<?>>map(Parameter::getType).toList();
  }

  private static boolean isPath(Parameter parameter) {
    return parameter.getType() == Path.class || parameter.getType() == Path[].class;
  }

  /** Every public method and constructor that takes the name of a file as text has a twin that takes a Path. */
  @Test
  void textsOfPathsHaveTwins() throws Exception {
    List<String> without = new ArrayList<>();
    int found = 0;
    for (String name : names()) {
      Class<?> type = Class.forName("org.dtg." + name);
      if (type.isRecord()) continue; // what it tells
      List<Executable> all = new ArrayList<>(List.of(type.getConstructors()));
      for (Executable method : type.getDeclaredMethods()) {
        if (Modifier.isPublic(method.getModifiers())) all.add(method);
      }
      for (Executable what : all) {
        if (Arrays.stream(what.getParameters()).noneMatch(NamesTest::namesFile)) continue;
        assertTrue(what.getParameters()[0].isNamePresent(), "compiled without -parameters");
        found++;
        List<Class<?>> rest = besides(what, NamesTest::namesFile);
        boolean twin = all.stream().anyMatch(other -> other.getName().equals(what.getName()) && Arrays.stream(other.getParameters()).anyMatch(NamesTest::isPath)
            && besides(other, NamesTest::isPath).equals(rest));
        if (!twin) without.add(what.toString());
      }
    }
    assertEquals(List.of(), without);
    assertTrue(found > 25, found + " were found");
  }

  /** Wherever a file is named, a Path does. */
  @Test
  void pathsAreTaken(@TempDir Path folder) throws Exception {
    Path table = Files.writeString(folder.resolve("t.csv"), "a,b\n1,2\n3,4\n");
    try (Dataset data = Dataset.csv(table, new CsvOptions()); Dataset again = Dataset.csv(null, table, null)) {
      assertFalse(data.isClosed() || again.isClosed());
    }
    Path key = folder.resolve("job.key");
    Server.keygen(key);
    assertEquals("rw-------", java.nio.file.attribute.PosixFilePermissions.toString(Files.getPosixFilePermissions(key)));
    try (EventWriter writer = new EventWriter(folder.resolve("events"))) {
      writer.scalar("loss", 1, 2);
    }
    try (Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      model.dense(graph.placeholder("x", DType.F32, -1, 4), new Dense(2));
      try (Session session = Session.connect("local", graph)) {
        session.run(model.init());
        Path weights = folder.resolve("w.safetensors");
        model.save(session, weights);
        model.restore(session, weights);
        assertTrue(model.restoreFrom(session, weights, new RestoreOptions()).startsWith("{"));
        try (Checkpoint sets = new Checkpoint(model, session, folder.resolve("sets"), new CheckpointOptions())) {
          assertFalse(sets.isClosed());
        }
        try (Weights read = Weights.load(null, weights)) {
          assertEquals(2, read.names().size());
        }
      }
    }
    assertThrows(DtgException.NotFound.class, () -> Dataset.idx(folder.resolve("none"), folder.resolve("neither")));
    assertThrows(DtgException.class, () -> Model.load(null, table));
    assertEquals(1, Optional.of(1).map(Function.identity()).orElseThrow()); // the star imports are used
    assertTrue(new File(folder.toString()).isDirectory() && !new CompletableFuture<Void>().isDone());
  }
}
