// The parts of a cluster_router that its three files share; nobody else includes this.
#pragma once

#include "redis/cluster/cluster_router.hpp"

#include <bitset>
#include <utility>

namespace holdfast::redis {

class cluster_router::slot_bits final : public slot_set {
public:
    slot_bits() = default;
    explicit slot_bits(hash_slot only) { add(only); }

    // Those of which `wanted(hash_slot)` is true.
    template <class Predicate>
    static slot_bits all_that(Predicate wanted) {
        slot_bits found;
        found.add_all_that(wanted);
        return found;
    }
    template <class Predicate>
    void add_all_that(Predicate wanted) {
        for (std::size_t slot = 0; slot < hash_slots; ++slot) {
            if (wanted(static_cast<hash_slot>(slot))) bits_.set(slot);
        }
    }

    bool has(hash_slot slot) const noexcept override { return bits_[static_cast<std::size_t>(slot)]; }
    void add(hash_slot slot) { bits_.set(static_cast<std::size_t>(slot)); }
    bool empty() const noexcept { return bits_.none(); }

private:
    std::bitset<hash_slots> bits_;
};

// What has become of slots, until it is told.
struct cluster_router::slot_news {
    explicit slot_news(failure first) : why(std::move(first)) {}

    slot_bits lost;    // they could be asked for, and have to be asked for anew
    slot_bits gained;  // another's, if he is up; perhaps the same one's
    failure why;       // of the first
    bool has_new_primary = false;
};

// A link that comes up later than that after a command was last sent does not take what ASK had sent there.
inline constexpr std::chrono::milliseconds ask_is_fresh_for{100};

// One member: the link to it, and what waits for that link though the map would send it elsewhere.
class cluster_router::link final : public session_listener, public refusal_filter {
public:
    link(cluster_router& whole, server_address address) : whole_(whole), address_(std::move(address)) {}

    void open() {
        session_ = &whole_.maker_.open(whole_.cluster_.for_member(address_), *this);
        session_->filter_refusals(this);
    }

    const server_address& address() const noexcept { return address_; }
    redis::session& session() const noexcept { return *session_; }
    bool up() const noexcept { return session_->up(); }
    // Can be sent what the map says is its own.
    bool serves() const noexcept { return up() && session_->facts().role != "replica"; }

    // Scripts tell a listener by SPUBLISH. Where that would end the server there must be none: waiters poll.
    bool may_be_listened_to() const noexcept { return session_->facts().in_a_shard; }

    std::uint64_t number = 0;  // of the last time that it came up
    command_queue asked;       // to be sent with ASKING
    bool told_up = false;      // its slots were
    bool is_primary = false;   // by the map; to search that for every link after every answer would be too slow
    bool has_failed = false;   // its last attempt, or its link; none has come up since

private:
    void on_link_up(const server_facts&, instant now) override { whole_.link_up(*this, now); }
    void on_link_down(const failure& why, instant now) override { whole_.link_down(*this, why, now); }
    void on_stranded(std::deque<command*> unwritten, const failure& why, instant now) override {
        whole_.stranded(*this, unwritten, why, now);
    }
    void on_subscription_refused(const failure&, instant) override {}  // none is made by the session
    void on_push(const reply_view& message, instant now) override { whole_.pushed(*this, message, now); }
    bool takes(command& request, const reply_view& refusal, instant now) override {
        return whole_.refused(*this, request, refusal, now);
    }

    cluster_router& whole_;
    const server_address address_;
    redis::session* session_ = nullptr;
};

// A command of the router's own, for one link: it is never sent elsewhere, and reads its refusals itself.
class cluster_router::own_command : public command {};

class cluster_router::map_question final : public own_command {
public:
    explicit map_question(cluster_router& whole);

    void ask(link& whom, instant now) {
        asked_ = &whom;
        whom.session().submit(*this, now);
    }
    bool under_way() const noexcept { return asked_ != nullptr; }

private:
    void on_reply(const reply_view& reply, instant now) override {
        whole_.map_answered(*std::exchange(asked_, nullptr), reply, now);
    }
    void on_failure(const failure&, instant) override { asked_ = nullptr; }  // still wanted; the link's end is told

    cluster_router& whole_;
    link* asked_ = nullptr;
};

// A subscription at one member, or its end.
class cluster_router::channel_command final : public own_command {
public:
    enum class kind { on, off };

    channel_command(cluster_router& whole, link& there, std::string channel, kind on_or_off)
        : name(std::move(channel)), at(there), what(on_or_off), whole_(whole) {
        if (what == kind::on) {
            set_sharded_subscription(name);
        } else {
            set_unsubscription(name);
        }
    }

    const std::string name;
    link& at;
    const kind what;
    bool by_asking = false;

private:
    void on_reply(const reply_view& reply, instant now) override { whole_.channel_answered(*this, reply, now); }
    void on_failure(const failure&, instant) override { whole_.channel_lost(*this); }

    cluster_router& whole_;
};

}  // namespace holdfast::redis
