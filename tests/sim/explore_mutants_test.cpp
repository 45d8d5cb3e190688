// The exploration must find mutants: those that it finds soon. docs/testing.md names others.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <ostream>
#include <string>
#include <vector>

#include "explore/scopes.hpp"

namespace holdfast::sim::explore::explore_mutants_test {
namespace {

struct sample {
    std::string mutant;
    std::string scope;
    friend std::ostream& operator<<(std::ostream& out, const sample& one) { return out << one.mutant; }
};

class ExploredMutants : public ::testing::TestWithParam<sample> {};

TEST_P(ExploredMutants, AreFound) {
    const std::vector<mutant> all = mutants();
    const auto which =
        std::find_if(all.begin(), all.end(), [](const mutant& m) { return m.name == GetParam().mutant; });
    ASSERT_NE(which, all.end());
    const std::vector<scope> scopes = find_scopes(GetParam().scope);
    ASSERT_EQ(scopes.size(), 1);
    scope broken = scopes[0];
    ASSERT_TRUE(apply(*which, broken));
    const findings found = explore(maker_of(broken));
    std::cout << found.schedules << " schedules, " << found.violating_events << " events: " << found.verdict << "\n";
    EXPECT_NE(found.verdict, "");
}

INSTANTIATE_TEST_SUITE_P(
    All, ExploredMutants,
    ::testing::Values(
        sample{"ReleaseEndsAnyHold", "leaving/quiet"}, sample{"GivingUpKeepsTheQueuePosition", "leaving/quiet"},
        sample{"CancellationsAreIgnored", "leaving/quiet"}, sample{"DeadlinesAreIgnored", "leaving/quiet"},
        sample{"PushesOvertakeAnswers", "leaving/quiet"}, sample{"HandOverWithoutPush", "mutex/quiet"},
        sample{"FastPathHandOverWithoutPush", "mutex/quiet"}, sample{"ReleaseDoesNotHandOver", "mutex/quiet"},
        sample{"RenewalDoesNotExtend", "mutex/quiet"}, sample{"TokensIgnoreTheFence", "mutex/quiet"},
        sample{"TokensOfAFreeLockIgnoreTheFence", "mutex/quiet"}, sample{"ReleaseIgnoresTheQueue", "mutex/quiet"},
        sample{"AnswersAreIgnored", "mutex/quiet"}, sample{"AReleaseIsAnsweredAndDoesNothing", "mutex/quiet"},
        sample{"AReleaseDeniesWhatItDid", "mutex/quiet"}, sample{"AnswersTellAnotherToken", "mutex/quiet"},
        sample{"WaitersAreRefused", "mutex/quiet"}, sample{"HoldIdsRepeat", "mutex/quiet"},
        sample{"NewWaitersQueueFirst", "mutex3/quiet"},
        sample{"TokensOfAFastPathHandOverIgnoreTheFence", "mutex3/quiet"}, sample{"RenewalRevives", "late/client_gone"},
        sample{"TwoUpgradersWait", "rw/quiet"}, sample{"RefusedUpgradeEndsTheReadHold", "rw/quiet"},
        sample{"UpgradeAmongReaders", "rw/quiet"}, sample{"UpgradeKeepsItsToken", "rw/quiet"},
        sample{"DowngradeDoesNotServeTheQueue", "rw/quiet"}, sample{"ReleaseEndsAllReadHolds", "rw/quiet"},
        sample{"RenewalOfAReaderDoesNotExtend", "rw/quiet"}, sample{"KeysEndWithTheFirstLease", "rw/quiet"},
        sample{"ReadersGetNoPush", "rw/quiet"}, sample{"FastPathReadersAreNotCounted", "rw/quiet"},
        sample{"FastPathReleaseIgnoresTheQueue", "rw/quiet"}, sample{"FastPathReleaseEndsAllReadHolds", "rw/quiet"},
        sample{"FastPathReleaseLeavesTheLease", "rw/quiet"}, sample{"TokensOfAFastPathReadIgnoreTheFence", "rw/quiet"},
        sample{"ReadersOvertakeWriters", "rw3/quiet"}, sample{"FastPathReadersOvertakeTheQueue", "rw3/quiet"},
        sample{"WritersShare", "kept/quiet"}, sample{"WantedIsIgnored", "kept/quiet"},
        sample{"NobodyIsAskedBack", "kept/quiet"}, sample{"HandOversDoNotTellWhoWaits", "kept/quiet"},
        sample{"BlocksBeginBeforeTheMark", "kept/quiet"}, sample{"GiveBacksAreLate", "kept/quiet"},
        sample{"HoldsOutliveTheirRelease", "kept/quiet"}, sample{"LastComeFirstServed", "mutex4/quiet"},
        sample{"TicketsFromClientsClocks", "mutex4/quiet"}, sample{"FencesOutliveTheirRetention", "mutex/quiet"},
        sample{"FastPathHandOverToDeadWaiters", "mutex/crash"}, sample{"NewWaitersOvertake", "mutex3/crash"},
        sample{"NewWaitersForAFreeLockOvertake", "mutex3/crash"}, sample{"DelaysAreIgnored", "delay/crash"},
        sample{"ClockStopsInPauses", "delay/pause"}, sample{"TheCallersNoteIsTold", "notes/quiet"},
        sample{"ReleaseLeavesTheNote", "notes/quiet"}, sample{"FastReleaseLeavesTheNote", "notes/quiet"},
        sample{"RenewalLeavesTheNoteBehind", "notes/quiet"}, sample{"WaitersHaveNoNote", "notes/quiet"},
        sample{"ReleaseTakesAllNotes", "notes/quiet"}, sample{"RwReleaseLeavesTheNote", "rw-notes/quiet"},
        sample{"WritersAreNotPreferred", "rw-writers/quiet"}, sample{"ReadersAreNotPreferred", "rw-readers/quiet"},
        sample{"ExpiredReadersStay", "rw/crash"}, sample{"CancelledUpgradeStaysInTheQueue", "rw-cancel/quiet"},
        sample{"OnePermitTooManyIsGranted", "permits/quiet"},
        sample{"WaitersAreAdmittedBeyondTheLimit", "permits/quiet"},
        sample{"ReleaseEndsTheHoldOfAnother", "permits3/quiet"}, sample{"FewOvertakeMany", "permits3/quiet"},
        sample{"WaitersForFewOvertakeAWaiterForMany", "permits3/quiet"},
        sample{"OneReleaseAdmitsOne", "permits3/quiet"}, sample{"ReleaseDoesNotServe", "permits/quiet"},
        sample{"AdmittedWaitersAreNotTold", "permits/quiet"}, sample{"DeadWaitersGetPermits", "permits/crash"},
        sample{"RenewalOfPermitsDoesNotExtend", "permits/quiet"},
        sample{"TheLimitEndsBeforeTheHolders", "permits/quiet"},
        sample{"TokensOfPermitsIgnoreTheFence", "permits/quiet"}, sample{"ANewBlockIsNotRemembered", "kept-more/quiet"},
        sample{"BlocksAreTooLong", "kept-more/quiet"}, sample{"CeilingsCountWhenAsked", "kept-more/quiet"},
        sample{"MessagesTellOfNumbersBeforeTheBlock", "kept/quiet"}, sample{"WantedIsHeardLate", "kept/quiet"},
        sample{"RenewingABlockRevives", "kept/clock_forward"}, sample{"UpgradeOfAnotherGrant", "rw-late/client_gone"},
        sample{"RenewalOfAReaderRevives", "rw/clock_forward"}, sample{"RaisedTokensAreNotStored", "quorum/quiet"},
        sample{"ProposedTokensAreNotChecked", "quorum/quiet"}),
    [](const auto& one) { return one.param.mutant; });

}  // namespace
}  // namespace holdfast::sim::explore::explore_mutants_test
