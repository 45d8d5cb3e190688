// A mutex on a majority of servers when some of them are killed, hang, are far away, or come back empty.
#include <mutex>
#include <thread>

#include "integration/quorum/quorum_fixture.hpp"

namespace holdfast::testing::quorum_faults_test {
namespace {

class QuorumFaults : public quorum_fixture {
protected:
    /// The first ones.
    template <typename What>
    void each_of(std::size_t so_many, What what) {
        for (std::size_t i = 0; i < so_many; ++i) what(i);
    }
    void expect_work(client& whose) {
        mutex lock{whose, "stock", terms()};
        for (int i = 0; i < 3; ++i) {
            lease held = lock.try_acquire_for(an_age);
            ASSERT_TRUE(held);
            EXPECT_GE(holders_of(held.id()), majority());
            EXPECT_FALSE(held.release());
        }
    }
};
HOLDFAST_ON_THREE_AND_FIVE(QuorumFaults);

// R40
TEST_P(QuorumFaults, WorksWithAMinorityKilled) {
    each_of(minority(), [this](std::size_t i) { servers[i].kill(); });
    expect_work(*subject);
    const auto fresh = make_client();
    expect_work(*fresh);
}

// Bounded by the timeout of a request, not by the lease: here by nothing at all, since the others are a majority.
TEST_P(QuorumFaults, WorksWithAMinorityThatHangs) {
    each_of(minority(), [this](std::size_t i) { proxies[i].stall(direction::both); });
    expect_work(*subject);
    const auto fresh = make_client();
    expect_work(*fresh);
    each_of(minority(), [this](std::size_t i) { proxies[i].unstall(direction::both); });
}

TEST_P(QuorumFaults, WorksWithAMinorityFarAway) {
    each_of(minority(), [this](std::size_t i) { proxies[i].delay(direction::both, 150ms); });
    expect_work(*subject);
}

// R40, R41: with a majority gone nothing is left on the survivors.
TEST_P(QuorumFaults, WithoutAMajorityThereIsNoQuorumByTheDeadlineAndNothingIsLeft) {
    each_of(majority(), [this](std::size_t i) { servers[i].kill(); });
    mutex lock{*subject, "stock", terms()};
    refusal why;
    EXPECT_EQ(to_text(condition_of([&] { lock.try_acquire_for(400ms, {.why_not = &why}); })), to_text(errc::no_quorum));
    EXPECT_EQ(to_text(condition_of([&] { lock.try_acquire(); })), to_text(errc::no_quorum));
    for (redis_server& each : servers) {
        if (!each.running()) continue;
        EXPECT_TRUE(eventually([&] { return leftovers(each).empty(); }, 3s)) << leftovers(each);
    }
}

// R41: also where the answer never came.
TEST_P(QuorumFaults, AFailedAttemptIsUndoneWhereItsAnswerWasLost) {
    mutex lock{*subject, "stock", {.lease = longest_lease, .renew = false}};
    each_of(majority(), [this](std::size_t i) { proxies[i].stall(direction::to_client); });
    EXPECT_EQ(to_text(condition_of([&] { lock.try_acquire_for(200ms); })), to_text(errc::no_quorum));
    each_of(majority(), [this](std::size_t i) { proxies[i].unstall(direction::to_client); });
    mutex theirs{*other, "stock", terms()};
    EXPECT_TRUE(theirs.try_acquire_for(an_age));
}

// R41: the caller may have gone on long ago.
TEST_P(QuorumFaults, ACancelledAttemptIsUndoneEverywhere) {
    mutex mine{*subject, "stock", terms()};
    lease held = mine.acquire();
    std::stop_source stop;
    auto waiting = in_background([&] {
        mutex theirs{*other, "stock", terms()};
        return condition_of([&] { theirs.acquire({.stop = stop.get_token()}); });
    });
    ASSERT_TRUE(queue_has(1));
    stop.request_stop();
    EXPECT_EQ(to_text(waiting.get()), to_text(errc::cancelled));
    EXPECT_TRUE(queue_has(0));
}

// R43
TEST_P(QuorumFaults, RenewalGoesOnWithAMinorityGone) {
    mutex lock{*subject, "stock", terms(longest_lease)};
    lease held = lock.acquire();
    each_of(minority(), [this](std::size_t i) { servers[i].kill(); });
    const auto end = std::chrono::steady_clock::now() + longest_lease + 1s;
    while (std::chrono::steady_clock::now() < end) {
        ASSERT_FALSE(held.lost().stop_requested());
        std::this_thread::sleep_for(20ms);
    }
    EXPECT_GT(held.validity(), 0ms);
    EXPECT_FALSE(held.renew());
    EXPECT_FALSE(held.release());
}

// R43, R44
TEST_P(QuorumFaults, LosingTheMajorityIsToldBeforeValidityEnds) {
    const auto wary = make_client({.lost_margin_percent = 50});
    mutex lock{*wary, "stock", terms()};
    lease held = lock.acquire();
    each_of(majority(), [this](std::size_t i) { proxies[i].stall(direction::both); });
    auto valid_until = std::chrono::steady_clock::now();
    EXPECT_TRUE(eventually([&] {
        const auto before = std::chrono::steady_clock::now();
        const milliseconds left = held.validity();
        if (held.lost().stop_requested()) return true;
        if (left > 0ms) valid_until = before + left;  // none is left as soon as it is lost
        return false;
    }));
    EXPECT_LT(std::chrono::steady_clock::now(), valid_until);
    EXPECT_EQ(held.release(), make_error_code(errc::lost));
    each_of(majority(), [this](std::size_t i) { proxies[i].unstall(direction::both); });
}

// R43: nodes that came back empty have the hold again, when they are trusted again; and the hook hears of all that.
TEST_P(QuorumFaults, AServerThatCameBackEmptyIsHealedAndTheShrinkingToldOf) {
    const auto counted = std::make_shared<metrics>();
    std::mutex writing;
    std::vector<std::string> log;
    const auto watched = make_client({.metrics = counted, .log = [&](log_level, const std::string& line) {
                                          const std::lock_guard guard{writing};
                                          log.push_back(line);
                                      }});
    mutex lock{*watched, "stock", terms()};
    lease held = lock.acquire();
    ASSERT_TRUE(eventually([&] { return holders_of(held.id()) == servers.size(); }));
    servers[0].restart(redis_server::data::lose);
    EXPECT_TRUE(eventually([&] { return counted->votes_lost > 0; }, an_age));
    EXPECT_TRUE(eventually([&] { return holders_of(held.id()) == servers.size(); }, an_age));
    EXPECT_FALSE(held.lost().stop_requested());
    EXPECT_FALSE(held.release());
    const std::lock_guard guard{writing};
    const std::string fewer = std::to_string(servers.size() - 1) + " of " + std::to_string(servers.size());
    EXPECT_THAT(log, ::testing::Contains(::testing::HasSubstr(fewer)));
}

// R40, R44: a minority that did not vote for the holder and a server that forgot it would be a majority.
TEST_P(QuorumFaults, AServerThatLostItsDataDoesNotHelpToElectASecondHolder) {
    each_of(minority(), [this](std::size_t i) { proxies[i].stall(direction::both); });
    mutex mine{*subject, "stock", terms()};
    lease held = mine.acquire();
    ASSERT_EQ(holders_of(held.id()), majority());
    each_of(servers.size(), [this](std::size_t i) {
        if (i >= minority()) proxies[i].stall(direction::both);  // the holder cannot even hear of what comes now
    });
    servers.back().restart(redis_server::data::lose);
    std::vector<std::string> direct;
    for (redis_server& each : servers) direct.push_back(each.url());
    client rival{direct, {.max_lease = longest_lease}};
    mutex theirs{rival, "stock", terms()};
    auto waiting = in_background([&] {
        lease got = theirs.try_acquire_for(an_age);
        const bool believed_by_both = held.validity() > 0ms && !held.lost().stop_requested();
        EXPECT_TRUE(got);
        return believed_by_both;
    });
    EXPECT_FALSE(waiting.get());
    each_of(servers.size(), [this](std::size_t i) { proxies[i].unstall(direction::both); });
}

// R45: across servers that lost their data, all of them, one after the other.
TEST_P(QuorumFaults, TokensGrowAcrossLostData) {
    mutex lock{*subject, "stock", terms()};
    std::uint64_t last = lock.acquire().token();
    for (redis_server& each : servers) {
        each.restart(redis_server::data::lose);
        lease held = lock.try_acquire_for(an_age);
        ASSERT_TRUE(held);
        EXPECT_GT(held.token(), last);
        last = held.token();
    }
}

// R41, R42: a waiter that reaches no majority delays no other waiter, and acquires when it reaches one again.
TEST_P(QuorumFaults, WhoReachesNoMajorityStandsInNobodysWay) {
    std::vector<std::string> urls;
    std::vector<tcp_proxy> own;
    for (redis_server& each : servers) {
        own.emplace_back(each.port());
        urls.push_back(own.back().url() + "?timeout=5s");
    }
    client cut_off{urls, {.max_lease = longest_lease}};
    warm_up(cut_off);
    for (std::size_t i = 0; i < majority(); ++i) {
        own[i].refuse();
        own[i].cut();
    }
    auto waiting = in_background([&] {
        mutex lock{cut_off, "stock", terms()};
        return lock.acquire().token();
    });
    mutex mine{*subject, "stock", terms()};
    for (int i = 0; i < 10; ++i) {
        lease held = mine.try_acquire_for(an_age);
        ASSERT_TRUE(held);
        EXPECT_FALSE(held.release());
    }
    for (std::size_t i = 0; i < majority(); ++i) own[i].accept();
    ASSERT_EQ(waiting.wait_for(an_age), std::future_status::ready);
    EXPECT_GT(waiting.get(), 0U);
}

}  // namespace
}  // namespace holdfast::testing::quorum_faults_test
