// What a kept lock asks of the engine: positions in the queue, tries, upgrades, renewals, and the ends of its holds, as
// its machine of local grants wants them. Their answers are events of that machine. Inside the section only.
#pragma once

#include "engine/local/local_grants.hpp"

#include <memory>
#include <unordered_map>

namespace holdfast::api {

class core;
class kept_lock;

class hold_requests {
public:
    hold_requests(core& where, kept_lock& lock);
    ~hold_requests();

    // Void if what it names is over.
    void carry_out(const engine::local::effect& what);

private:
    class ask;
    class upgrade_request;
    using effect = engine::local::effect;

    void begin_ask(const effect& what);
    void end_ask(std::uint64_t number);
    void on_acquired(const ask& answered, engine::hold& held);
    void on_refused(const ask& answered, const engine::refusal& why);
    void begin_upgrade(const effect& what);
    void make_less(const effect& what);
    void end_hold(const effect& what);
    static void release_last(core& where, engine::hold& held, engine::access level, instant now);

    core& core_;
    kept_lock& lock_;
    std::unordered_map<std::uint64_t, std::unique_ptr<ask>> asks_;
    std::unordered_map<std::uint64_t, std::unique_ptr<upgrade_request>> upgrades_;  // by the number of the hold
};

}  // namespace holdfast::api
