/* dtg/dtg.h: the whole C ABI of libdtg. base.h opens with the conventions. */
#ifndef DTG_DTG_H
#define DTG_DTG_H

#include <dtg/arrow.h>
#include <dtg/base.h>
#include <dtg/checkpoint.h>
#include <dtg/cluster.h>
#include <dtg/coordinator.h>
#include <dtg/data.h>
#include <dtg/dlpack.h>
#include <dtg/error.h>
#include <dtg/function.h>
#include <dtg/graph.h>
#include <dtg/group.h>
#include <dtg/io.h>
#include <dtg/layers.h>
#include <dtg/losses.h>
#include <dtg/map.h>
#include <dtg/mesh.h>
#include <dtg/metrics.h>
#include <dtg/nn.h>
#include <dtg/optimizers.h>
#include <dtg/replicas.h>
#include <dtg/runtime.h>
#include <dtg/server.h>
#include <dtg/session.h>
#include <dtg/sharded.h>
#include <dtg/strategy.h>
#include <dtg/tensor.h>
#include <dtg/trainer.h>

#endif /* DTG_DTG_H */
