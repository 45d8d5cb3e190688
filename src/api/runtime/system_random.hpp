// Random numbers of the system, read in blocks so that a hold id costs no system call.
#pragma once

#include "wire/hold_id.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace holdfast::api {

// Not thread-safe: lives in the serial section.
class system_random final : public random_source {
public:
    std::uint64_t next() override;

private:
    std::array<std::uint64_t, 512> pool_{};
    std::size_t used_ = pool_.size();
};

}  // namespace holdfast::api
