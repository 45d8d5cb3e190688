// The links of a cluster_router, and how it comes by its map.
#include "redis/cluster/cluster_parts.hpp"
#include "redis/resp/error_reply.hpp"
#include "redis/session/command_writer.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {
namespace {

constexpr std::chrono::milliseconds shortest_map_rest{100};
constexpr std::chrono::milliseconds longest_map_rest{1000};
constexpr std::chrono::seconds map_interval{10};
constexpr std::size_t most_dialled = 3;
constexpr std::size_t most_links_in_doubt = 16;

// A member that dies or hangs in the middle of a greeting looks like one that speaks TLS, or does not.
bool refuses_us_for_good(errc code) noexcept {
    return is_permanent(code) && code != errc::tls_expected && code != errc::tls_unexpected;
}

}  // namespace

cluster_router::map_question::map_question(cluster_router& whole) : whole_(whole) {
    set_payload(encoded_command({"CLUSTER", "SHARDS"}));
}

cluster_router::link* cluster_router::find_link(const server_address& address) const {
    const auto found = links_.find(address);
    return found == links_.end() ? nullptr : found->second.get();
}

cluster_router::link& cluster_router::link_to(const server_address& address) {
    auto& entry = links_[address];
    if (entry == nullptr) {
        entry = std::make_unique<link>(*this, address);
        entry->is_primary = map_ && map_->is_primary(address);
        entry->open();
    }
    return *entry;
}

cluster_router::slot_bits cluster_router::slots_of(const server_address& owner) const {
    const server_address* const primary = map_->primary_at(owner);
    if (primary == nullptr) return {};
    return slot_bits::all_that([&](hash_slot slot) { return map_->owner(slot) == primary; });
}

// Whoever listens there is to be subscribed before what waited runs, and that before what others ask on hearing of it.
void cluster_router::link_up(link& which, instant now) {
    which.number = ++links_made_;
    which.has_failed = false;  // until what is told gives it up: by the news it may be a primary, by its greeting none
    tell_news(now);
    if (map_wanted_ && !question_->under_way() && (dialling_ || now >= ask_map_at_)) ask_map(now);
    if (!which.serves()) {
        if (map_ && map_->is_primary(which.address())) want_map();
        for (command* request : which.asked.take_all()) {
            rest(*request, {errc::moving, which.session().settings().display() + " is a replica"}, now);
        }
        return;
    }
    if (!map_) return;
    const slot_bits its = slots_of(which.address());
    which.told_up = true;
    listen_in(its, now);
    for (command* request : which.asked.take_all()) {
        const bool is_fresh = now <= request->written_at() + ask_is_fresh_for;
        if (is_fresh) {
            send_asking(which, *request, now);
        } else {
            put_back(*request, now);
        }
    }
    flush(now);
    tell_up(its, now);
}

void cluster_router::link_down(link& which, const failure& why, instant now) {
    forget_link(which);
    want_map();
    tell_news(now);
    if (!std::exchange(which.told_up, false)) return;
    const slot_bits its = slots_of(which.address());
    if (!its.empty()) told_.on_slots_down(its, why, now);
}

void cluster_router::stranded(link& which, const std::deque<command*>& unwritten, const failure& why, instant now) {
    which.has_failed = true;
    want_map();
    for (command* request : unwritten) {
        if (dynamic_cast<own_command*>(request) != nullptr) {
            routing::fail(*request, why, now);
        } else {
            put_back(*request, now);
        }
    }
    for (command* request : which.asked.take_all()) rest(*request, why, now);
    for (command* request : line_) {
        if (request->first_key().empty()) want_target(*request, now);  // somebody else will do as well
    }
    if (!map_) {
        why_no_map_ = why;
        give_up_if_nobody_is_left(now);
    } else if (refuses_us_for_good(why.code)) {
        fail_those_for(which, why, now);
    }
}

