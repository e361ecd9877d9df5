/**
 * Distributed TensorFlow training as a library: graphs, models, sessions, clusters.
 *
 * <p>Everything native is {@link java.lang.AutoCloseable}: close it, best by {@code try (...)}. Closing twice is fine, using a closed object
 * throws {@link org.dtg.DtgException.InvalidArgument}, and closing while another thread uses the object lets that use finish. What failed
 * is a {@link org.dtg.DtgException}. Sessions, callables, tensors, servers and clusters may be used by any number of threads; graphs that
 * grow, models, data sets, weight sets and event writers by one at a time.
 */
package org.dtg;
