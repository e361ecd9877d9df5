/* java_launcher.c: a program that has the JNI half of the binding and the library linked in (JNI_OnLoad_dtg), makes a virtual
 * machine and asks Java for the library's version. java_test.py builds and runs it: java_launcher CLASSPATH. */
#include <jni.h>
#include <stdio.h>

int main(int argc, char** argv) {
  char path[4096];
  JavaVMOption options[3] = {{path, NULL}, {(char*)"-Dorg.dtg.library.static=true", NULL}, {(char*)"-Xcheck:jni", NULL}};
  JavaVMInitArgs how = {JNI_VERSION_10, 3, options, JNI_FALSE};
  JavaVM* vm = NULL;
  JNIEnv* env = NULL;
  jclass library;
  jmethodID version;
  jstring text = NULL;
  const char* chars;
  if (argc != 2) return 2;
  snprintf(path, sizeof path, "-Djava.class.path=%s", argv[1]);
  if (JNI_CreateJavaVM(&vm, (void**)&env, &how) != JNI_OK) return 3;
  library = (*env)->FindClass(env, "org/dtg/Dtg");
  version = library ? (*env)->GetStaticMethodID(env, library, "version", "()Ljava/lang/String;") : NULL;
  if (version) text = (jstring)(*env)->CallStaticObjectMethod(env, library, version);
  if ((*env)->ExceptionCheck(env)) {
    (*env)->ExceptionDescribe(env);
    return 4;
  }
  chars = (*env)->GetStringUTFChars(env, text, NULL);
  if (!chars) return 5;
  printf("linked in: %s\n", chars);
  (*env)->ReleaseStringUTFChars(env, text, chars);
  /* Its watching thread would go on while this process ends, and then miss what the ending takes down first. */
  return (*vm)->DestroyJavaVM(vm) == JNI_OK ? 0 : 6;
}
