// Activations. Immutable.

package org.dtg;

/** What a layer's sums go through, in C's order. */
public enum Activation {
  /** Nothing. */
  NONE,
  /** max(x, 0). */
  RELU,
  /** min(max(x, 0), 6). */
  RELU6,
  /** x, or e^x - 1 below zero. */
  ELU,
  /** ELU, scaled. */
  SELU,
  /** log(1 + e^x). */
  SOFTPLUS,
  /** 1 / (1 + e^-x). */
  SIGMOID,
  /** The hyperbolic tangent. */
  TANH,
  /** Shares over the last dimension. */
  SOFTMAX,
  /** With erf. */
  GELU
}
