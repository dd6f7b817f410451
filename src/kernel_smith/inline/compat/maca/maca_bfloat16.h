#pragma once

#include <common/maca_bfloat16.h>
