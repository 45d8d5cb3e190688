// The machine of local grants by itself: every rule as events and the effects that follow. R50 R51 R52
#include "engine/local/local_grants.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace holdfast::engine::local::local_grants_test {
namespace {

using namespace std::chrono_literals;
using kind = effect::kind;
using verdict = outcome::verdict;

constexpr instant start{1000s};

class LocalGrants : public ::testing::Test {
protected:
    void use(settings chosen) { machine_ = std::make_unique<local_grants>(chosen); }
    settings usual() { return {.lease = 3s, .keep = 1s, .passes = 2}; }
    settings read_write(preference prefer = preference::arrival) {
        settings chosen = usual();
        chosen.kind = lock_kind::read_write;
        chosen.prefer = prefer;
        return chosen;
    }

    claim& make(access want = access::exclusive, std::uint64_t owner = 0, patience limit = {}) {
        claim& c = claims_.emplace_back();
        c.want = want;
        c.owner = owner_id{owner};
        c.limit = limit;
        return c;
    }
    claim& wants(access want = access::exclusive, std::uint64_t owner = 0, patience limit = {}) {
        claim& c = make(want, owner, limit);
        last_ = machine_->acquire(c, now_, out_);
        return c;
    }
    claim& tries(access want = access::exclusive) { return wants(want, 0, {waiting::not_at_all, now_ + 2s}); }
    claim& reads() { return wants(access::shared); }

    // The effects since the last call, of these kinds only.
    std::vector<effect> took(kind which) {
        std::vector<effect> found;
        for (const effect& e : out_) {
            if (e.what == which) found.push_back(e);
        }
        std::erase_if(out_, [which](const effect& e) { return e.what == which; });
        machine_->check();
        return found;
    }
    std::size_t count(kind which) { return took(which).size(); }
    hold_facts facts(access mode = access::exclusive) {
        return {.mode = mode, .valid_until = now_ + 3s, .proved_at = now_, .token = 100, .ceiling = 199};
    }
    // The server answers the request that was asked last.
    std::uint64_t arrives(hold_facts what) {
        const auto asked = took(kind::ask);
        EXPECT_EQ(asked.size(), 1U);
        if (asked.empty()) return 0;
        return machine_->acquired(asked.back().number, what, now_, out_);
    }
    std::uint64_t arrives() { return arrives(facts()); }
    // A hold that nobody uses.
    std::uint64_t kept(hold_facts what) {
        claim& c = wants(what.mode);
        const auto number = arrives(what);
        EXPECT_EQ(c.is, claim::state::holding);
        release(c);
        out_.clear();
        return number;
    }
    std::uint64_t kept() { return kept(facts()); }
    void release(claim& c) {
        EXPECT_EQ(machine_->release(c, c.exclusive > 0 ? access::exclusive : access::shared, now_, out_), std::nullopt);
        machine_->check();
    }
    void wanted(std::uint64_t hold) { machine_->on_wanted(hold, now_, out_); }
    errc why(const std::vector<effect>& refused) { return refused.empty() ? errc{} : refused.front().why->code; }

    std::deque<claim> claims_;
    std::unique_ptr<local_grants> machine_ = std::make_unique<local_grants>(usual());
    effects out_;
    outcome last_{};
    instant now_ = start;
};

TEST_F(LocalGrants, TheFirstAcquisitionAsksAndTheNextOnesDoNot) {
    claim& first = wants();
    EXPECT_EQ(last_.what, verdict::waits);
    arrives();
    EXPECT_EQ(count(kind::granted), 1U);
    release(first);
    EXPECT_EQ(count(kind::release), 0U);
    for (int i = 0; i < 100; ++i) {
        claim& next = wants();
        EXPECT_EQ(last_.what, verdict::granted);
        release(next);
    }
    EXPECT_EQ(count(kind::ask) + count(kind::release) + count(kind::renew), 0U);
}

TEST_F(LocalGrants, AnUnusedHoldIsReleasedWhenItWasKeptLongEnough) {
    kept();
    now_ += 500ms;
    release(wants());
    now_ += 999ms;
    machine_->on_timer(now_, out_);
    EXPECT_EQ(count(kind::release), 0U);
    const auto wakes = took(kind::wake);
    ASSERT_EQ(wakes.size(), 1U);
    EXPECT_EQ(wakes.front().at, now_ + 1ms);
    now_ += 1ms;
    machine_->on_timer(now_, out_);
    EXPECT_EQ(count(kind::release), 1U);
    EXPECT_FALSE(machine_->holds_any());
}

TEST_F(LocalGrants, WithoutKeepItIsReleasedWithTheLastUser) {
    settings chosen = usual();
    chosen.keep = 0s;
    use(chosen);
    claim& a = wants();
    claim& b = wants();
    arrives();
    release(a);
    EXPECT_EQ(b.is, claim::state::holding);
    EXPECT_EQ(count(kind::release), 0U);
    release(b);
    EXPECT_EQ(count(kind::release), 1U);
}

TEST_F(LocalGrants, LocalWaitersAreServedInTheOrderInWhichTheyCame) {
    claim& a = wants();
    claim& b = wants();
    claim& c = wants();
    EXPECT_EQ(count(kind::extend), 0U);
    arrives();  // one position for all
    EXPECT_EQ(a.is, claim::state::holding);
    release(a);
    EXPECT_EQ(b.is, claim::state::holding);
    release(b);
    EXPECT_EQ(c.is, claim::state::holding);
}

TEST_F(LocalGrants, AnUnusedHoldIsGivenBackAtOnceWhenItIsWanted) {
    const auto hold = kept();
    wanted(hold);
    EXPECT_EQ(count(kind::release), 1U);
    EXPECT_EQ(machine_->counted().give_backs, 1U);
}

TEST_F(LocalGrants, WantedOfAnotherHoldIsIgnored) {
    const auto hold = kept();
    wanted(hold + 1);
    EXPECT_EQ(count(kind::release), 0U);
}

TEST_F(LocalGrants, WhoWaitedAlreadyIsServedThenSoManyPassesAndNoMore) {
    claim& user = wants();
    const auto hold = arrives();
    std::vector<claim*> early;
    for (int i = 0; i < 3; ++i) early.push_back(&wants());
    wanted(hold);
    std::vector<claim*> late;
    for (int i = 0; i < 4; ++i) late.push_back(&wants());
    EXPECT_EQ(count(kind::ask), 1U);  // for the third and the fourth, one position, before the release
    release(user);
    for (claim* const c : early) {
        EXPECT_EQ(c->is, claim::state::holding);
        release(*c);
    }
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(late[i]->is, claim::state::holding);
        EXPECT_EQ(count(kind::release), 0U);
        release(*late[i]);
    }
    EXPECT_EQ(count(kind::release), 1U);
    EXPECT_EQ(count(kind::ask), 0U);
    EXPECT_EQ(late[2]->is, claim::state::waiting);
    EXPECT_EQ(machine_->counted().passes, 5U);
}

