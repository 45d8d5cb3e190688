#include "redis/cluster/map_watch.hpp"

#include "base/assert.hpp"
#include "redis/resp/error_reply.hpp"
#include "redis/session/command_writer.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {
namespace {

constexpr std::chrono::milliseconds shortest_pause{100};
constexpr std::chrono::milliseconds longest_pause{1000};
constexpr std::chrono::seconds map_interval{10};

}  // namespace

class map_watch::question final : public own_command {
public:
    explicit question(link_events& events) : events_(events) { set_payload(encoded_command({"CLUSTER", "SHARDS"})); }

    void ask(cluster_link& whom, instant now) {
        asked_ = &whom;
        whom.session().submit(*this, now);
    }
    bool is_open() const noexcept { return asked_ != nullptr; }

private:
    void on_reply(const reply_view& reply, instant now) override {
        events_.on_map_answer(*std::exchange(asked_, nullptr), reply, now);
    }
    // The end of a link makes the map wanted again.
    void on_failure(const failure&, instant) override { asked_ = nullptr; }

    link_events& events_;
    cluster_link* asked_ = nullptr;
};

map_watch::map_watch(const server_settings& cluster, std::vector<server_address> seeds, std::optional<slot_map>& map,
                     cluster_links& links, link_events& events, cluster_effects& effects, jitter& chance)
    : cluster_(cluster),
      seeds_(std::move(seeds)),
      map_(map),
      links_(links),
      effects_(effects),
      jitter_(chance),
      question_(std::make_unique<question>(events)) {
    HOLDFAST_ASSERT(!seeds_.empty());
}

map_watch::~map_watch() = default;

bool map_watch::is_settled() const noexcept {
    return !is_wanted_ && !question_->is_open();
}

bool map_watch::is_doubted(const server_address& member) const {
    return std::find(doubted_.begin(), doubted_.end(), member) != doubted_.end();
}

void map_watch::on_link_up(instant now) {
    if (is_wanted_ && !question_->is_open() && (is_dialling_ || now >= ask_at_)) ask(now);
}

// Slots move and members join without notice. A client without a link needs no map.
void map_watch::on_timer(instant now) {
    if (now >= due_at_) {
        due_at_ = now + map_interval;
        if (links_.any_is_up()) want();
    }
    if (is_wanted_ && !question_->is_open() && now >= ask_at_) ask(now);
}

instant map_watch::deadline() const noexcept {
    return is_wanted_ && !question_->is_open() ? std::min(due_at_, ask_at_) : due_at_;
}

void map_watch::ask(instant now) {
    ask_at_ = now + jitter_.spread(pause_);
    cluster_link* const whom = links_.next_in_turn();
    if (whom == nullptr) {
        pause_ = std::min(pause_ * 2, longest_pause);
        return dial(now);
    }
    is_wanted_ = is_dialling_ = false;
    question_->ask(*whom, now);
}

// Known members, primaries first, then the seeds.
void map_watch::dial(instant now) {
    if (!std::exchange(is_dialling_, true)) links_.restart_turns();
    std::vector<server_address> all;
    if (map_) all.assign(map_->members().begin(), map_->members().end());
    for (const server_address& seed : seeds_) {
        if (std::find(all.begin(), all.end(), seed) == all.end()) all.push_back(seed);
    }
    links_.reach_some_of(all, now);
}

void map_watch::ask_later(instant now) {
    pause_ = std::min(pause_ * 2, longest_pause);
    ask_at_ = now + jitter_.spread(pause_);
}

std::optional<slot_map> map_watch::check(const cluster_link& by, const reply_view& reply, instant now) {
    auto fresh = slot_map::read(reply, by.address(), cluster_.kind);
    if (!fresh) {
        why_unknown_ = reply.is_error() ? classify_error(reply.text(), by.display())
                                        : failure{errc::cluster_down, by.display() + ": no slot has an owner"};
        want();
        pause_ = std::min(pause_ * 2, longest_pause);
        return std::nullopt;
    }
    if (!map_) return fresh;
    fresh->fill_from(*map_);
    if (auto owners = doubtful_owners(*fresh, by); !owners.empty()) {
        doubt(*fresh, std::move(owners), now);
        return std::nullopt;
    }
    return fresh;
}

