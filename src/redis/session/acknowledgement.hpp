// How many replicas must acknowledge, and within what time.
#pragma once

#include <chrono>

namespace holdfast::redis {

struct acknowledgement {
    unsigned replicas = 0;  // 0: none is asked
    std::chrono::milliseconds within{0};

    friend bool operator==(const acknowledgement&, const acknowledgement&) = default;
};

}  // namespace holdfast::redis
