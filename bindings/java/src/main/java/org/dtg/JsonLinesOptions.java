// How JSON lines are read. One thread at a time.

package org.dtg;

import java.util.List;

/** How {@link Dataset#jsonLines} reads. */
public final class JsonLinesOptions {
  private String label;
  private List<String> columns;
  private CsvOptions.Missing missing = CsvOptions.Missing.REFUSED;
  private boolean skipBadRows;
  private String schema;

  /** All defaults. */
  public JsonLinesOptions() {}

  /**
   * The column to predict.
   *
   * @param label null: one component per column; otherwise elements are {all other columns as a float32 vector, label}
   * @return this
   */
  public JsonLinesOptions label(String label) {
    this.label = Native.notEmpty(label, "label");
    return this;
  }

  /**
   * The columns to read.
   *
   * @param columns their names, in this order; never called: all
   * @return this
   */
  public JsonLinesOptions columns(String... columns) {
    this.columns = Native.columns(columns);
    return this;
  }

  /**
   * What is done about missing values.
   *
   * @param missing how
   * @return this
   */
  public JsonLinesOptions missing(CsvOptions.Missing missing) {
    this.missing = Handle.given(missing, "missing");
    return this;
  }

  /**
   * Whether bad rows are passed over and counted ({@link Dataset#badRows}), instead of being an error.
   *
   * @param skip whether
   * @return this
   */
  public JsonLinesOptions skipBadRows(boolean skip) {
    this.skipBadRows = skip;
    return this;
  }

  /**
   * What is known of the columns, as JSON; see {@link CsvOptions#schema}.
   *
   * @param schema it
   * @return this
   */
  public JsonLinesOptions schema(String schema) {
    this.schema = Native.notEmpty(schema, "schema");
    return this;
  }

  Packet packet() {
    return new Packet().text(label).plain(columns).integer(missing.number).integer(skipBadRows ? 1 : 0).text(schema);
  }
}
