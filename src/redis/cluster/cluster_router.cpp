#include "redis/cluster/cluster_router.hpp"

#include "base/assert.hpp"
#include "redis/resp/error_reply.hpp"

#include <utility>

namespace holdfast::redis {
namespace {

constexpr std::size_t most_links_in_doubt = 16;

template <class... Lambdas>
struct overloaded : Lambdas... {
    using Lambdas::operator()...;
};
template <class... Lambdas>
overloaded(Lambdas...) -> overloaded<Lambdas...>;

}  // namespace

cluster_router::cluster_router(server_settings cluster, std::vector<server_address> seeds, link_maker& links,
                               router_listener& told, std::uint64_t jitter_seed)
    : cluster_(std::move(cluster)),
      maker_(links),
      told_(told),
      jitter_(jitter_seed),
      links_(map_, *this, effects_),
      watch_(cluster_, std::move(seeds), map_, links_, *this, effects_, jitter_),
      rests_(jitter_),
      channels_(links_, watch_, rests_, *this, effects_),
      commands_(cluster_, map_, links_, watch_, rests_, channels_, effects_) {}

void cluster_router::submit(command& request, instant now) {
    HOLDFAST_ASSERT(request.life() == command::state::idle || request.life() == command::state::done);
    routing::begin(request);
    if (is_closed_) {
        effects_.fail(request, {errc::client_closed, cluster_.display()});
    } else {
        commands_.submit(request, now);
    }
    carry_out(now);
}

void cluster_router::subscribe(const std::string& channel, instant now) {
    if (is_closed_) return;
    channels_.subscribe(channel, now);
    carry_out(now);
}

void cluster_router::want_link(hash_slot slot, instant now) {
    if (is_closed_) return;
    commands_.want_link(slot, now);
    carry_out(now);
}

void cluster_router::on_timer(instant now) {
    if (is_closed_) return;
    tell_news();
    commands_.fail_due(now);
    carry_out(now);
    if (const auto rested = rests_.end_due(now)) {
        channels_.follow(*rested, now);
        commands_.make_flush_due();
    }
    commands_.flush_if_due(now);
    watch_.on_timer(now);
    channels_.sweep();
    close_unneeded_links();
    carry_out(now);
}

void cluster_router::close(instant now) {
    if (std::exchange(is_closed_, true)) return;
    const failure why{errc::client_closed, cluster_.display()};
    links_.for_each([&](cluster_link& each) { effects_.drop(each, why, drop_link::next::close); });
    carry_out(now);
    commands_.fail_all(why);
    for (auto& each : links_.take_all()) effects_.add(close_link{std::move(each)});
    carry_out(now);
}

// The news come first: they may say that this link, whose greeting says replica, is a primary's and must be made anew.
void cluster_router::on_link_up(cluster_link& which, instant now) {
    links_.came_up(which);
    tell_news();
    watch_.on_link_up(now);
    if (map_ && which.serves()) {
        const slot_set its = links_.slots_of(which);
        which.told_up = true;
        channels_.follow(its, now);
        commands_.on_link_up(which, now);
        commands_.flush(now);
        tell_up(its);
    } else if (map_) {
        if (map_->is_primary(which.address())) watch_.want();
        commands_.on_link_up(which, now);
    }
    carry_out(now);
}

void cluster_router::on_link_down(cluster_link& which, const failure& why, instant now) {
    channels_.forget(which);
    watch_.want();
    tell_news();
    if (std::exchange(which.told_up, false)) {
        auto its = std::make_unique<const slot_set>(links_.slots_of(which));
        if (!its->empty()) effects_.add(tell_slots_down{std::move(its), why});
    }
    carry_out(now);
}

void cluster_router::on_stranded(cluster_link& which, const std::deque<command*>& unwritten, const failure& why,
                                 instant now) {
    which.has_failed = true;
    watch_.want();
    commands_.on_stranded(which, unwritten, why, now);
    if (!map_) {
        if (const auto whole = watch_.seed_failed(why, now)) commands_.fail_impatient(*whole);
    }
    carry_out(now);
}

// The message is valid during this call only. So it is no effect, and it comes from the driver alone.
void cluster_router::on_push(cluster_link& by, const reply_view& message, instant now) {
    const bool is_for_listener = channels_.pushed(by, message, now);
    carry_out(now);
    if (is_for_listener) told_.on_push(message, now);
}

bool cluster_router::on_refusal(cluster_link& by, command& request, const reply_view& refusal, instant now) {
    if (dynamic_cast<own_command*>(&request) != nullptr) return false;
    const bool is_taken = commands_.refused(by, request, refusal, now);
    carry_out(now);
    return is_taken;
}

void cluster_router::on_map_answer(cluster_link& by, const reply_view& reply, instant now) {
    if (auto fresh = watch_.check(by, reply, now)) {
        const slot_set& gained = watch_.adopt(std::move(*fresh), now);
        channels_.follow(gained, now);
        commands_.on_owners_changed(gained, now);
        commands_.want_links(now);
        commands_.flush(now);
        tell_news();
    } else if (!map_ && is_permanent(watch_.why_unknown().code)) {
        commands_.fail_all(watch_.why_unknown());
    }
    carry_out(now);
}

void cluster_router::on_channel_answer(channel_command& about, const reply_view& reply, instant now) {
    if (const auto moved = channels_.answered(about, reply, now)) commands_.on_owners_changed(slot_set(*moved), now);
    carry_out(now);
}

void cluster_router::tell_news() {
    const std::unique_ptr<slot_news> news = watch_.take_news();
    if (!news) return;
    effects_.add(tell_map{});
    if (!news->lost.empty()) {
        effects_.add(tell_slots_down{std::make_unique<const slot_set>(news->lost), std::move(news->why)});
    }
    tell_up(news->gained);
    links_.regreet_promoted(*map_);
}

// Those among them whose owner can be asked, owner by owner.
void cluster_router::tell_up(const slot_set& which) {
    if (which.empty()) return;
    links_.for_each([&](const cluster_link& each) {
        if (!each.serves() || !each.told_up) return;
        auto its = std::make_unique<const slot_set>(links_.slots_of(each, which));
        if (!its->empty()) effects_.add(tell_slots_up{std::move(its), &each});
    });
}

// A link that nothing is for, and that is no primary's. A link that could not be made is not tried for ever. Links that
// work may be of use while the map is in doubt. A member that redirects us to ever more addresses does not make us keep
// them all, except those that could settle the doubt.
bool cluster_router::may_close(const cluster_link& which) const {
    if (which.is_primary || commands_.needs(which)) return false;
    if (which.up() && !which.session().idle()) return false;
    if (watch_.is_doubted(which.address()) && !which.has_failed) return false;
    const bool is_too_many = links_.size() > most_links_in_doubt && !map_->has_member(which.address());
    return (watch_.is_settled() || which.has_failed || is_too_many) && !channels_.needs(which);
}

// Links that led to the map, and links to members that are no primaries any more.
void cluster_router::close_unneeded_links() {
    if (!map_) return;
    for (auto& each : links_.take_if([this](const cluster_link& link) { return may_close(link); })) {
        channels_.forget(*each);
        effects_.add(close_link{std::move(each)});
    }
}

void cluster_router::carry_out(instant now) {
    if (is_carrying_out_) return;  // the outer loop goes on with what was added
    is_carrying_out_ = true;
    const overloaded each{
        [&](const open_link& it) {
            it.which->attach(maker_.open(cluster_.for_member(it.which->address()), *it.which));
        },
        [&](const close_link& it) { maker_.close(it.which->session()); },
        [&](const drop_link& it) { carry_out(it, now); },
        [&](const fail_command& it) { routing::fail(*it.which, it.why, now); },
        [&](const tell_map&) { told_.on_map(*map_, now); },
        [&](const tell_slots_down& it) { told_.on_slots_down(*it.which, it.why, now); },
        [&](const tell_slots_up& it) {
            told_.on_slots_up(*it.which, {it.at->address(), it.at->session().facts(), it.at->number}, now);
        },
        [&](const tell_channel_refused& it) { told_.on_channel_refused(it.channel, it.why, now); },
    };
    while (!effects_.empty()) std::visit(each, effects_.take());
    is_carrying_out_ = false;
}

// The session calls back: its commands fail, and the link goes down.
void cluster_router::carry_out(const drop_link& effect, instant now) {
    session& link = effect.which->session();
    effect.which->is_dropped = false;  // the session itself is down from now on
    if (effect.then == drop_link::next::close) return link.close(now);
    link.distrust(effect.why, now);
    if (effect.then == drop_link::next::hurry) link.hurry(now);
}

}  // namespace holdfast::redis