TEST_F(LocalGrants, TheTimeBoundCutsPassingShort) {
    claim& user = wants();
    const auto hold = arrives();
    wants();
    wanted(hold);
    EXPECT_EQ(count(kind::ask), 0U);
    now_ += 10ms;
    machine_->on_timer(now_, out_);  // it will not be served by this hold
    EXPECT_EQ(count(kind::ask), 1U);
    release(user);
    EXPECT_EQ(count(kind::granted), 1U);  // the user's own, before
    EXPECT_EQ(count(kind::release), 1U);
}

TEST_F(LocalGrants, AHoldThatComesWithWaitersServesOneAndItsPasses) {
    std::vector<claim*> all;
    for (int i = 0; i < 5; ++i) all.push_back(&wants());
    hold_facts told = facts();
    told.wanted = true;
    arrives(told);
    EXPECT_EQ(count(kind::ask), 1U);  // those behind the passes have their position already
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(all[i]->is, claim::state::holding);
        release(*all[i]);
    }
    EXPECT_EQ(count(kind::release), 1U);
    EXPECT_EQ(all[3]->is, claim::state::waiting);
}

TEST_F(LocalGrants, WithoutPassesEveryWaiterHasItsPositionOnceSomebodyElseWaits) {
    settings chosen = usual();
    chosen.passes = 0;
    use(chosen);
    claim& user = wants();
    const auto hold = arrives();
    wants();
    wanted(hold);
    EXPECT_EQ(count(kind::ask), 0U);  // it waited already
    wants();
    wants();
    EXPECT_EQ(count(kind::ask), 2U);
    release(user);
    EXPECT_EQ(count(kind::release), 0U);
}

TEST_F(LocalGrants, AHoldWithoutAMarkIsNotKept) {
    hold_facts told = facts();
    told.marked = false;
    claim& c = wants();
    arrives(told);
    release(c);
    EXPECT_EQ(count(kind::release), 1U);
}

TEST_F(LocalGrants, ReentranceIsNeitherDelayedNorCounted) {
    claim& mine = wants(access::exclusive, 7);
    const auto hold = arrives();
    wants();
    wanted(hold);
    now_ += 1s;  // the bound is over, and so is freshness
    wants(access::exclusive, 7);
    EXPECT_EQ(last_.what, verdict::reentered);
    EXPECT_EQ(last_.mine, &mine);
    EXPECT_EQ(machine_->counted().passes, 0U);
    release(mine);
    EXPECT_EQ(mine.is, claim::state::holding);
    release(mine);
    EXPECT_EQ(mine.is, claim::state::over);
}

TEST_F(LocalGrants, ReenteringTooDeepIsRefused) {
    settings chosen = usual();
    chosen.max_depth = 2;
    use(chosen);
    wants(access::exclusive, 7);
    arrives();
    wants(access::exclusive, 7);
    wants(access::exclusive, 7);
    EXPECT_EQ(last_.why, errc::too_deep);
}

// --- freshness

