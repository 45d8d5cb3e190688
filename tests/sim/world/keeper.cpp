#include "world/keeper.hpp"

#include <utility>

#include "wire/hold_id.hpp"

namespace holdfast::sim {
namespace {

using engine::access;

constexpr milliseconds longest_passing{10};
// Of mutants.
constexpr milliseconds late_by{60};
constexpr unsigned too_many_passes = 1000;
constexpr engine::fencing_token guessed_numbers = 5'000'000;

local::settings settings_of(const keeper_setup& setup) {
    local::settings out;
    out.lease = setup.options.lease;
    out.keep = setup.keep;
    out.passes = setup.mutant == kept_mutant::passes_have_no_bound ? too_many_passes : setup.passes;
    out.kind = setup.options.kind;
    out.prefer = setup.options.prefer;
    return out;
}

}  // namespace

struct keeper::quiet_answer final : engine::hold_completion {
    void answered(const std::optional<engine::refusal>&) override {}
};

/// An acquisition, or the upgrade of a hold.
class keeper::request final : public engine::acquire_completion {
public:
    request(keeper& owner, std::uint64_t number, bool upgrades) : owner_(owner), number_(number), upgrades_(upgrades) {}

    bool is_over = false;

private:
    void acquired(engine::hold& held) override;
    void refused(const engine::refusal& why) override;

    keeper& owner_;
    const std::uint64_t number_;
    const bool upgrades_;
};

class keeper::kept_hold final : public engine::hold_listener {
public:
    kept_hold(keeper& owner, engine::hold& held, std::uint64_t given)
        : owner_(owner),
          what(&held),
          number(given),
          id(owner.id_of(held)),
          granted_at(owner.time_.now()),
          unused_since(granted_at) {}

private:
    keeper& owner_;

public:
    engine::hold* what;  // null: released
    const std::uint64_t number;
    const std::string id;
    const instant granted_at;
    instant unused_since;
    std::unique_ptr<request> upgrade;
    std::vector<std::shared_ptr<belief>> beliefs;
    unsigned users = 0;
    bool is_lost = false;
    // What the checks need.
    unsigned grants = 0;
    unsigned passes = 0;
    instant wanted_at = never;
    std::set<const kept_claim*> early = {};