// As with a single server, before the very first link only those wait that want to. Each of the seeds goes on trying.
void cluster_router::give_up_if_nobody_is_left(instant now) {
    failure whole{why_no_map_.code, cluster_.display() + ":"};
    for (const server_address& seed : seeds_) {
        const link* const each = find_link(seed);
        if (each == nullptr) return dial(now);
        if (!each->has_failed) return;
        const failure& its = each->session().last_failure();
        if (!is_permanent(its.code)) whole.code = its.code;  // only if all refuse us for good it is of no use to go on
        whole.detail += (seed == seeds_.front() ? " " : "; ") + its.detail;
    }
    why_no_map_ = whole;
    const bool for_good = is_permanent(whole.code);
    fail_all(line_.take_if([&](const command& each) { return for_good || !each.waits_for_first_link(); }), whole, now);
}

void cluster_router::fail_those_for(const link& which, const failure& why, instant now) {
    fail_all(line_.take_if([&](const command& each) { return target(each) == &which; }), why, now);
}

// Slots move and members join without anybody telling. A client that has no link needs no map.
void cluster_router::look_again(instant now) {
    map_due_at_ = now + map_interval;
    const bool any_is_up =
        std::any_of(links_.begin(), links_.end(), [](const auto& each) { return each.second->up(); });
    if (any_is_up) want_map();
}

cluster_router::link* cluster_router::some_link_that_is_up() {
    std::vector<link*> all;
    for (const auto& [address, each] : links_) {
        if (each->up()) all.push_back(each.get());
    }
    return all.empty() ? nullptr : all[next_asked_++ % all.size()];
}

void cluster_router::ask_map(instant now) {
    ask_map_at_ = now + jitter_.spread(ask_map_rest_);
    link* const whom = some_link_that_is_up();
    if (whom == nullptr) {
        ask_map_rest_ = std::min(ask_map_rest_ * 2, longest_map_rest);
        return dial(now);
    }
    map_wanted_ = dialling_ = false;
    question_->ask(*whom, now);
}

std::vector<server_address> cluster_router::who_may_know() const {
    std::vector<server_address> all;
    if (map_) all.assign(map_->members().begin(), map_->members().end());
    for (const server_address& seed : seeds_) {
        if (std::find(all.begin(), all.end(), seed) == all.end()) all.push_back(seed);
    }
    return all;
}

void cluster_router::dial(instant now) {
    if (!std::exchange(dialling_, true)) next_dialled_ = 0;  // primaries first
    dial_some_of(who_may_know(), now);
}

void cluster_router::dial_some_of(std::span<const server_address> all, instant now) {
    const auto is_tried = [this](const server_address& each) {
        const link* const known = find_link(each);
        return known != nullptr && !known->has_failed;
    };
    auto under_way = static_cast<std::size_t>(std::count_if(all.begin(), all.end(), is_tried));
    for (std::size_t i = 0; i < all.size() && under_way < most_dialled; ++i) {
        const server_address& each = all[next_dialled_++ % all.size()];
        if (is_tried(each)) continue;
        link_to(each).session().hurry(now);
        ++under_way;
    }
}

void cluster_router::map_answered(link& by, const reply_view& reply, instant now) {
    auto fresh = slot_map::read(reply, by.address(), cluster_.kind);
    if (!fresh) {
        const std::string& who = by.session().settings().display();
        why_no_map_ = reply.is_error() ? classify_error(reply.text(), who)
                                       : failure{errc::cluster_down, who + ": no slot has an owner"};
        map_wanted_ = true;
        ask_map_rest_ = std::min(ask_map_rest_ * 2, longest_map_rest);
        if (!map_ && is_permanent(why_no_map_.code)) fail_all(line_.take_all(), why_no_map_, now);
        return;
    }
    if (map_) fresh->fill_from(*map_);
    if (const auto owners = doubtful_owners(*fresh, by); !owners.empty()) return doubt(*fresh, owners, now);
    const bool is_news = !map_ || !fresh->moved_since(*map_).empty();
    ask_map_rest_ = is_news ? shortest_map_rest : std::min(ask_map_rest_ * 2, longest_map_rest);
    ask_map_at_ = now + jitter_.spread(ask_map_rest_);
    map_due_at_ = now + map_interval;
    adopt(std::move(*fresh), now);
    if (misses_a_primary()) want_map();
}