TEST_F(LocalGrants, WithLessThanAThirdOfTheLeaseItIsRenewedFirst) {
    const auto hold = kept();
    machine_->on_proof(hold, now_ + 1900ms, now_, out_);
    now_ += 900ms;
    release(wants());
    now_ += 900ms;
    release(wants());
    now_ += 201ms;
    out_.clear();
    claim& c = wants();
    EXPECT_EQ(last_.what, verdict::waits);
    EXPECT_EQ(count(kind::renew), 1U);
    wants();
    EXPECT_EQ(count(kind::renew), 0U);  // one is enough
    machine_->on_validity(hold, now_ + 3s, now_, out_);
    machine_->on_proof(hold, now_, now_, out_);
    EXPECT_EQ(c.is, claim::state::holding);
}

TEST_F(LocalGrants, WithoutAProofFromThePresentLinkNothingIsGranted) {
    const auto hold = kept();
    machine_->on_proof(hold, instant{}, now_, out_);
    claim& c = wants();
    EXPECT_EQ(last_.what, verdict::waits);
    EXPECT_EQ(count(kind::renew), 1U);
    EXPECT_EQ(count(kind::ask), 0U);
    machine_->on_proof(hold, now_, now_, out_);
    EXPECT_EQ(c.is, claim::state::holding);
}

TEST_F(LocalGrants, AnOldProofIsNotEnough) {
    const auto hold = kept();
    machine_->on_validity(hold, now_ + 10s, now_, out_);
    now_ += 900ms;
    release(wants());
    now_ += 600ms;
    wants();
    EXPECT_EQ(last_.what, verdict::waits);
    EXPECT_EQ(count(kind::renew), 1U);
}

// A plain lock would be acquired: its answer came within the lease.
TEST_F(LocalGrants, TheFirstGrantNeedsNoFresherProofThanAPlainLock) {
    claim& first = wants();
    hold_facts late = facts();
    now_ += 1800ms;
    arrives(late);
    EXPECT_EQ(first.is, claim::state::holding);
}

TEST_F(LocalGrants, TheFirstGrantNeedsAProofFromThePresentLink) {
    claim& first = wants();
    hold_facts unproved = facts();
    unproved.proved_at = {};
    const auto hold = arrives(unproved);
    EXPECT_EQ(first.is, claim::state::waiting);
    machine_->on_proof(hold, now_, now_, out_);
    EXPECT_EQ(first.is, claim::state::holding);
}

// Renewals take longer than half of the lease: no proof is ever young enough.
TEST_F(LocalGrants, AHoldThatIsNeverFreshIsGivenBackAndAcquiredAnew) {
    claim& first = wants();
    hold_facts late = facts();
    now_ += 1800ms;
    const auto hold = arrives(late);
    release(first);
    claim& second = wants();
    EXPECT_EQ(count(kind::renew), 1U);
    EXPECT_EQ(second.is, claim::state::waiting);
    const instant asked = now_;
    now_ += 1800ms;
    machine_->on_validity(hold, asked + 3s, now_, out_);
    machine_->on_proof(hold, asked, now_, out_);
    EXPECT_EQ(count(kind::release), 1U);
    arrives();
    EXPECT_EQ(second.is, claim::state::holding);
}

// While a slot of a Cluster moves.
TEST_F(LocalGrants, ARenewalThatBringsNoNumbersIsNotRepeatedAtOnce) {
    hold_facts one_number = facts();
    one_number.ceiling = one_number.token;
    const auto hold = kept(one_number);
    claim& user = wants();
    machine_->token_of(user, now_, out_);
    claim& waiter = wants();
    release(user);
    EXPECT_EQ(count(kind::renew), 1U);
    for (int i = 0; i < 3; ++i) {
        took(kind::wake);
        machine_->on_validity(hold, now_ + 3s, now_, out_);
        machine_->on_proof(hold, now_, now_, out_);
        EXPECT_EQ(count(kind::renew), 0U);
        const auto wakes = took(kind::wake);
        ASSERT_EQ(wakes.size(), 1U);
        EXPECT_EQ(wakes.front().at, now_ + 300ms) << "a tenth of the lease";
        now_ += 300ms;
        machine_->on_timer(now_, out_);
        EXPECT_EQ(count(kind::renew), 1U);
    }
    EXPECT_EQ(waiter.is, claim::state::waiting);
    machine_->on_ceiling(hold, 300, now_, out_);
    EXPECT_EQ(waiter.is, claim::state::holding);
}

TEST_F(LocalGrants, ATryWaitsForARenewalAndNotForOtherUsers) {
    const auto hold = kept();
    machine_->on_proof(hold, instant{}, now_, out_);
    claim& c = tries();
    EXPECT_EQ(last_.what, verdict::waits);
    machine_->on_proof(hold, now_, now_, out_);
    EXPECT_EQ(c.is, claim::state::holding);
    tries();
    EXPECT_EQ(last_.why, errc::busy);
}

TEST_F(LocalGrants, ATryThatWaitedForARenewalAsksTheServerWhenTheHoldIsLost) {
    const auto hold = kept();
    machine_->on_proof(hold, instant{}, now_, out_);
    tries();
    machine_->on_lost(hold, now_, out_);
    const auto asked = took(kind::ask);
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(asked.front().limit.wait, waiting::not_at_all);
}

