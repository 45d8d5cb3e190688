// What is behind a lease: the hold in the engine, and what other threads may read of it without entering the
// section.
#pragma once

#include "api/core.hpp"

#include <atomic>
#include <memory>
#include <stop_token>
#include <string>

namespace holdfast::api {

class lease_state final : private engine::hold_listener {
public:
    explicit lease_state(std::shared_ptr<core> where) : core_(std::move(where)) {}

    // Inside the section, when the hold was got.
    void attach(engine::hold& held);

    core& where() const noexcept { return *core_; }
    engine::hold* held() const noexcept { return hold_; }
    std::uint64_t token() const noexcept { return token_; }
    const std::string& id() const noexcept { return id_; }
    instant valid_until() const noexcept { return valid_until_.load(std::memory_order_relaxed); }
    std::stop_token lost() const noexcept { return lost_.get_token(); }

private:
    void on_validity(instant until) override;
    void on_lost(errc why) override;

    std::shared_ptr<core> core_;
    engine::hold* hold_ = nullptr;  // the engine keeps it until it is released
    std::uint64_t token_ = 0;
    std::string id_;
    std::atomic<instant> valid_until_{};
    std::stop_source lost_;
};

}  // namespace holdfast::api