// The owners by a map that invariant (2) does not let us believe: successors of a primary that serves.
std::vector<server_address> map_watch::doubtful_owners(const slot_map& fresh, const cluster_link& by) const {
    std::vector<server_address> found;
    for (const server_address& address : map_->primaries()) {
        if (address == by.address() || !links_.serves(address) || fresh.is_primary(address)) continue;
        const server_address* last = nullptr;
        for (std::size_t slot = 0; slot < hash_slots; ++slot) {
            if (map_->owner(static_cast<hash_slot>(slot)) != &address) continue;
            const server_address* const owner = fresh.owner(static_cast<hash_slot>(slot));
            if (owner == nullptr || std::exchange(last, owner) == owner || links_.serves(*owner)) continue;
            found.push_back(*owner);
        }
    }
    return found;
}

// Other members are asked, and the doubtful owners as soon as one of them is up.
void map_watch::doubt(const slot_map& fresh, std::vector<server_address> owners, instant now) {
    ask_later(now);
    want();
    is_dialling_ = true;
    doubted_ = std::move(owners);
    links_.reach_some_of(doubted_, now);
    links_.regreet_promoted(fresh);
}

// While a primary cannot be reached the map is asked for again and again: its successor may be named at any time, and
// an attempt to reach a primary that hangs takes as long as the request timeout.
const slot_set& map_watch::adopt(slot_map fresh, instant now) {
    const std::optional<slot_map> before = std::exchange(map_, std::move(fresh));
    doubted_.clear();
    slot_news& news = some_news({errc::moving, cluster_.display() + ": slots have moved"});
    if (!before) news.gained.add(slot_set::all_that([this](hash_slot slot) { return map_->owner(slot) != nullptr; }));
    const auto moved = before ? map_->moved_since(*before) : std::vector<hash_slot>{};
    for (const hash_slot slot : moved) {
        const server_address* const old_owner = before->owner(slot);
        const cluster_link* const old_link = old_owner == nullptr ? nullptr : links_.find(*old_owner);
        if (old_link != nullptr && old_link->told_up) news.lost.add(slot);
        if (map_->owner(slot) != nullptr) news.gained.add(slot);
    }
    links_.update_primaries();
    if (before && moved.empty()) {
        ask_later(now);
    } else {
        pause_ = shortest_pause;
        ask_at_ = now + jitter_.spread(pause_);
    }
    due_at_ = now + map_interval;
    if (links_.misses_a_primary()) want();
    return news.gained;
}

bool map_watch::learn(const cluster_link& by, const redirect& moved) {
    const server_address* const owner = map_->owner(moved.slot);
    if (moved.to == by.address() || (owner != nullptr && *owner != by.address())) return false;
    slot_news& news = some_news({errc::moving, by.display() + ": the slot is now at " + to_text(moved.to)});
    if (owner != nullptr && by.told_up) news.lost.add(moved.slot);
    news.gained.add(moved.slot);
    // Whether a primary that nobody knew is trusted must be settled before anything is asked of it.
    if (!map_->is_primary(moved.to)) effects_.add(tell_map{});
    map_->assign(moved.slot, moved.to);
    if (cluster_link* const there = links_.find(moved.to)) there->is_primary = map_->is_primary(moved.to);
    want();
    return true;
}

void map_watch::note_gap(const cluster_link& by, hash_slot slot) {
    slot_news& news = some_news({errc::moving, by.display() + ": the slot has moved"});
    news.lost.add(slot);
    news.gained.add(slot);
}

slot_news& map_watch::some_news(failure why) {
    if (!news_) news_ = std::make_unique<slot_news>(slot_news{{}, {}, std::move(why)});
    return *news_;
}

// As with a single server: before the first link only those commands wait that want to. The seeds are tried on.
std::optional<failure> map_watch::seed_failed(const failure& why, instant now) {
    why_unknown_ = why;
    failure whole{why.code, cluster_.display() + ":"};
    for (const server_address& seed : seeds_) {
        const cluster_link* const each = links_.find(seed);
        if (each == nullptr) {
            dial(now);
            return std::nullopt;
        }
        if (!each->has_failed) return std::nullopt;
        const failure& its = each->session().last_failure();
        if (!is_permanent(its.code)) whole.code = its.code;  // final only if all seeds refuse us for good
        whole.detail += (seed == seeds_.front() ? " " : "; ") + its.detail;
    }
    why_unknown_ = whole;
    return whole;
}

failure map_watch::why_unknown() const {
    if (!why_unknown_.detail.empty()) return why_unknown_;
    return {errc::unreachable, cluster_.display() + ": no member told the map before the deadline"};
}

}  // namespace holdfast::redis