// --- tokens

TEST_F(LocalGrants, TokensGrowWithEveryGrantThatAsksForOne) {
    fencing_token before = 0;
    claim* c = &wants();
    arrives();
    for (int i = 0; i < 10; ++i) {
        const auto token = machine_->token_of(*c, now_, out_);
        EXPECT_EQ(token, machine_->token_of(*c, now_, out_));
        EXPECT_GT(token, before);
        before = token;
        release(*c);
        c = &wants();
    }
    EXPECT_EQ(before, 109U);
}

TEST_F(LocalGrants, WithoutANumberNothingIsGrantedBeforeARenewal) {
    hold_facts told = facts();
    told.ceiling = told.token + 1;
    claim& a = wants();
    const auto hold = arrives(told);
    machine_->token_of(a, now_, out_);
    EXPECT_EQ(count(kind::renew), 0U);
    release(a);
    claim& b = wants();
    EXPECT_EQ(last_.what, verdict::granted);
    machine_->token_of(b, now_, out_);
    EXPECT_EQ(count(kind::renew), 1U);  // ahead
    release(b);
    claim& c = wants();
    EXPECT_EQ(last_.what, verdict::waits);
    machine_->on_ceiling(hold, 500, now_, out_);
    EXPECT_EQ(c.is, claim::state::holding);
    EXPECT_EQ(machine_->token_of(c, now_, out_), 102U);
}

TEST_F(LocalGrants, ReadersShareATokenAndTheNextOnesHaveALargerOneThanAWriterBetween) {
    use(read_write());
    claim& writer = wants();
    arrives();
    const auto first = machine_->token_of(writer, now_, out_);
    release(writer);
    claim& a = reads();
    claim& b = reads();
    const auto shared = machine_->token_of(a, now_, out_);
    EXPECT_EQ(shared, machine_->token_of(b, now_, out_));
    EXPECT_GT(shared, first);
    release(a);
    release(b);
    claim& again = wants();
    const auto second = machine_->token_of(again, now_, out_);
    EXPECT_GT(second, shared);
    EXPECT_EQ(machine_->downgrade(again, now_, out_), std::nullopt);
    EXPECT_GT(machine_->token_of(again, now_, out_), second);
}

// --- losing it

TEST_F(LocalGrants, EveryLocalHolderHearsOfTheLossAndTheNextAskAnew) {
    use(read_write());
    claim& a = wants(access::shared, 1);
    const auto hold = arrives(facts(access::shared));
    claim& b = reads();
    machine_->on_lost(hold, now_, out_);
    EXPECT_EQ(count(kind::lost), 2U);
    EXPECT_EQ(machine_->token_of(a, now_, out_), 100U);
    wants(access::shared, 1);
    EXPECT_EQ(last_.why, errc::lost);  // until it was released
    EXPECT_EQ(machine_->release(a, access::shared, now_, out_), errc::lost);
    EXPECT_EQ(machine_->release(b, access::shared, now_, out_), errc::lost);
    out_.clear();
    wants(access::shared, 1);
    EXPECT_EQ(count(kind::ask), 1U);
}

// Its renewals bring none: asking for them again and again would help nobody.
TEST_F(LocalGrants, AHoldWithoutAMarkThatHasNoNumberLeftIsUpgradedAtTheServer) {
    use(read_write());
    claim& mine = wants(access::exclusive, 1);
    hold_facts plain = facts();
    plain.marked = false;
    plain.ceiling = plain.token;
    const auto hold = arrives(plain);
    EXPECT_EQ(machine_->token_of(mine, now_, out_), 100U);
    wants();
    machine_->downgrade(mine, now_, out_);
    EXPECT_EQ(count(kind::downgrade), 1U);
    claim& again = make();
    machine_->upgrade(mine, again, now_, out_);
    EXPECT_EQ(count(kind::upgrade), 1U);
    EXPECT_EQ(count(kind::renew), 0U);
    machine_->upgraded(hold, 300, 300, now_, out_);
    EXPECT_EQ(machine_->token_of(mine, now_, out_), 300U);
}

// They are told a while before its validity ends, to stop their work.
TEST_F(LocalGrants, ALostHoldIsReleasedByItsLastUser) {
    use(read_write());
    claim& a = wants(access::shared, 1);
    const auto hold = arrives(facts(access::shared));
    claim& b = reads();
    machine_->on_lost(hold, now_, out_);
    machine_->release(a, access::shared, now_, out_);
    EXPECT_EQ(count(kind::release), 0U);
    machine_->release(b, access::shared, now_, out_);
    EXPECT_EQ(count(kind::release), 1U);
    EXPECT_TRUE(machine_->is_idle());
}

TEST_F(LocalGrants, ALostHoldThatNobodyUsedIsNotToldToAnybody) {
    const auto hold = kept();
    machine_->on_lost(hold, now_, out_);
    EXPECT_EQ(count(kind::lost), 0U);
    EXPECT_FALSE(machine_->holds_any());
}

