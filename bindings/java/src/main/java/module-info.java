/** Training in the JVM: the C library libdtg behind Java classes. Needs no other module; loads one native library. */
module org.dtg {
  exports org.dtg;
}
