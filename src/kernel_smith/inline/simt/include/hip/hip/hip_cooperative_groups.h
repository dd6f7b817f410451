#pragma once
#include "simt/groups.h"
