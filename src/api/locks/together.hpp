// Leases that are of use only together: how long all of them are valid, and when the first one is lost.
#pragma once

#include <holdfast/lease.hpp>

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

namespace holdfast::api {

// The shortest validity. Zero without leases.
milliseconds validity_of_all(std::span<const lease> leases) noexcept;
bool all_valid(std::span<const lease> leases) noexcept;

// One stop_token that fires when any lease is lost.
class loss_of_any {
public:
    explicit loss_of_any(std::span<const lease> leases);
    std::stop_token token() const noexcept { return source_.get_token(); }

private:
    using callback = std::stop_callback<std::function<void()>>;

    std::stop_source source_;
    std::vector<std::unique_ptr<callback>> heard_;
};

}  // namespace holdfast::api