TEST_F(LocalGrants, WaitersOfALostHoldTakeAPosition) {
    wants();
    const auto hold = arrives();
    wants();
    EXPECT_EQ(count(kind::ask), 0U);
    machine_->on_lost(hold, now_, out_);
    EXPECT_EQ(count(kind::ask), 1U);
}

TEST_F(LocalGrants, AnOwnerThatIsGoneLeavesAHoldThatIsNotRenewed) {
    wants(access::exclusive, 5);
    arrives();
    claim& b = wants();
    out_.clear();
    EXPECT_NE(machine_->abandon(owner_id{5}, now_, out_), nullptr);
    EXPECT_EQ(count(kind::abandon), 1U);
    EXPECT_EQ(count(kind::release), 0U);
    EXPECT_EQ(count(kind::ask), 1U);
    EXPECT_EQ(b.is, claim::state::waiting);
}

TEST_F(LocalGrants, AReaderThatIsGoneLetsTheOthersFinish) {
    use(read_write());
    wants(access::shared, 5);
    arrives(facts(access::shared));
    claim& b = reads();
    machine_->abandon(owner_id{5}, now_, out_);
    EXPECT_EQ(count(kind::abandon), 0U);
    reads();
    EXPECT_EQ(count(kind::ask), 1U);  // no more local grants
    release(b);
    EXPECT_EQ(count(kind::abandon), 1U);
}

// --- waits that end

TEST_F(LocalGrants, ThePositionStaysWhileAnyWaiterNeedsIt) {
    claim& a = wants();
    claim& b = wants();
    machine_->cancel(a, errc::cancelled, now_, out_);
    EXPECT_EQ(why(took(kind::refused)), errc::cancelled);
    EXPECT_EQ(count(kind::cancel), 0U);
    machine_->cancel(b, errc::cancelled, now_, out_);
    EXPECT_EQ(count(kind::cancel), 1U);
}

TEST_F(LocalGrants, ThePositionWaitsAsLongAsTheLatestWaiter) {
    wants(access::exclusive, 0, {waiting::in_queue, now_ + 1s});
    const auto asked = took(kind::ask);
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(asked.front().limit.deadline, now_ + 1s);
    wants(access::exclusive, 0, {waiting::in_queue, now_ + 3s});
    const auto longer = took(kind::extend);
    ASSERT_EQ(longer.size(), 1U);
    EXPECT_EQ(longer.front().limit.deadline, now_ + 3s);
    now_ += 1s;
    machine_->on_timer(now_, out_);  // the first hears its own
    EXPECT_EQ(why(took(kind::refused)), errc::timed_out);
    EXPECT_EQ(count(kind::cancel), 0U);
}

// The server's refusal was on its way when somebody came who waits for longer.
TEST_F(LocalGrants, ADeadlineIsNotThatOfSomebodyWhoWaitsLonger) {
    wants(access::exclusive, 0, {waiting::in_queue, now_ + 1s});
    const auto asked = took(kind::ask);
    wants(access::exclusive, 0, {waiting::in_queue, now_ + 3s});
    now_ += 1s;
    machine_->on_timer(now_, out_);
    EXPECT_EQ(took(kind::refused).size(), 1U);
    machine_->ask_refused(asked.at(0).number, std::make_shared<const refusal>(refusal{errc::timed_out, "", {}, {}}),
                          now_, out_);
    EXPECT_EQ(count(kind::refused), 0U);
    EXPECT_EQ(count(kind::ask), 1U);
}

TEST_F(LocalGrants, TheServersReasonIsToldAtTheDeadline) {
    wants(access::exclusive, 0, {waiting::in_queue, now_ + 1s});
    const auto asked = took(kind::ask);
    now_ += 1s;
    machine_->on_timer(now_, out_);
    EXPECT_EQ(count(kind::refused), 0U);
    machine_->ask_refused(asked.front().number, std::make_shared<const refusal>(refusal{errc::unreachable, "", {}, {}}),
                          now_, out_);
    EXPECT_EQ(why(took(kind::refused)), errc::unreachable);
}

TEST_F(LocalGrants, ALocalWaiterTimesOut) {
    wants();
    arrives();
    wants(access::exclusive, 0, {waiting::in_queue, now_ + 100ms});
    const auto wakes = took(kind::wake);
    ASSERT_FALSE(wakes.empty());
    EXPECT_EQ(wakes.back().at, now_ + 100ms);
    now_ += 100ms;
    machine_->on_timer(now_, out_);
    EXPECT_EQ(why(took(kind::refused)), errc::timed_out);
}

TEST_F(LocalGrants, AReasonThatIsAsGoodForAllEndsAllWaits) {
    wants();
    wants();
    const auto asked = took(kind::ask);
    machine_->ask_refused(asked.front().number,
                          std::make_shared<const refusal>(refusal{errc::no_permission, "", {}, {}}), now_, out_);
    EXPECT_EQ(count(kind::refused), 2U);
    EXPECT_TRUE(machine_->is_idle());
}

