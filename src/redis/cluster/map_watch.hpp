// Keeps the map of a Cluster up to date: when it is asked for, whom, and whether an answer is believed.
//
// The map is a guess. It is read as a whole from CLUSTER SHARDS, patched by MOVED, and read again when something shows
// that it is wrong, and every ten seconds. One question at a time, to the members in turn.
//
// Invariants:
//  (1) A MOVED counts only if the owner by the map says it: late refusals of former owners do not put the map back.
//  (2) A map that takes all slots from a primary that serves us counts only if that primary says so itself, or if its
//      successors serve. A member that is cut off from the others may tell an old map. To believe it would cost us the
//      trust in that primary each time.
//  (3) What happened to slots is collected until take_news(): each time the listener is told, it looks at everything
//      that waits.
#pragma once

#include "redis/cluster/cluster_links.hpp"
#include "redis/session/jitter.hpp"
#include "redis/slots/redirect.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace holdfast::redis {

// What happened to slots since the listener was last told.
struct slot_news {
    slot_set lost;    // their owner could be asked, and is another now or has ended their channels
    slot_set gained;  // they have an owner, new or the same, who is to be asked again if up
    failure why;      // of the first
};

class map_watch {
public:
    // `map` is written here only.
    map_watch(const server_settings& cluster, std::vector<server_address> seeds, std::optional<slot_map>& map,
              cluster_links& links, link_events& events, cluster_effects& effects, jitter& chance);
    ~map_watch();

    void want() noexcept { is_wanted_ = true; }
    // No question is open or to be asked.
    bool is_settled() const noexcept;
    // The member is an owner by a map that is not believed yet, and could settle that.
    bool is_doubted(const server_address& member) const;
    void on_link_up(instant now);
    void on_timer(instant now);
    instant deadline() const noexcept;

    // The answer to a question. None: there is nothing to adopt.
    std::optional<slot_map> check(const cluster_link& by, const reply_view& reply, instant now);
    // Returns the slots that the news have as gained.
    const slot_set& adopt(slot_map fresh, instant now);
    // The owner of one slot by MOVED. False: not believed, the map stays.
    bool learn(const cluster_link& by, const redirect& moved);
    // The owner of the slot ended a channel: pushes may be lost.
    void note_gap(const cluster_link& by, hash_slot slot);
    // Null: nothing has happened.
    std::unique_ptr<slot_news> take_news() noexcept { return std::move(news_); }

    // Without a map: an attempt to reach a member has failed. Returns why commands should give up, if all seeds failed.
    std::optional<failure> seed_failed(const failure& why, instant now);
    failure why_unknown() const;

private:
    class question;

    void ask(instant now);
    void dial(instant now);
    void ask_later(instant now);
    std::vector<server_address> doubtful_owners(const slot_map& fresh, const cluster_link& by) const;
    void doubt(const slot_map& fresh, std::vector<server_address> owners, instant now);
    slot_news& some_news(failure why);

    const server_settings& cluster_;
    const std::vector<server_address> seeds_;
    std::optional<slot_map>& map_;
    cluster_links& links_;
    cluster_effects& effects_;
    jitter& jitter_;
    std::unique_ptr<question> question_;
    std::unique_ptr<slot_news> news_;
    std::vector<server_address> doubted_;  // owners by the last map that was not adopted
    bool is_wanted_ = false;
    bool is_dialling_ = false;              // the first member that comes up is asked at once
    instant ask_at_{};                      // not before
    std::chrono::milliseconds pause_{100};  // between two questions
    instant due_at_ = never;                // though nothing shows that the map is wrong
    failure why_unknown_{errc::unreachable, ""};
};

}  // namespace holdfast::redis
