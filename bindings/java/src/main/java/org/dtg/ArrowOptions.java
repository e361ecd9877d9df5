// How Arrow tables are read. One thread at a time.

package org.dtg;

import java.util.List;

/** How {@link Dataset#arrow} reads. */
public final class ArrowOptions {
  private String label;
  private List<String> columns;
  private CsvOptions.Missing missing = CsvOptions.Missing.REFUSED;
  private String schema;

  /** All defaults. */
  public ArrowOptions() {}

  /**
   * The column to predict.
   *
   * @param label null: one component per column; otherwise elements are {all other columns as a float32 vector, label}
   * @return this
   */
  public ArrowOptions label(String label) {
    this.label = Native.notEmpty(label, "label");
    return this;
  }

  /**
   * The columns to read.
   *
   * @param columns their names, in this order; never called: all
   * @return this
   */
  public ArrowOptions columns(String... columns) {
    this.columns = Native.columns(columns);
    return this;
  }

  /**
   * What is done about missing values.
   *
   * @param missing how
   * @return this
   */
  public ArrowOptions missing(CsvOptions.Missing missing) {
    this.missing = Handle.given(missing, "missing");
    return this;
  }

  /**
   * What is known of the columns, as JSON; see {@link CsvOptions#schema}.
   *
   * @param schema it
   * @return this
   */
  public ArrowOptions schema(String schema) {
    this.schema = Native.notEmpty(schema, "schema");
    return this;
  }

  Packet packet() {
    return new Packet().text(label).plain(columns).integer(missing.number).text(schema);
  }
}
