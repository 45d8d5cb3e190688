// A running hash of what some part of the small world has seen.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/clock.hpp"
#include "server_model/data_types.hpp"

namespace holdfast::sim::explore {

class fingerprint {
public:
    fingerprint& add(std::uint64_t number) {
        std::uint64_t mixed = state_ ^ (number + 0x9e3779b97f4a7c15U + (state_ << 6U) + (state_ >> 2U));
        mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
        mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
        state_ = mixed ^ (mixed >> 31U);
        return *this;
    }
    fingerprint& add(std::string_view text) { return add(string_hash{}(text)); }
    fingerprint& add(instant when) { return add(static_cast<std::uint64_t>(when.time_since_epoch().count())); }

    std::uint64_t value() const { return state_; }

private:
    std::uint64_t state_ = 0;
};

}  // namespace holdfast::sim::explore
