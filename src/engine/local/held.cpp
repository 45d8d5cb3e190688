#include "engine/local/held.hpp"

#include "base/assert.hpp"

namespace holdfast::engine::local {
namespace {

constexpr milliseconds longest_passing{10};

}  // namespace

// Nobody could ask for a hold without a mark. So it is used as if somebody had.
held::held(const settings& chosen_, std::uint64_t number_, const hold_facts& facts, instant now)
    : chosen(chosen_),
      number(number_),
      mode(facts.mode),
      valid_until(facts.valid_until),
      proved_at(facts.proved_at),
      last(facts.token - 1),
      ceiling(std::max(facts.ceiling, facts.token)),
      block(ceiling - last),
      wanted_at(facts.wanted || !facts.marked ? now : never),
      unused_since(now),
      marked(facts.marked) {}

// --- may it be granted?

instant held::bound() const noexcept {
    return wanted_at + std::min<std::chrono::nanoseconds>(longest_passing, chosen.lease / 10);
}

bool held::fits(access want) const noexcept {
    if (retiring || upgrader != nullptr) return false;
    if (want == access::shared) return writers == 0;
    return mode == access::exclusive && users == 0;
}

bool held::in_bound(const claim& c, instant now) const noexcept {
    if (!is_wanted() || !was_granted) return true;
    if (is_used_up(c.want)) return false;
    return now < bound() && (c.early_for == number || passes < chosen.passes);
}

bool held::may_grant(access want, instant now) const noexcept {
    if (was_granted) return is_fresh(want, now);
    return proved_at != instant{} && now < valid_until && has_number(want);
}

bool held::is_fresh(access want, instant now) const noexcept {
    return now < fresh_until() && has_number(want);
}

instant held::fresh_until() const noexcept {
    if (proved_at == instant{}) return {};
    return std::min<instant>(valid_until - chosen.lease / 3, proved_at + chosen.lease / 2);
}

std::size_t held::can_serve(std::size_t waiting, instant now) const noexcept {
    if (retiring || is_used_up(mode)) return 0;
    if (!is_wanted()) return waiting;
    const std::size_t first = was_granted ? 0 : 1;
    const std::size_t in_time = now < bound() ? early + (chosen.passes - passes) : 0;
    return std::min(waiting, first + in_time);
}

std::optional<errc> held::why_not_now(access want, bool writer_waits) const noexcept {
    if (retiring || users == 0) return std::nullopt;
    if (chosen.kind == lock_kind::mutex) return errc::busy;
    if (writers > 0) return errc::write_held;
    if (want == access::exclusive) return errc::read_held;
    const bool is_behind = upgrader != nullptr || (writer_waits && chosen.prefer != preference::readers);
    return is_behind ? std::optional(errc::reserved) : std::nullopt;
}

// --- its numbers

bool held::has_number(access want) const noexcept {
    return last < ceiling || (want == access::shared && readers != 0);
}

bool held::is_half_used() const noexcept {
    return marked && mode == access::exclusive && (ceiling - last) * 2 < block;
}

fencing_token held::take_number(const claim& mine) {
    HOLDFAST_ASSERT(has_number(mine.exclusive > 0 ? access::exclusive : access::shared));
    if (mine.exclusive > 0) return ++last;
    if (readers == 0) readers = ++last;
    return readers;
}

void held::may_use_up_to(fencing_token last_one) noexcept {
    ceiling = std::max(ceiling, last_one);
    block = ceiling - last;
}

// --- its users

void held::grant(claim& c, instant now, tallies& counted) {
    if (was_granted) {
        ++counted.grants;
        if (is_wanted()) ++counted.passes;
        if (is_wanted() && c.early_for != number) ++passes;
    }
    was_granted = true;
    c.is = claim::state::holding;
    c.of = this;
    c.token = 0;
    c.granted_at = now;
    ++c.levels(c.want);
    ++users;
    if (c.want == access::shared) return;
    ++writers;
    readers = 0;
}

// It reads from now on, with a number of its own: readers' tokens are larger than those of writers before them.
void held::stops_writing(claim& c) noexcept {
    readers = 0;
    if (last < ceiling) c.token = 0;
}

void held::is_unused(instant now) noexcept {
    unused_since = now;
    if (mode == access::exclusive) readers = 0;
}

void held::make_shared() noexcept {
    if (readers == 0 && last < ceiling) readers = ++last;
    mode = access::shared;
}

// While a slot of a Cluster moves, a renewal brings no numbers: it is not repeated as fast as the server answers.
void held::is_answered(instant now) noexcept {
    renewing = false;
    renew_from = is_fresh(mode, now) ? instant{} : now + chosen.lease / 10;
}

}  // namespace holdfast::engine::local
