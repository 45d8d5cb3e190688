// Waiting for a local grant of a kept lock: a thread that sleeps, and an operation that ends in a handler.
#pragma once

#include "api/locks/kept_lock.hpp"
#include "api/operations/blocking.hpp"

#include <holdfast/detail/completion.hpp>

#include <functional>

namespace holdfast::api {

// A thread that waits for a local grant, or for an upgrade of one.
class blocking_local final : private local_waiter {
public:
    explicit blocking_local(std::shared_ptr<kept_lock> where) : lock_(std::move(where)) {}

    // Returns the face, or null and why().
    std::shared_ptr<local_face> acquire(engine::owner_id owner, engine::access want, engine::patience limit,
                                        std::stop_token stop);
    std::shared_ptr<local_face> upgrade(const std::shared_ptr<local_face>& reading, engine::patience limit,
                                        std::stop_token stop);
    const engine::refusal& why() const noexcept { return why_; }

private:
    void will_wait(bool for_server) override;
    void granted(std::shared_ptr<local_face> face) override {
        face_ = std::move(face);
        end();
    }
    void refused(const engine::refusal& why) override {
        why_ = why;
        end();
    }
    void end();
    std::shared_ptr<local_face> wait(kept_lock::answer said, std::stop_token stop);

    enum state : std::uint32_t { open, over };
    const std::shared_ptr<kept_lock> lock_;
    bool drives_ = false;
    std::shared_ptr<local_face> face_;
    loop::wait driven_;
    futex_word state_{open};
    engine::refusal why_;
};

// One that ends in a handler.
class async_local final : public std::enable_shared_from_this<async_local>, private local_waiter {
public:
    using completion = detail::completion<boost::system::error_code, lease>;

    async_local(std::shared_ptr<core> where, std::shared_ptr<kept_lock> lock, mode kind,
                std::unique_ptr<completion> handler)
        : core_(std::move(where)), lock_(std::move(lock)), kind_(kind), handler_(std::move(handler)) {}

    // `why_not` may be null.
    void acquire(engine::owner_id owner, engine::patience limit, std::stop_token stop, refusal* why_not);
    void upgrade(const std::shared_ptr<local_face>& reading, engine::patience limit);

private:
    void granted(std::shared_ptr<local_face> face) override { finish(std::move(face), nullptr); }
    void refused(const engine::refusal& why) override { finish(nullptr, &why); }
    void begin(std::stop_token stop);
    void cancel();
    void answered(kept_lock::answer said);
    void finish(std::shared_ptr<local_face> face, const engine::refusal* why);

    const std::shared_ptr<core> core_;
    const std::shared_ptr<kept_lock> lock_;
    const mode kind_;
    refusal* why_not_ = nullptr;
    std::unique_ptr<completion> handler_;
    std::mutex mutex_;  // between the answer and a cancellation
    std::shared_ptr<local_face> waits_;
    bool is_cancelled_ = false;
    bool is_over_ = false;
    std::shared_ptr<async_local> self_;
    std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

}  // namespace holdfast::api
