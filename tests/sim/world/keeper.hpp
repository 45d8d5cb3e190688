// What a client keeps of one lock: the machine of local grants, and the edge that carries out what the machine wants,
// as src/api/locks does in a program.
//
// It also checks what the machine does, by its own records:
//   - A local grant is given only while enough of the lease is left, the present links prove the hold, and it is not
//     lost.
//   - While somebody else waits, a hold passes on at most as often, and for as long, as its options allow.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/local/local_grants.hpp"
#include "world/checker.hpp"
#include "world/client.hpp"

namespace holdfast::sim {

namespace local = engine::local;

/// What a mutant of the machine, or of its edge, does wrong.
enum class kept_mutant : std::uint8_t {
    none,
    wanted_is_ignored,
    losses_are_ignored,
    old_proofs_count,
    ceilings_count_when_asked,
    ceilings_are_ignored,
    give_backs_are_late,
    passes_have_no_bound,
    wanted_is_heard_late,
    wanted_is_ignored_in_use,
    writers_share,
    validity_lasts_longer,
    unmarked_holds_are_kept,
    holds_outlive_their_release,
    fast_users_are_not_counted,
};

class kept_user;

/// What a user wants, or has.
struct kept_claim final : local::claim {
    kept_user* whose = nullptr;
};

/// Whom the keeper tells, perhaps from within a call of its user.
class kept_user {
public:
    virtual void granted(kept_claim& what) = 0;
    virtual void refused(kept_claim& what, errc why) = 0;
    /// It still has to release it.
    virtual void lost(kept_claim& what, errc why) = 0;

protected:
    ~kept_user() = default;
};

struct keeper_setup {
    std::shared_ptr<const wire::lock_keys> keys;
    engine::lock_options options;
    nanoseconds keep{0};
    unsigned passes = 0;
    kept_mutant mutant = kept_mutant::none;
};

class keeper {
public:
    keeper(timeline& time, client& process, checker& check, keeper_setup setup,
           std::function<void(const std::string&)> trace);
    ~keeper();

    const keeper_setup& setup() const { return setup_; }
    const std::string& lock() const { return setup_.keys->lock(); }
    client& process() { return process_; }

    // --- for users, while their process is awake. Answered by kept_user.
    void acquire(kept_claim& wish);
    void upgrade(kept_claim& reading, kept_claim& waiter);
    void cancel(kept_claim& waiter);
    void release(kept_claim& mine, engine::access level);
    void downgrade(kept_claim& mine);
    void take_number(kept_claim& mine);
    /// The last lock object is gone: nothing is kept any more.
    void close();

    // --- about a claim that holds
    bool is_known(const kept_claim& mine) const { return users_.contains(&mine); }
    instant valid_until(const kept_claim& mine) const;
    std::string id_of(const kept_claim& mine) const;
    /// The belief that goes with it: its validity is that of the hold.
    void track(const kept_claim& mine, const std::shared_ptr<belief>& held);

    /// Since when nobody uses the hold with that id, and nobody waits for it here. Nothing if it is used, or not ours.
    std::optional<instant> unused_since(const std::string& id) const;
    bool has_hold(const std::string& id) const;

private:
    class request;
    class kept_hold;
    struct quiet_answer;

    nanoseconds passing() const;
    void hear(const std::function<void(local::effects&)>& event);
    void carry_out();
    void carry_out(const local::effect& what);
    void ask(const local::effect& what);
    void release_hold(std::uint64_t number);
    void take(const local::outcome& got, kept_claim& wish);
    bool acquire_fast(kept_claim& wish);
    void release_fast(kept_claim& mine);
    void adopt(kept_claim& mine);
    void adopt(engine::owner_id owner);
    void note_granted(kept_claim& mine);
    void note_user(kept_hold& from, kept_claim& mine);
    void note_over(kept_claim& mine);
    void check_grant(kept_hold& from, const kept_claim& mine);
    void acquired(std::uint64_t number, engine::hold& held);
    void wanted(kept_hold& by);
    kept_hold* find(std::uint64_t number) const;
    kept_hold* hold_of(const kept_claim& mine) const;
    std::string id_of(const engine::hold& held) const;
    engine::acquire_terms terms(engine::access want, engine::patience limit) const;
    void note(const std::string& what) const;

    timeline& time_;
    client& process_;
    checker& check_;
    const keeper_setup setup_;
    std::function<void(const std::string&)> trace_;
    local::local_grants machine_;
    std::deque<local::effect> todo_;
    bool carrying_out_ = false;
    std::map<std::uint64_t, std::unique_ptr<request>> requests_;  // by the number of the ask
    std::map<std::uint64_t, std::shared_ptr<kept_hold>> holds_;   // by their numbers
    std::vector<std::shared_ptr<kept_hold>> past_holds_;
    std::vector<std::unique_ptr<request>> past_requests_;
    std::map<const kept_claim*, std::uint64_t> users_;  // the numbers of their holds
    std::set<const kept_claim*> waiting_;
    std::map<kept_claim*, std::uint64_t> fast_;  // users by the fast path: the numbers of their holds
    unsigned acquisitions_ = 0;
};

}  // namespace holdfast::sim