TEST_F(LocalGrants, AGrantThatComesAfterTheCancellationIsKeptOrGivenBack) {
    claim& a = wants();
    const auto asked = took(kind::ask);
    machine_->cancel(a, errc::cancelled, now_, out_);
    hold_facts told = facts();
    told.wanted = true;
    machine_->acquired(asked.front().number, told, now_, out_);
    EXPECT_EQ(count(kind::release), 1U);
}

// --- tries

TEST_F(LocalGrants, ATryIsARequestOfItsOwn) {
    claim& c = tries();
    const auto asked = took(kind::ask);
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(asked.front().limit.wait, waiting::not_at_all);
    machine_->ask_refused(asked.front().number, std::make_shared<const refusal>(refusal{errc::busy, "", {}, {}}), now_,
                          out_);
    EXPECT_EQ(c.is, claim::state::over);
    EXPECT_EQ(why(took(kind::refused)), errc::busy);
}

TEST_F(LocalGrants, ATryOfAReaderBesideAWantedHoldIsLeftToTheServer) {
    use(read_write(preference::readers));
    reads();
    const auto hold = arrives(facts(access::shared));
    wanted(hold);
    now_ += 20ms;
    tries(access::shared);
    EXPECT_EQ(last_.what, verdict::waits);
    EXPECT_EQ(count(kind::ask), 1U);
}

// --- reading and writing

TEST_F(LocalGrants, ReadersShareOneHold) {
    use(read_write());
    reads();
    arrives(facts(access::shared));
    for (int i = 0; i < 10; ++i) reads();
    EXPECT_EQ(last_.what, verdict::granted);
    EXPECT_EQ(count(kind::ask), 0U);
}

TEST_F(LocalGrants, AWriterQueuesByItselfBesideOurReaders) {
    use(read_write());
    claim& reader = reads();
    arrives(facts(access::shared));
    claim& writer = wants();
    const auto asked = took(kind::ask);
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(asked.front().mode, access::exclusive);
    EXPECT_EQ(count(kind::upgrade), 0U);
    reads();  // behind the writer
    EXPECT_EQ(last_.what, verdict::waits);
    release(reader);
    EXPECT_EQ(count(kind::release), 1U);
    machine_->acquired(asked.front().number, facts(), now_, out_);
    EXPECT_EQ(writer.is, claim::state::holding);
    release(writer);
    EXPECT_EQ(count(kind::granted), 3U);  // the last reader too, from the same hold
    EXPECT_EQ(count(kind::ask), 0U);
}

TEST_F(LocalGrants, AnUnusedReadHoldIsGivenBackForAWriter) {
    use(read_write());
    kept(facts(access::shared));
    wants();
    EXPECT_EQ(count(kind::release), 1U);
    EXPECT_EQ(count(kind::ask), 1U);
}

TEST_F(LocalGrants, AWritersHoldServesReadersToo) {
    use(read_write());
    kept();
    claim& a = reads();
    claim& b = reads();
    EXPECT_EQ(b.is, claim::state::holding);
    claim& writer = wants();
    EXPECT_EQ(writer.is, claim::state::waiting);
    release(a);
    release(b);
    EXPECT_EQ(writer.is, claim::state::holding);
    EXPECT_EQ(count(kind::ask), 0U);
}

TEST_F(LocalGrants, PreferenceDecidesAmongLocalWaiters) {
    for (const preference prefer : {preference::arrival, preference::readers, preference::writers}) {
        use(read_write(prefer));
        claim& first = wants();
        arrives();
        claim& reader = reads();
        claim& writer = wants();
        claim& later = reads();
        release(first);
        const bool writer_first = prefer == preference::writers;
        EXPECT_EQ(writer.is == claim::state::holding, writer_first);
        EXPECT_EQ(reader.is == claim::state::holding, !writer_first);
        EXPECT_EQ(later.is == claim::state::holding, prefer == preference::readers);
    }
}

TEST_F(LocalGrants, AWantedHoldThatIsOnlyReadIsMadeLess) {
    use(read_write());
    const auto hold = kept();
    reads();
    wanted(hold);
    EXPECT_EQ(count(kind::downgrade), 1U);
    EXPECT_EQ(count(kind::release), 0U);
    wants();
    EXPECT_EQ(took(kind::ask).size(), 1U);  // no writer enters by it any more
}

TEST_F(LocalGrants, AnUpgradeWaitsForOtherReadersAndStopsNewOnes) {
    use(read_write());
    claim& mine = wants(access::shared, 1);
    const auto hold = arrives(facts(access::shared));
    claim& other = wants(access::shared, 2);
    claim& waiter = make();
    EXPECT_EQ(machine_->upgrade(mine, waiter, now_, out_).what, verdict::waits);
    EXPECT_EQ(count(kind::upgrade), 0U);
    claim& late = reads();
    EXPECT_EQ(late.is, claim::state::waiting);
    wants(access::shared, 2);
    EXPECT_EQ(last_.what, verdict::reentered);
    claim& second = make();
    EXPECT_EQ(machine_->upgrade(other, second, now_, out_).why, errc::would_deadlock);
    release(other);
    release(other);
    EXPECT_EQ(count(kind::upgrade), 1U);
    machine_->upgraded(hold, 300, 300, now_, out_);
    EXPECT_EQ(mine.exclusive, 1U);
    EXPECT_EQ(machine_->token_of(mine, now_, out_), 300U);
    EXPECT_EQ(machine_->release(mine, access::exclusive, now_, out_), std::nullopt);
    EXPECT_EQ(mine.is, claim::state::holding);  // it reads still
}

