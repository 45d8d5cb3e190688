// Source of randomness: the system's generator in a client, a seeded one in tests.
#pragma once

#include <cstdint>

namespace holdfast {

class random_source {
public:
    virtual std::uint64_t next() = 0;

protected:
    ~random_source() = default;
};

}  // namespace holdfast
