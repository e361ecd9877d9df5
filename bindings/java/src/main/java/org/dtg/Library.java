// Finds and loads the native library, once per class loader. Runs inside the static initialiser of Native.

package org.dtg;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

final class Library {
  private static final String JNI = "libdtg_jni.so";
  private static final String PLATFORM = "linux-" + processor(System.getProperty("os.arch", ""));
  private static final String RESOURCES = "META-INF/native/" + PLATFORM + "/";

  private Library() {}

  /** As the system calls it; the JVM has other names for some. */
  private static String processor(String arch) {
    return switch (arch) {
      case "amd64", "x86_64" -> "x86_64";
      case "aarch64", "arm64" -> "aarch64";
      default -> arch;
    };
  }

  /**
   * The path or directory of the property org.dtg.library.path; else java.library.path; else the copy in the jar, unpacked into a new
   * directory that only the user can enter, under org.dtg.library.tmpdir (java.io.tmpdir).
   */
  static void load() {
    try {
      find();
    } catch (IllegalCallerException e) { // the JVM's message does not tell the flag
      Module mine = Library.class.getModule();
      throw new IllegalCallerException(
          e.getMessage() + "; start java with --enable-native-access=" + (mine.isNamed() ? mine.getName() : "ALL-UNNAMED"), e);
    }
  }

  private static void find() {
    String said = System.getProperty("org.dtg.library.path");
    if (said != null) {
      at(Path.of(said));
      return;
    }
    if (Boolean.getBoolean("org.dtg.library.static")) { // linked into the launcher, see JNI_OnLoad_dtg
      System.loadLibrary("dtg");
      return;
    }
    List<String> tried = new ArrayList<>();
    try {
      System.loadLibrary("dtg_jni");
      return;
    } catch (UnsatisfiedLinkError e) {
      if (e.getMessage() == null || !e.getMessage().contains("java.library.path")) throw e; // it is there, and does not load
      tried.add(e.getMessage());
    }
    unpack(tried);
  }

  /** What the property names. The system's message tells neither the property nor which of the two files is missing. */
  private static void at(Path said) {
    Path file = (Files.isDirectory(said) ? said.resolve(JNI) : said).toAbsolutePath();
    if (!Files.exists(file)) {
      throw new UnsatisfiedLinkError("dtg's native library is not there: -Dorg.dtg.library.path=" + said + " means " + file
          + "; name the folder that holds " + JNI + " and libdtg.so, or the file itself, or leave the property out to take what the jar holds");
    }
    try {
      System.load(file.toString());
    } catch (UnsatisfiedLinkError e) {
      UnsatisfiedLinkError out = new UnsatisfiedLinkError("dtg's native library does not load from -Dorg.dtg.library.path=" + said + ": "
          + e.getMessage() + "; libdtg.so, which it needs, is looked for beside it");
      out.initCause(e);
      throw out;
    }
  }

  /** The loader of this class sees the native jar on the class path too; the class itself would look into its own module only. */
  private static ClassLoader resources() {
    return Library.class.getClassLoader();
  }

  private static void unpack(List<String> tried) {
    if (resources().getResource(RESOURCES + JNI) == null) {
      throw new UnsatisfiedLinkError(
          "dtg's native library is nowhere: " + String.join("; ", tried) + "; and no jar holds " + RESOURCES + JNI
              + ". Add the jar dtg with the classifier " + PLATFORM + ", or set -Dorg.dtg.library.path=DIRECTORY");
    }
    Path parent = Path.of(System.getProperty("org.dtg.library.tmpdir", System.getProperty("java.io.tmpdir")));
    Path directory = null;
    try {
      // A name of its own: one file cannot be loaded by two class loaders.
      directory = Files.createTempDirectory(
          parent, "dtg-", PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
      for (String name : files()) copy(name, directory);
      System.load(directory.resolve(JNI).toString());
    } catch (UnsatisfiedLinkError e) {
      throw explain(e, directory);
    } catch (IOException e) {
      throw new UncheckedIOException("dtg's native library cannot be unpacked below " + parent
          + "; set -Dorg.dtg.library.tmpdir=DIRECTORY to one that can be written", e);
    } finally {
      remove(directory);
    }
  }

  private static List<String> files() throws IOException {
    try (InputStream list = resources().getResourceAsStream(RESOURCES + "files")) {
      if (list == null) throw new IOException("no " + RESOURCES + "files in the jar");
      return new String(list.readAllBytes(), java.nio.charset.StandardCharsets.UTF_8).lines().filter(line -> !line.isBlank()).toList();
    }
  }

  private static void copy(String name, Path directory) throws IOException {
    try (InputStream from = resources().getResourceAsStream(RESOURCES + name)) {
      if (from == null) throw new IOException("no " + RESOURCES + name + " in the jar");
      Path to = directory.resolve(name);
      Files.copy(from, to);
      Files.setPosixFilePermissions(to, PosixFilePermissions.fromString("rwx------"));
    }
  }

  private static UnsatisfiedLinkError explain(UnsatisfiedLinkError error, Path directory) {
    String text = String.valueOf(error.getMessage());
    boolean noexec = text.contains("failed to map segment") || text.contains("Operation not permitted");
    UnsatisfiedLinkError out = new UnsatisfiedLinkError(
        noexec
            ? directory + " lies on a file system that is mounted noexec, so nothing can be loaded from there; set"
                + " -Dorg.dtg.library.tmpdir=DIRECTORY to one that is not: " + text
            : text);
    out.initCause(error);
    return out;
  }

  /** A loaded file stays mapped without its name, so nothing has to be left behind. */
  private static void remove(Path directory) {
    if (directory == null || !Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)) return;
    try (Stream<Path> inside = Files.list(directory)) {
      for (Path path : inside.toList()) Files.delete(path);
      Files.delete(directory);
    } catch (IOException e) {
      System.getLogger("org.dtg").log(System.Logger.Level.INFO, "left behind: " + directory, e);
    }
  }
}