    void on_validity(instant until) override {
        if (owner_.setup_.mutant == kept_mutant::validity_lasts_longer) until += owner_.setup_.options.lease;
        for (const auto& each : beliefs) owner_.check_.extended(each, until + owner_.process_.slept());
        owner_.hear(
            [&](local::effects& out) { owner_.machine_.on_validity(number, until, owner_.process_.now(), out); });
    }
    void on_token(engine::fencing_token) override {}  // told with the upgrade
    void on_lost(errc why) override {
        owner_.note("lost " + id + ", code " + std::to_string(static_cast<int>(why)));
        is_lost = true;
        owner_.check_.lost.insert(id);
        belief gone;
        gone.lock = owner_.lock();
        gone.id = id;
        gone.lease = owner_.setup_.options.lease;
        if (owner_.process_.calm_since(granted_at)) owner_.check_.lost_without_reason(gone);
        for (const auto& each : beliefs) {
            // After errc::lost the rest of the validity is meant for stopping work.
            if (why != errc::lost) each->over = true;
        }
        if (owner_.setup_.mutant == kept_mutant::losses_are_ignored) return;
        owner_.hear([&](local::effects& out) { owner_.machine_.on_lost(number, owner_.process_.now(), out); });
    }
    void on_gone() override {}
    void on_wanted() override { owner_.wanted(*this); }
    void on_ceiling(engine::fencing_token last) override {
        if (owner_.setup_.mutant == kept_mutant::ceilings_are_ignored) last += guessed_numbers;
        owner_.hear([&](local::effects& out) { owner_.machine_.on_ceiling(number, last, owner_.process_.now(), out); });
    }
    void on_proof(instant at) override {
        if (owner_.setup_.mutant == kept_mutant::old_proofs_count) at = owner_.process_.now();
        owner_.hear([&](local::effects& out) { owner_.machine_.on_proof(number, at, owner_.process_.now(), out); });
    }
};

keeper::keeper(timeline& time, client& process, checker& check, keeper_setup setup,
               std::function<void(const std::string&)> trace)
    : time_(time),
      process_(process),
      check_(check),
      setup_(std::move(setup)),
      trace_(std::move(trace)),
      machine_(settings_of(setup_)) {}

keeper::~keeper() = default;

void keeper::note(const std::string& what) const {
    if (trace_) trace_("c" + std::to_string(process_.number()) + " keeper of " + lock() + " " + what);
}

nanoseconds keeper::passing() const {
    return std::min<nanoseconds>(longest_passing, setup_.options.lease / 10);
}

std::string keeper::id_of(const engine::hold& held) const {
    return held.id().text(process_.engine().id(), held.nodes()[0].mark);
}

engine::acquire_terms keeper::terms(access want, engine::patience limit) const {
    return {.keys = setup_.keys, .options = setup_.options, .want = want, .limit = limit};
}

keeper::kept_hold* keeper::find(std::uint64_t number) const {
    const auto found = holds_.find(number);
    return found == holds_.end() ? nullptr : found->second.get();
}

keeper::kept_hold* keeper::hold_of(const kept_claim& mine) const {
    const auto found = users_.find(&mine);
    return found == users_.end() ? nullptr : find(found->second);
}

// --- events and effects

void keeper::hear(const std::function<void(local::effects&)>& event) {
    local::effects out;
    event(out);
    todo_.insert(todo_.end(), out.begin(), out.end());
    carry_out();
}

void keeper::carry_out() {
    if (std::exchange(carrying_out_, true)) return;
    while (!todo_.empty()) {
        const local::effect next = todo_.front();
        todo_.pop_front();
        carry_out(next);
    }
    carrying_out_ = false;
    machine_.check();
}

void keeper::carry_out(const local::effect& what) {
    using kind = local::effect::kind;
    engine::engine& engine = process_.engine();
    const instant now = process_.now();
    auto* const who = static_cast<kept_claim*>(what.who);
    kept_hold* const h = find(what.number);
    switch (what.what) {
        case kind::granted:
            waiting_.erase(who);
            note_granted(who->upgrades != nullptr ? static_cast<kept_claim&>(*who->upgrades) : *who);
            return who->whose->granted(*who);
        case kind::refused:
            waiting_.erase(who);
            return who->whose->refused(*who, what.why->code);
        case kind::lost:
            return who->whose->lost(*who, errc::lost);
        case kind::ask:
            return ask(what);
        case kind::extend:
            if (const auto asked = requests_.find(what.number); asked != requests_.end())
                engine.extend(*asked->second, what.limit.deadline, now);
            return;
        case kind::cancel:
            if (const auto asked = requests_.find(what.number); asked != requests_.end())
                engine.cancel(*asked->second, errc::cancelled, now);
            return;
        case kind::upgrade:
            if (h == nullptr || h->what == nullptr) return;
            h->upgrade = std::make_unique<request>(*this, what.number, true);
            check_.expect_change();
            return engine.upgrade(*h->what, *h->upgrade, what.limit, now);
        case kind::cancel_upgrade:
            if (h != nullptr && h->upgrade && !h->upgrade->is_over) engine.cancel(*h->upgrade, errc::cancelled, now);
            return;
        case kind::downgrade: {
            if (h == nullptr || h->what == nullptr || h->what->levels(access::exclusive) == 0) return;
            static quiet_answer nobody_waits;
            check_.expect_change();
            return engine.downgrade(*h->what, nobody_waits, now + request_time, now);
        }
        case kind::release:
        case kind::abandon:
            if (setup_.mutant != kept_mutant::give_backs_are_late) return release_hold(what.number);
            time_.after(late_by, [this, number = what.number] {
                process_.when_awake([this, number] { release_hold(number); });
            });
            return;
        case kind::renew:
            if (h == nullptr || h->what == nullptr) return;
            if (setup_.mutant == kept_mutant::ceilings_count_when_asked && h->what->is_kept())
                h->on_ceiling(h->what->ceiling() + guessed_numbers);
            return engine.want_numbers(*h->what, now);
        case kind::wake:
            time_.at(std::max(what.at + process_.slept(), time_.now()), [this] {
                process_.when_awake(
                    [this] { hear([this](local::effects& out) { machine_.on_timer(process_.now(), out); }); });
            });
            return;
    }
}

void keeper::ask(const local::effect& what) {
    auto fresh = std::make_unique<request>(*this, what.number, false);
    request& asked = *fresh;
    requests_.emplace(what.number, std::move(fresh));
    note(std::string("asks") + (what.mode == access::shared ? " to read" : "") + " as " + std::to_string(what.number));
    process_.engine().acquire(asked, terms(what.mode, what.limit), process_.now());
}

void keeper::release_hold(std::uint64_t number) {
    const auto found = holds_.find(number);
    if (found == holds_.end()) return;
    const std::shared_ptr<kept_hold> gone = found->second;
    if (setup_.mutant == kept_mutant::holds_outlive_their_release && gone->wanted_at != never) return;
    past_holds_.push_back(gone);
    holds_.erase(found);
    engine::hold* const held = std::exchange(gone->what, nullptr);
    note("gives back " + gone->id);
    for (const access each : {access::shared, access::exclusive}) {
        for (unsigned left = held->levels(each); left > 0; --left) {
            process_.engine().release(*held, each, nullptr, process_.now() + request_time, process_.now());
        }
    }
}

void keeper::request::acquired(engine::hold& held) {
    is_over = true;
    if (!upgrades_) return owner_.acquired(number_, held);
    owner_.check_.hold_acquired(owner_.id_of(held), held.token());
    owner_.hear([&](local::effects& out) {
        owner_.machine_.upgraded(number_, held.token(), held.ceiling(), owner_.process_.now(), out);
    });
}

void keeper::request::refused(const engine::refusal& why) {
    is_over = true;
    owner_.note("is refused " + std::to_string(number_) + ", code " + std::to_string(static_cast<int>(why.code)));
    const auto told = std::make_shared<const engine::refusal>(why);
    if (upgrades_) {
        return owner_.hear(
            [&](local::effects& out) { owner_.machine_.upgrade_refused(number_, told, owner_.process_.now(), out); });
    }
    const auto mine = owner_.requests_.find(number_);
    owner_.past_requests_.push_back(std::move(mine->second));
    owner_.requests_.erase(mine);
    owner_.hear([&](local::effects& out) { owner_.machine_.ask_refused(number_, told, owner_.process_.now(), out); });
}

void keeper::acquired(std::uint64_t number, engine::hold& held) {
    const auto mine = requests_.find(number);
    past_requests_.push_back(std::move(mine->second));
    requests_.erase(mine);
    const std::string id = id_of(held);
    note("acquired by " + id + " token " + std::to_string(held.token()) + " up to " + std::to_string(held.ceiling()) +
         (held.is_wanted() ? ", wanted" : ""));
    check_.hold_acquired(id, held.token());
    local::hold_facts facts{.mode = held.terms().want,
                            .valid_until = held.valid_until(),
                            .proved_at = held.proved_at(),
                            .token = held.token(),
                            .ceiling = held.ceiling(),
                            .wanted = held.is_wanted(),
                            .marked = held.is_kept()};
    if (setup_.mutant == kept_mutant::unmarked_holds_are_kept) facts.marked = true;
    if (setup_.mutant == kept_mutant::wanted_is_ignored) facts.wanted = false;
    if (setup_.mutant == kept_mutant::old_proofs_count) facts.proved_at = process_.now();
    local::effects out;
    const std::uint64_t given = machine_.acquired(number, facts, process_.now(), out);
    const auto fresh = std::make_shared<kept_hold>(*this, held, given);
    // Nobody could ask for a hold without a mark: it is as if somebody had.
    if (held.is_wanted() || !held.is_kept()) fresh->wanted_at = process_.now();
    holds_.emplace(given, fresh);
    held.listen(fresh);
    todo_.insert(todo_.end(), out.begin(), out.end());
    carry_out();
}

void keeper::wanted(kept_hold& by) {
    // What is recorded here knows nothing of it either: only what the servers show does.
    if (setup_.mutant == kept_mutant::wanted_is_ignored_in_use && by.users > 0) return;
    if (by.wanted_at == never) {
        by.wanted_at = process_.now();
        by.early = waiting_;
        note("is asked for " + by.id);
    }
    if (setup_.mutant == kept_mutant::wanted_is_ignored) return;
    if (setup_.mutant == kept_mutant::wanted_is_heard_late) {
        time_.after(late_by, [this, number = by.number] {
            process_.when_awake([this, number] {
                hear([&](local::effects& out) { machine_.on_wanted(number, process_.now(), out); });
            });
        });
        return;
    }
    hear([&](local::effects& out) { machine_.on_wanted(by.number, process_.now(), out); });
}

// --- requests of users

void keeper::take(const local::outcome& got, kept_claim& wish) {
    using verdict = local::outcome::verdict;
    switch (got.what) {
        case verdict::granted:
            note_granted(wish);
            return wish.whose->granted(wish);
        case verdict::reentered:
            return wish.whose->granted(wish);
        case verdict::refused:
            return wish.whose->refused(wish, got.why);
        case verdict::waits:
            // Perhaps granted by an effect that is still to be carried out.
            if (wish.is == local::claim::state::waiting) waiting_.insert(&wish);
            return;
    }
}

// Every second acquisition that may go by the fast path does. It is opened and closed here for one user.
bool keeper::acquire_fast(kept_claim& wish) {
    const instant now = process_.now();
    const auto terms = machine_.fast_path(now);
    if (!terms || wish.want != machine_.fast_mode() || ++acquisitions_ % 2 == 0) return false;
    if (machine_.find(wish.owner) != nullptr) return false;
    const auto is_here = [&](const auto& user) { return user.second == terms->hold; };
    const auto there = static_cast<unsigned>(std::ranges::count_if(fast_, is_here));
    kept_hold* const from = find(terms->hold);
    if (from == nullptr || (wish.want == access::exclusive && there > 0)) return false;
    if (setup_.mutant != kept_mutant::fast_users_are_not_counted) {
        machine_.count_out(terms->hold);
        machine_.count_in(terms->hold, there + 1, now);
        fast_[&wish] = terms->hold;
        wish.is = local::claim::state::holding;
    }
    wish.levels(wish.want) = 1;
    note_user(*from, wish);
    wish.whose->granted(wish);
    return true;
}

void keeper::release_fast(kept_claim& mine) {
    hear([&](local::effects& out) {
        const std::uint64_t hold = fast_.extract(&mine).mapped();
        mine.levels(machine_.fast_mode()) = 0;
        mine.is = local::claim::state::over;
        machine_.release_fast(hold, process_.now(), out);
        note_over(mine);
    });
}

// It needs a claim of the machine.
void keeper::adopt(kept_claim& mine) {
    if (const auto found = fast_.extract(&mine)) machine_.adopt(found.mapped(), mine, 1);
}

void keeper::adopt(engine::owner_id owner) {
    if (owner == engine::owner_id::nobody) return;
    const auto found = std::ranges::find_if(fast_, [owner](const auto& user) { return user.first->owner == owner; });
    if (found != fast_.end()) adopt(*found->first);
}

void keeper::acquire(kept_claim& wish) {
    adopt(wish.owner);
    if (acquire_fast(wish)) return;
    if (setup_.mutant == kept_mutant::writers_share && setup_.options.kind == wire::lock_kind::mutex)
        wish.want = access::shared;
    local::effects out;
    const local::outcome got = machine_.acquire(wish, process_.now(), out);
    take(got, wish);
    todo_.insert(todo_.end(), out.begin(), out.end());
    carry_out();
}

void keeper::upgrade(kept_claim& reading, kept_claim& waiter) {
    adopt(reading);
    local::effects out;
    const local::outcome got = machine_.upgrade(reading, waiter, process_.now(), out);
    take(got, waiter);
    todo_.insert(todo_.end(), out.begin(), out.end());
    carry_out();
}

void keeper::cancel(kept_claim& waiter) {
    hear([&](local::effects& out) { machine_.cancel(waiter, errc::cancelled, process_.now(), out); });
}

void keeper::release(kept_claim& mine, access level) {
    if (setup_.mutant == kept_mutant::writers_share && setup_.options.kind == wire::lock_kind::mutex)
        level = access::shared;
    if (fast_.contains(&mine)) return release_fast(mine);
    hear([&](local::effects& out) {
        machine_.release(mine, level, process_.now(), out);
        if (mine.is_released()) note_over(mine);
    });
}

void keeper::downgrade(kept_claim& mine) {
    adopt(mine);
    hear([&](local::effects& out) { machine_.downgrade(mine, process_.now(), out); });
}

void keeper::take_number(kept_claim& mine) {
    adopt(mine);
    hear([&](local::effects& out) { machine_.token_of(mine, process_.now(), out); });
}

void keeper::close() {
    hear([&](local::effects& out) { machine_.close(process_.now(), out); });
}

// --- what is known of a claim that holds

void keeper::note_granted(kept_claim& mine) {
    if (mine.of == nullptr || users_.contains(&mine)) return;  // an upgrade, or lost in the same moment
    kept_hold* const from = find(mine.of->number);
    if (from != nullptr) note_user(*from, mine);
}

void keeper::note_user(kept_hold& from, kept_claim& mine) {
    users_[&mine] = from.number;
    ++from.users;
    check_grant(from, mine);
    from.early.erase(&mine);
}

void keeper::note_over(kept_claim& mine) {
    const auto found = users_.find(&mine);
    if (found == users_.end()) return;
    kept_hold* const from = find(found->second);
    users_.erase(found);
    if (from != nullptr && --from->users == 0) from->unused_since = time_.now();
}

void keeper::check_grant(kept_hold& from, const kept_claim& mine) {
    const instant now = process_.now();
    const engine::hold& held = *from.what;
    const bool is_first = from.grants++ == 0;
    if (is_first) return;
    const std::string what = " of " + from.id;
    if (from.is_lost || now >= held.valid_until()) check_.fail("a local grant" + what + " that is lost");
    if (held.valid_until() - now < setup_.options.lease / 3) check_.fail("a local grant" + what + " at its end");
    if (held.proved_at() == instant{} || now - held.proved_at() >= setup_.options.lease / 2)
        check_.fail("a local grant" + what + " without a proof");
    if (from.wanted_at == never) return;
    if (now >= from.wanted_at + passing()) check_.fail("a local grant" + what + " after its time to pass on");
    if (!from.early.contains(&mine) && ++from.passes > setup_.passes)
        check_.fail("a local grant" + what + " beyond its passes");
}

instant keeper::valid_until(const kept_claim& mine) const {
    const kept_hold* const from = hold_of(mine);
    return from == nullptr || from->what == nullptr ? instant{} : from->what->valid_until();
}

std::string keeper::id_of(const kept_claim& mine) const {
    const kept_hold* const from = hold_of(mine);
    return from == nullptr ? "" : from->id;
}

void keeper::track(const kept_claim& mine, const std::shared_ptr<belief>& held) {
    kept_hold* const from = hold_of(mine);
    if (from == nullptr) return;
    std::erase_if(from->beliefs, [](const auto& each) { return each->over; });
    from->beliefs.push_back(held);
}

bool keeper::has_hold(const std::string& id) const {
    return std::ranges::any_of(holds_, [&id](const auto& one) { return one.second->id == id; });
}

std::optional<instant> keeper::unused_since(const std::string& id) const {
    for (const auto& [number, h] : holds_) {
        if (h->id == id) return h->users > 0 || !waiting_.empty() ? std::nullopt : std::optional(h->unused_since);
    }
    return std::nullopt;
}

}  // namespace holdfast::sim
