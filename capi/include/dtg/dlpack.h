/* dtg/dlpack.h: tensors from and to other libraries in the same process, without a copy, by DLPack (version 1, and the form
 * before versions). Shared: any thread.
 *
 * The structs are DLPack's own and are only named here. A host that looks into them includes dlpack/dlpack.h, before or after this
 * header, or declares them itself; a host that hands them on (NumPy, PyTorch and JAX take them in capsules called
 * "dltensor_versioned" and "dltensor") needs neither.
 */
#ifndef DTG_DLPACK_H
#define DTG_DLPACK_H

#include <dtg/base.h>

DTG_BEGIN_DECLS

typedef struct DLManagedTensor DLManagedTensor;
typedef struct DLManagedTensorVersioned DLManagedTensorVersioned;

/* A tensor around the memory of `managed`, which the library takes over: its deleter (may be NULL) is called once, from any thread, as
 * soon as neither the tensor nor a run needs the memory, and must not call back into the library. On failure it is not called and
 * `managed` stays the caller's. Nothing is ever copied. The memory must be reachable by the CPU, row-major without gaps and aligned
 * to its elements. Where it is marked read-only, dtg_tensor_mutable_data answers NULL and no run writes its result there.
 * Errors: INVALID_ARGUMENT (strides of another order, no or misaligned data, rank above 8, a shape that cannot be), UNIMPLEMENTED
 * (another major version, another device, element types that this library does not have, vectors of lanes), RESOURCE_EXHAUSTED.
 * Since 0.1. */
DTG_ERR dtg_tensor_from_dlpack(DLManagedTensorVersioned *managed, dtg_tensor **out) DTG_NOEXCEPT;

/* The same for the form without a version, which cannot be marked read-only. Since 0.1. */
DTG_ERR dtg_tensor_from_dlpack_unversioned(DLManagedTensor *managed, dtg_tensor **out) DTG_NOEXCEPT;

/* The tensor's memory for another library, as DLPack 1.1. `*out` holds a reference to the tensor, which counts in dtg_live_handles,
 * until its deleter is called: by the receiver, once, from any thread. `writable` 0 marks the memory read-only; otherwise the
 * receiver may write when no run reads, as with dtg_tensor_mutable_data.
 * Errors: UNIMPLEMENTED (element types that DLPack has no code for, such as the quantized ones), FAILED_PRECONDITION (`writable` for
 * memory that came in read-only), RESOURCE_EXHAUSTED. Since 0.1. */
DTG_ERR dtg_tensor_to_dlpack(dtg_tensor *tensor, int32_t writable, DLManagedTensorVersioned **out) DTG_NOEXCEPT;

/* The same in the form without a version, for receivers that know no other. It cannot say read-only, so the receiver may write, and
 * memory that came in read-only is refused with FAILED_PRECONDITION. Since 0.1. */
DTG_ERR dtg_tensor_to_dlpack_unversioned(dtg_tensor *tensor, DLManagedTensor **out) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_DLPACK_H */
