// Marks what the shared library shows; everything else is hidden.
#pragma once

#define HOLDFAST_EXPORT __attribute__((visibility("default")))