TEST_F(LocalGrants, AnUpgradeOfAWritersHoldAsksNobody) {
    use(read_write());
    kept();
    claim& mine = reads();
    claim& waiter = make();
    EXPECT_EQ(machine_->upgrade(mine, waiter, now_, out_).what, verdict::waits);
    EXPECT_EQ(count(kind::granted), 1U);
    EXPECT_EQ(mine.exclusive, 1U);
    EXPECT_EQ(count(kind::upgrade), 0U);
}

TEST_F(LocalGrants, AnUpgradeIsRefusedCancelledOrLostWithItsReader) {
    use(read_write());
    claim& mine = reads();
    auto hold = arrives(facts(access::shared));
    claim& first = make();
    machine_->upgrade(mine, first, now_, out_);
    machine_->upgrade_refused(hold, std::make_shared<const refusal>(refusal{errc::would_deadlock, "", {}, {}}), now_,
                              out_);
    EXPECT_EQ(why(took(kind::refused)), errc::would_deadlock);
    claim& second = make();
    machine_->upgrade(mine, second, now_, out_);
    machine_->cancel(second, errc::cancelled, now_, out_);
    EXPECT_EQ(why(took(kind::refused)), errc::cancelled);
    EXPECT_EQ(count(kind::cancel_upgrade), 1U);
    machine_->upgraded(hold, 300, 300, now_, out_);  // it came all the same
    EXPECT_EQ(mine.exclusive, 0U);
    claim& third = make();
    reads();
    machine_->upgrade(mine, third, now_, out_);
    machine_->on_lost(hold, now_, out_);
    EXPECT_EQ(why(took(kind::refused)), errc::lost);
}

// --- the end

TEST_F(LocalGrants, AnUpgradeAfterACancelledOneWaitsForItsEndAndAsksAnew) {
    use(read_write());
    const auto hold = kept(facts(access::shared));
    claim& reader = reads();
    const auto upgrades = [&](claim& reading) -> claim& {
        claim& waiter = make();
        last_ = machine_->upgrade(reading, waiter, now_, out_);
        return waiter;
    };
    claim& first = upgrades(reader);
    EXPECT_EQ(count(kind::upgrade), 1U);
    machine_->cancel(first, errc::cancelled, now_, out_);
    EXPECT_EQ(count(kind::cancel_upgrade), 1U);
    claim& second = upgrades(reader);
    EXPECT_EQ(last_.what, verdict::waits);
    EXPECT_EQ(count(kind::upgrade), 0U) << "the server has not answered the first";
    upgrades(reader);
    EXPECT_EQ(last_.what, verdict::refused);
    EXPECT_EQ(last_.why, errc::too_many);
    machine_->upgrade_refused(hold, std::make_shared<const refusal>(refusal{errc::cancelled, "", {}, {}}), now_, out_);
    EXPECT_EQ(count(kind::upgrade), 1U);
    EXPECT_EQ(second.is, claim::state::upgrading);
    machine_->upgraded(hold, 300, 400, now_, out_);
    EXPECT_EQ(second.is, claim::state::over);
    EXPECT_EQ(reader.exclusive, 1U);
}

// The server granted it before it was cancelled, and by then another thread reads.
TEST_F(LocalGrants, ACancelledUpgradeThatIsGrantedServesTheNextOneWhenTheOtherReadersAreGone) {
    use(read_write());
    const auto hold = kept(facts(access::shared));
    claim& reader = reads();
    claim& first = make();
    machine_->upgrade(reader, first, now_, out_);
    machine_->cancel(first, errc::cancelled, now_, out_);
    claim& another = reads();
    EXPECT_EQ(another.is, claim::state::holding);
    claim& second = make();
    machine_->upgrade(reader, second, now_, out_);
    machine_->upgraded(hold, 300, 400, now_, out_);
    EXPECT_EQ(reader.exclusive, 0U);
    release(another);
    EXPECT_EQ(reader.exclusive, 1U);
    EXPECT_EQ(second.is, claim::state::over);
}

TEST_F(LocalGrants, WithoutALockObjectNothingIsKept) {
    kept();
    machine_->close(now_, out_);
    EXPECT_EQ(count(kind::release), 1U);
    EXPECT_TRUE(machine_->is_idle());
}

TEST_F(LocalGrants, ALeaseOutlivesTheLockObject) {
    claim& c = wants();
    arrives();
    machine_->close(now_, out_);
    EXPECT_EQ(count(kind::release), 0U);
    release(c);
    EXPECT_EQ(count(kind::release), 1U);
}

TEST_F(LocalGrants, GivingBackLeavesWhatIsInUse) {
    claim& c = wants();
    arrives();
    machine_->give_back(now_, out_);
    EXPECT_EQ(count(kind::release), 0U);
    release(c);
    machine_->give_back(now_, out_);
    EXPECT_EQ(count(kind::release), 1U);
}

