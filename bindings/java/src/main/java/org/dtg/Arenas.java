// Which direct buffers lie in memory that its owner can give up: those of closeable arenas, which Java has from version 22 on. Any thread.

package org.dtg;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.Buffer;
import java.nio.ByteBuffer;

final class Arenas {
  private static final MethodHandle SCOPE = find();

  private Arenas() {}

  /** MemorySegment.ofBuffer(buffer).scope(); null where Java has no such thing. */
  private static MethodHandle find() {
    try {
      Class<?> segment = Class.forName("java.lang.foreign.MemorySegment");
      Class<?> scope = Class.forName("java.lang.foreign.MemorySegment$Scope");
      MethodHandles.Lookup lookup = MethodHandles.publicLookup();
      MethodHandle of = lookup.findStatic(segment, "ofBuffer", MethodType.methodType(segment, Buffer.class));
      MethodHandle scopeOf = lookup.findVirtual(segment, "scope", MethodType.methodType(scope));
      return MethodHandles.filterReturnValue(of, scopeOf).asType(MethodType.methodType(Object.class, Buffer.class));
    } catch (ReflectiveOperationException | LinkageError e) {
      return null;
    }
  }

  static boolean mayClose(ByteBuffer buffer) {
    if (SCOPE == null) return false;
    try {
      String kind = ((Object) SCOPE.invokeExact((Buffer) buffer)).getClass().getSimpleName();
      return kind.equals("ConfinedSession") || kind.equals("SharedSession");
    } catch (Throwable e) { // a Java that says it otherwise
      return false;
    }
  }
}
