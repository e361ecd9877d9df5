// The gradients of the linear algebra family, beside its kernels in linalg.cc.
#pragma once

#include "graph/gradient.h"

namespace dtg::ops {

Status cholesky_grad(GradContext& c);
Status matrix_inverse_grad(GradContext& c);
Status matrix_determinant_grad(GradContext& c);
Status log_matrix_determinant_grad(GradContext& c);
Status matrix_solve_grad(GradContext& c);
Status matrix_triangular_solve_grad(GradContext& c);
Status self_adjoint_eig_grad(GradContext& c);
Status qr_grad(GradContext& c);
Status svd_grad(GradContext& c);

}  // namespace dtg::ops
