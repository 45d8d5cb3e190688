// Numbers for owners, threads and others alike: each is given out once in a process.
#pragma once

#include <cstdint>

namespace holdfast::api {

std::uint64_t next_owner_number() noexcept;

}  // namespace holdfast::api
