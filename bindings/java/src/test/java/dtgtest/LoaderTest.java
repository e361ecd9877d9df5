// How the native library is found, in a loader of its own each time, as in a server that holds several applications.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LoaderTest {
  private static final String PATH = "org.dtg.library.path";
  private static final String TMPDIR = "org.dtg.library.tmpdir";

  @TempDir Path folder;
  private String said;

  @BeforeEach
  void nothingIsSaid() {
    assertNotNull(org.dtg.Dtg.version(), "this loader's own is loaded as told before");
    said = System.clearProperty(PATH);
    System.setProperty(TMPDIR, folder.toString());
  }

  @AfterEach
  void asBefore() {
    System.setProperty(PATH, said);
    System.clearProperty(TMPDIR);
  }

  private static URLClassLoader loader(String... properties) throws IOException {
    URL[] urls = new URL[properties.length];
    for (int i = 0; i < urls.length; i++) urls[i] = Path.of(System.getProperty(properties[i])).toUri().toURL();
    return new URLClassLoader(urls, ClassLoader.getPlatformClassLoader());
  }

  private static Object version(ClassLoader from) throws ReflectiveOperationException {
    return from.loadClass("org.dtg.Dtg").getMethod("version").invoke(null);
  }

  private static String failure(ClassLoader from) {
    Throwable cause = assertThrows(InvocationTargetException.class, () -> version(from)).getCause();
    while (cause.getCause() != null && !(cause instanceof UnsatisfiedLinkError)) cause = cause.getCause();
    return cause.getMessage();
  }

  @Test
  void twoLoadersLoadItFromTheJarAndLeaveNothingBehind() throws Exception {
    try (URLClassLoader first = loader("dtg.classes", "dtg.native.root"); URLClassLoader second = loader("dtg.classes", "dtg.native.root")) {
      assertEquals(org.dtg.Dtg.version(), version(first));
      assertEquals(org.dtg.Dtg.version(), version(second));
    }
    try (var left = Files.list(folder)) {
      assertEquals(List.of(), left.toList());
    }
  }

  @Test
  void aFolderMayBeNamed() throws Exception {
    Path copy = Files.createDirectory(folder.resolve("lib"));
    try (var files = Files.list(Path.of(said))) {
      for (Path file : files.toList()) Files.copy(file, copy.resolve(file.getFileName()));
    }
    System.setProperty(PATH, copy.toString());
    try (URLClassLoader loader = loader("dtg.classes")) {
      assertEquals(org.dtg.Dtg.version(), version(loader));
    }
  }

  @Test
  void whereItIsNotIsSaid() throws Exception {
    try (URLClassLoader loader = loader("dtg.classes")) {
      String message = failure(loader);
      assertTrue(message.contains("classifier linux-x86_64") && message.contains("java.library.path"), message);
    }
    System.setProperty(PATH, "/nowhere");
    try (URLClassLoader loader = loader("dtg.classes")) {
      String message = failure(loader);
      assertTrue(message.contains("-Dorg.dtg.library.path=/nowhere means /nowhere") && message.contains("libdtg_jni.so"), message);
    }
    Path empty = Files.createDirectory(folder.resolve("empty"));
    Files.createFile(empty.resolve("libdtg_jni.so"));
    System.setProperty(PATH, empty.toString());
    try (URLClassLoader loader = loader("dtg.classes")) {
      String message = failure(loader);
      assertTrue(message.contains("does not load from -Dorg.dtg.library.path=" + empty) && message.contains("beside it"), message);
    }
    System.clearProperty(PATH);
    System.setProperty(TMPDIR, "/nowhere");
    try (URLClassLoader loader = loader("dtg.classes", "dtg.native.root")) {
      assertTrue(failure(loader).contains("/nowhere"));
    }
  }
}
