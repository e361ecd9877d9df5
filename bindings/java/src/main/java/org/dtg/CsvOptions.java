// A CSV file's options. One thread.

package org.dtg;

import java.util.List;

/** How a CSV file is read; what is not said is found out. */
public final class CsvOptions {
  String label;
  List<String> columns;
  Header header = Header.FOUND_OUT;
  Missing missing = Missing.REFUSED;
  String schema;
  char delimiter = ',';

  /** All defaults. */
  public CsvOptions() {}

  /**
   * The column to predict.
   *
   * @param label null: one scalar per column; otherwise elements are {all other columns as a float32 vector, label}
   * @return this
   */
  public CsvOptions label(String label) {
    this.label = Native.notEmpty(label, "label");
    return this;
  }

  /**
   * The columns to read.
   *
   * @param columns their names, in this order; never called: all
   * @return this
   */
  public CsvOptions columns(String... columns) {
    this.columns = Native.columns(columns);
    return this;
  }

  /**
   * Whether the first line names the columns.
   *
   * @param header how
   * @return this
   */
  public CsvOptions header(Header header) {
    this.header = Handle.given(header, "header");
    return this;
  }

  /**
   * What is done about missing values.
   *
   * @param missing how
   * @return this
   */
  public CsvOptions missing(Missing missing) {
    this.missing = Handle.given(missing, "missing");
    return this;
  }

  /**
   * What is known of the columns, as JSON: {@link Dataset#schema} of another data set, or rules of one's own, as dtg/data.h tells: {@code
   * {"rules": [{"name": "age", "missing": "mean"}, {"name": "kind", "names": ["cat", "dog"]}]}}.
   *
   * @param schema it
   * @return this
   */
  public CsvOptions schema(String schema) {
    this.schema = Native.notEmpty(schema, "schema");
    return this;
  }

  /**
   * What stands between columns.
   *
   * @param delimiter one character
   * @return this
   */
  public CsvOptions delimiter(char delimiter) {
    this.delimiter = delimiter;
    return this;
  }

  /** Whether the first line names the columns. */
  public enum Header {
    /** The file tells. */
    FOUND_OUT,
    /** It does. */
    NAMES,
    /** It does not; the columns are c0, c1, ... */
    NONE
  }

  /** What is done about missing values: fields that are empty, or NA, N/A, NaN, nan, null, NULL, None or ?. */
  public enum Missing {
    /** They are an error, {@link DtgException.DataLoss}, which names line and column. */
    REFUSED(0),
    /** Such rows are left out; {@link Dataset#badRows} counts them. */
    DROPPED(1),
    /** NaN, which makes losses NaN, or -1 in columns of names. */
    KEPT(3),
    /** The mean of the column; an error in columns of names that lack some, and in the label, if no schema says so. */
    MEAN(4);

    /** As in C. */
    final int number;

    Missing(int number) {
      this.number = number;
    }
  }

  Packet packet() {
    return new Packet().text(label).plain(columns).integer(header.ordinal()).integer(missing.number).integer(delimiter).text(schema);
  }
}
