#include "engine/cluster_node.hpp"

namespace holdfast::engine {
namespace {

class locks_in_slots final : public lock_set {
public:
    explicit locks_in_slots(const redis::slot_set& slots) : slots_(slots) {}
    bool has(const lock_keys& lock) const noexcept override { return slots_.has(redis::slot_of(lock.lock())); }

private:
    const redis::slot_set& slots_;
};

// Those who are told of their turn on that channel: it has their tag.
class locks_of_channel final : public lock_set {
public:
    explicit locks_of_channel(std::string_view channel) : tag_(redis::hash_tag(channel)) {}
    bool has(const lock_keys& lock) const noexcept override { return redis::hash_tag(lock.lock()) == tag_; }

private:
    std::string_view tag_;
};

}  // namespace

cluster_node::cluster_node(const redis::server_settings& cluster, cluster_host& host, milliseconds mistrusted_for,
                           std::uint64_t jitter_seed)
    : host_(host),
      mistrusted_for_(mistrusted_for),
      wake_(cluster.wake),
      router_(cluster, cluster.seeds, host, *this, jitter_seed) {}

void cluster_node::subscribe(const std::string& channel) {
    if (wake_ != redis::wake_choice::poll) router_.subscribe(channel, host_.now());
}

woken_by cluster_node::wakes(const std::string& channel) const {
    if (wake_ == redis::wake_choice::push) return woken_by::push;
    const bool polls =
        wake_ == redis::wake_choice::poll || refused_.contains(channel) || !router_.can_be_heard(channel);
    return polls ? woken_by::poll : woken_by::push;
}

// By whom is asked, who need not be the owner by the map: some maps leave out slots that were taken over.
instant cluster_node::trusted_from(const lock_keys& lock) const {
    const redis::server_address* const asked = router_.whom_to_ask(slot_of(lock));
    const auto found = asked == nullptr ? primaries_.end() : primaries_.find(*asked);
    return found == primaries_.end() ? instant{} : found->second.trusted_from;
}

// Any member may have granted the hold: the question shows whether the present owner of the slot has it.
void cluster_node::confirm(redis::command& request, const lock_keys& lock, redis::acknowledgement wanted) {
    host_.confirm(request, router_.whom_to_ask(slot_of(lock)), wanted);
}

// The first map tells nothing of who was a primary before: then uptimes are all there is.
void cluster_node::on_map(const redis::slot_map& fresh, instant now) {
    std::erase_if(primaries_, [&](const auto& each) { return !fresh.is_primary(each.first); });
    for (const redis::server_address& place : fresh.primaries()) {
        const auto [at, is_new] = primaries_.try_emplace(place);
        if (is_new && has_map_) at->second.trusted_from = now + mistrusted_for_;
    }
    has_map_ = true;
    host_.on_map();
    input_->on_owners_changed(now);
}

void cluster_node::get_to_know(primary& it, const redis::server_facts& facts, instant now) const {
    it.trusted_from = std::max(it.trusted_from, now + mistrusted_for_ - redis::known_for(facts, it.run_id));
    it.run_id = facts.run_id;
}

// A link is told of anew whenever a slot has come to its primary.
void cluster_node::on_slots_up(const redis::slot_set& which, const redis::member_link& at, instant now) {
    primary& it = primaries_[at.address];
    const bool is_new = std::exchange(it.link, at.number) != at.number;
    if (is_new) {
        get_to_know(it, at.facts, now);
        host_.on_member_up(at.address, at.facts);
        // Rights may have been given meanwhile.
        for (const std::string& channel : std::exchange(refused_, {})) router_.subscribe(channel, now);
    }
    // What a link said of its clock was so when it came up.
    input_->on_link_up({.clock = is_new ? at.facts.clock : std::nullopt}, locks_in_slots(which), now);
    host_.on_slots_up(which, now);
}

void cluster_node::on_slots_down(const redis::slot_set& which, const failure& why, instant now) {
    if (why.code != errc::moving) host_.on_member_down(why);
    input_->on_link_down(locks_in_slots(which), now);
}

void cluster_node::on_channel_refused(const std::string& channel, const failure& why, instant now) {
    if (wake_ == redis::wake_choice::push) {
        return input_->on_subscription_refused(why, locks_of_channel(channel), now);
    }
    refused_.insert(channel);
    host_.on_wakes_refused(why);
    input_->on_wakes_changed(locks_of_channel(channel), now);
}

}  // namespace holdfast::engine