// Its successor may be named at any time, and nobody tells us. An attempt to reach one that hangs takes as long as the
// request timeout: who waits for its end to ask again hears of a failover that much later.
bool cluster_router::misses_a_primary() const {
    return std::any_of(links_.begin(), links_.end(),
                       [this](const auto& each) { return each.second->has_failed && map_->is_primary(each.first); });
}

// Those who are to have the slots of a primary that serves us, and do not serve us themselves, though another than that
// primary says so. Either it was replaced and has not said so yet, or whoever says so speaks of what was before it took
// over. To believe the latter would cost us the trust in that primary, again each time that this one is asked.
std::vector<server_address> cluster_router::doubtful_owners(const slot_map& fresh, const link& by) const {
    std::vector<server_address> found;
    if (!map_) return found;
    const auto serves = [this](const server_address& address) {
        const link* const there = find_link(address);
        return there != nullptr && there->serves();
    };
    for (const server_address& address : map_->primaries()) {
        if (address == by.address() || !serves(address) || fresh.is_primary(address)) continue;
        const server_address* last = nullptr;
        for (std::size_t slot = 0; slot < hash_slots; ++slot) {
            if (map_->owner(static_cast<hash_slot>(slot)) != &address) continue;
            const server_address* const owner = fresh.owner(static_cast<hash_slot>(slot));
            if (owner == nullptr || std::exchange(last, owner) == owner || serves(*owner)) continue;
            found.push_back(*owner);
        }
    }
    return found;
}

// Others are asked, and as soon as one of the owners is up.
void cluster_router::doubt(const slot_map& fresh, const std::vector<server_address>& owners, instant now) {
    ask_map_rest_ = std::min(ask_map_rest_ * 2, longest_map_rest);
    ask_map_at_ = now + jitter_.spread(ask_map_rest_);
    want_map();
    dialling_ = true;
    doubted_ = owners;
    dial_some_of(owners, now);
    greet_promoted(fresh, now);
}

void cluster_router::adopt(slot_map fresh, instant now) {
    const std::optional<slot_map> before = std::exchange(map_, std::move(fresh));
    doubted_.clear();
    slot_news& news = some_news({errc::moving, cluster_.display() + ": slots have moved"});
    if (!before) news.gained.add_all_that([this](hash_slot slot) { return map_->owner(slot) != nullptr; });
    for (const hash_slot slot : before ? map_->moved_since(*before) : std::vector<hash_slot>{}) {
        const server_address* const old_owner = before->owner(slot);
        const link* const old_link = old_owner == nullptr ? nullptr : find_link(*old_owner);
        if (old_link != nullptr && old_link->told_up) news.lost.add(slot);
        if (map_->owner(slot) != nullptr) news.gained.add(slot);
    }
    for (const auto& [address, each] : links_) {
        each->told_up = each->serves();
        each->is_primary = map_->is_primary(address);
    }
    listen_in(news.gained, now);
    call_back_asked(news.gained, now);
    for (command* request : line_) want_target(*request, now);
    flush(now);
    tell_news(now);
}

// A replica that is promoted keeps its links, and theirs still say what it was. Once for every time that the map says
// so: whoever spreads an old one costs us a connection each time.
void cluster_router::greet_promoted(const slot_map& by, instant now) {
    std::vector<link*> promoted;
    for (const auto& [address, each] : links_) {
        if (each->up() && !each->serves() && by.is_primary(address)) promoted.push_back(each.get());
    }
    for (link* each : promoted) {
        each->session().distrust(
            {errc::unreachable, each->session().settings().display() + ": was a replica when it was last greeted"},
            now);
        each->session().hurry(now);
    }
}

