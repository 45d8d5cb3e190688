// The numbers of owners, threads included. Each number is used once in a process.
#pragma once

#include <holdfast/owner.hpp>

#include <cstdint>

namespace holdfast::api {

std::uint64_t next_owner_number() noexcept;

struct owner_access {
    static std::uint64_t number(const owner& of) noexcept { return of.number_; }
};

}  // namespace holdfast::api
