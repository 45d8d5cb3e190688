// What a replica's acknowledgement is asked for: so many are to have it, within that time.
#pragma once

#include <chrono>

namespace holdfast::redis {

struct acknowledgement {
    unsigned replicas = 0;  // none: nobody is asked
    std::chrono::milliseconds within{0};

    friend bool operator==(const acknowledgement&, const acknowledgement&) = default;
};

}  // namespace holdfast::redis