// --- the fast path

TEST_F(LocalGrants, TheFastPathIsOpenWhileTheHoldIsFreshAndNobodyHasToWait) {
    EXPECT_FALSE(machine_->fast_path(now_));
    const auto hold = kept();
    const auto terms = machine_->fast_path(now_);
    ASSERT_TRUE(terms);
    EXPECT_EQ(terms->hold, hold);
    EXPECT_EQ(terms->until, now_ + 1500ms) << "half of the lease after the proof";
    EXPECT_FALSE(machine_->fast_path(terms->until));
    claim& user = wants();
    EXPECT_FALSE(machine_->fast_path(now_)) << "a mutex in use";
    release(user);
    EXPECT_TRUE(machine_->fast_path(now_));
    machine_->close(now_, out_);
    EXPECT_FALSE(machine_->fast_path(now_));
}

TEST_F(LocalGrants, TheFastPathIsClosedWhereTheLastReleaseGivesTheHoldBack) {
    settings chosen = usual();
    chosen.keep = 0s;
    use(chosen);
    claim& user = wants();
    claim& next = wants();
    arrives();
    release(user);
    EXPECT_EQ(next.is, claim::state::holding);
    EXPECT_FALSE(machine_->fast_path(now_));
}

TEST_F(LocalGrants, AUserWithoutAClaimHoldsOthersUpAndIsWaitedFor) {
    const auto hold = kept();
    machine_->count_in(hold, 1, now_);
    claim& waiter = wants();
    EXPECT_EQ(last_.what, verdict::waits);
    EXPECT_FALSE(machine_->fast_path(now_)) << "somebody waits";
    wanted(hold);
    EXPECT_EQ(count(kind::release), 0U);
    EXPECT_EQ(machine_->release_fast(hold, now_, out_), std::nullopt);
    EXPECT_EQ(waiter.is, claim::state::holding);
    release(waiter);
    EXPECT_EQ(count(kind::release), 1U);
}

TEST_F(LocalGrants, AHoldIsKeptFromItsLastUseWithoutAClaim) {
    const auto hold = kept();
    machine_->count_out(hold);
    now_ += 900ms;
    machine_->count_in(hold, 0, now_);
    now_ += 500ms;
    machine_->on_timer(now_, out_);
    EXPECT_EQ(count(kind::release), 0U);
    now_ += 500ms;
    machine_->on_timer(now_, out_);
    EXPECT_EQ(count(kind::release), 1U);
}

TEST_F(LocalGrants, TheTimerGoesOnWhileUsersWithoutAClaimMayReleaseUnseen) {
    const auto hold = kept();
    now_ += 1s;
    machine_->count_in(hold, 1, {});
    machine_->on_timer(now_, out_);
    EXPECT_EQ(count(kind::release), 0U);
    const auto wakes = took(kind::wake);
    ASSERT_EQ(wakes.size(), 1U);
    EXPECT_EQ(wakes.front().at, now_ + 1s);
}

TEST_F(LocalGrants, AUserWithoutAClaimStaysWithTheHoldThatWasLost) {
    const auto hold = kept();
    machine_->count_in(hold, 1, now_);
    machine_->on_lost(hold, now_, out_);
    EXPECT_EQ(count(kind::release), 0U) << "it may have the rest of the validity for stopping work";
    claim& next = wants();
    arrives();
    EXPECT_EQ(next.is, claim::state::holding);
    EXPECT_EQ(machine_->release_fast(hold, now_, out_), errc::lost);
    EXPECT_EQ(count(kind::release), 1U);
    EXPECT_EQ(next.is, claim::state::holding);
}

TEST_F(LocalGrants, AUserThatGetsAClaimReentersAndReleasesByIt) {
    const auto hold = kept();
    machine_->count_in(hold, 1, now_);
    claim& mine = make(access::exclusive, 7);
    machine_->adopt(hold, mine, 2);
    EXPECT_EQ(machine_->find(owner_id{7}), &mine);
    wants(access::exclusive, 7);
    EXPECT_EQ(last_.what, verdict::reentered);
    for (int i = 0; i < 3; ++i) release(mine);
    EXPECT_EQ(mine.is, claim::state::over);
    EXPECT_TRUE(machine_->fast_path(now_));
}

TEST_F(LocalGrants, ReadersOfTheFastPathShareWithReadersThatHaveClaims) {
    use(read_write());
    const auto hold = kept();
    claim& reader = reads();
    EXPECT_TRUE(machine_->fast_path(now_));
    machine_->count_in(hold, 2, now_);
    claim& writer = wants();
    EXPECT_EQ(last_.what, verdict::waits);
    release(reader);
    machine_->release_fast(hold, now_, out_);
    EXPECT_EQ(writer.is, claim::state::waiting);
    machine_->release_fast(hold, now_, out_);
    EXPECT_EQ(writer.is, claim::state::holding);
    EXPECT_FALSE(machine_->fast_path(now_));
}

}  // namespace
}  // namespace holdfast::engine::local::local_grants_test
