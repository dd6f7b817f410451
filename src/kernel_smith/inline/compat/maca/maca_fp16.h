#pragma once

#include <common/maca_fp16.h>
