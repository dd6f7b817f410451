// A GPU's threads on the CPU: everything that a CUDA source may use without including it.
//
// The threads of a block are fibers of one system thread, and blocks run one after the other. Every
// name that is not a GPU's own lies in namespace ks_simt. KS_WAVE is the number of lanes of a wave.
#pragma once

#ifndef KS_WAVE
#define KS_WAVE 32
#endif
static_assert(KS_WAVE == 32 || KS_WAVE == 64, "KS_WAVE must be 32 or 64");

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <climits>
#include <limits>
#include <tuple>
#include <type_traits>

// Nothing of this is shared between libraries: two of them may have waves of different widths.
#pragma GCC visibility push(hidden)
// `static __device__` would warn that visibility has no meaning there.
#pragma GCC diagnostic ignored "-Wattributes"

#include "simt/qualifiers.h"
#include "simt/vectors.h"
#include "simt/fiber.h"
#include "simt/errors.h"
#include "simt/machine.h"
#include "simt/launch.h"
#include "simt/barrier.h"
#include "simt/wave.h"
#include "simt/memory.h"
#include "simt/integers.h"
#include "simt/device_math.h"
#include "simt/narrow.h"
#include "simt/narrow_functions.h"
#include "simt/atomics.h"
#include "simt/runtime.h"
#include "simt/absent.h"

#pragma GCC visibility pop