void cluster_router::learn_moved(link& by, const redirect& meant, instant now) {
    const server_address* const owner = map_->owner(meant.slot);
    if (meant.to == by.address() || (owner != nullptr && *owner != by.address())) return;
    slot_news& news =
        some_news({errc::moving, by.session().settings().display() + ": the slot is now at " + to_text(meant.to)});
    if (owner != nullptr && by.told_up) news.lost.add(meant.slot);
    news.gained.add(meant.slot);
    if (!map_->is_primary(meant.to)) news.has_new_primary = true;
    map_->assign(meant.slot, meant.to);
    if (link* const there = find_link(meant.to)) there->is_primary = map_->is_primary(meant.to);
    flush_due_ = true;
    want_map();
    listen_in(slot_bits(meant.slot), now);
    call_back_asked(slot_bits(meant.slot), now);
}

cluster_router::slot_news& cluster_router::some_news(failure why) {
    if (!news_) news_ = std::make_unique<slot_news>(std::move(why));
    return *news_;
}

// Not later: whether one whom nobody knew is to be believed must be settled before anything is asked of him.
void cluster_router::tell_new_primary(instant now) {
    if (news_ && std::exchange(news_->has_new_primary, false)) told_.on_map(*map_, now);
}

void cluster_router::tell_news(instant now) {
    if (!news_) return;
    const std::unique_ptr<slot_news> news = std::move(news_);
    told_.on_map(*map_, now);
    if (!news->lost.empty()) told_.on_slots_down(news->lost, news->why, now);
    tell_up(news->gained, now);
    greet_promoted(*map_, now);
}

// Those among them whose owner can be asked, owner by owner.
void cluster_router::tell_up(const slot_bits& which, instant now) {
    if (which.empty()) return;
    for (const auto& [address, each] : links_) {
        if (!each->serves() || !each->told_up) continue;
        const server_address* const primary = map_->primary_at(address);
        if (primary == nullptr) continue;
        const slot_bits its =
            slot_bits::all_that([&](hash_slot slot) { return which.has(slot) && map_->owner(slot) == primary; });
        if (!its.empty()) told_.on_slots_up(its, {address, each->session().facts(), each->number}, now);
    }
}

bool cluster_router::is_named(const server_address& address) const {
    const auto members = map_->members();
    return std::find(members.begin(), members.end(), address) != members.end();
}

// Nothing is for it, and it is no primary's. One that could not be made is not tried for ever; those that work may be
// of use for as long as the map is in doubt, but whoever sends us to ever more places does not make us keep them all,
// except those who could settle the doubt.
bool cluster_router::may_close(const link& which) const {
    if (which.is_primary || !which.asked.empty()) return false;
    if (which.up() && !which.session().idle()) return false;
    const bool is_doubted = std::find(doubted_.begin(), doubted_.end(), which.address()) != doubted_.end();
    if (is_doubted && !which.has_failed) return false;
    const bool is_settled = !map_wanted_ && !question_->under_way();
    const bool is_too_many = links_.size() > most_links_in_doubt && !is_named(which.address());
    return (is_settled || which.has_failed || is_too_many) && !has_channels(which);
}

// Links that led to the map, and those of members that are no primaries any more. The last that is up stays: whoever is
// asked for the next map.
void cluster_router::tidy() {
    std::erase_if(ended_, [](const auto& each) {
        return each->life() == command::state::idle || each->life() == command::state::done;
    });
    if (!map_) return;
    auto up = std::count_if(links_.begin(), links_.end(), [](const auto& each) { return each.second->up(); });
    std::erase_if(links_, [&](const auto& entry) {
        link& each = *entry.second;
        if (!may_close(each) || (each.up() && up == 1)) return false;
        if (each.up()) --up;
        forget_link(each);
        maker_.close(each.session());
        return true;
    });
}

}  // namespace holdfast::redis
