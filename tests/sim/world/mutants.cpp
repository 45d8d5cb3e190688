#include "world/mutants.hpp"

#include <stdexcept>
#include <utility>

#include "wire/scripts.hpp"

namespace holdfast::sim {
namespace {

// Replaces all occurrences of `original` in every script that has it. At least one script must have it.
void replace_in_scripts(scenario_options& scenario, const std::string& only, const std::string& original,
                        const std::string& instead) {
    bool found = false;
    for (const auto& script : wire::all()) {
        if (!only.empty() && script.name != only) continue;
        std::string text(script.text);
        if (const auto already = scenario.replaced_scripts.find(text); already != scenario.replaced_scripts.end()) {
            text = already->second;
        }
        auto at = text.find(original);
        if (at == std::string::npos) continue;
        for (; at != std::string::npos; at = text.find(original, at + instead.size())) {
            text.replace(at, original.size(), instead);
        }
        scenario.replaced_scripts[std::string(script.text)] = text;
        found = true;
    }
    if (!found) throw std::logic_error("no script has this text any more: " + original);
}

mutant in_scripts(std::string name, std::string only, std::string original, std::string instead) {
    return {std::move(name),
            [=](scenario_options& scenario) { replace_in_scripts(scenario, only, original, instead); }};
}

mutant starting_at(std::uint64_t first_seed, mutant one) {
    one.first_seed = first_seed;
    return one;
}

// A mutant for one rule: that rule must detect it.
mutant breaking(std::string rule, mutant one) {
    one.verdict = std::move(rule);
    return one;
}

mutant of_foreigners(mutant one) {
    one.is_about_foreigners = true;
    return one;
}

// Changes the hand-over of mutex/release on both the general and the fast path.
mutant in_hand_over(std::string name, std::string general, std::string instead, std::string fast_path,
                    std::string fast_instead) {
    return {std::move(name), [=](scenario_options& scenario) {
                replace_in_scripts(scenario, "", general, instead);
                replace_in_scripts(scenario, "mutex/release", fast_path, fast_instead);
            }};
}

// A mutant that shows only where clients keep locks.
mutant of_keepers(std::string rule, mutant one) {
    return breaking(std::move(rule), {std::move(one.name), [apply = std::move(one.apply)](scenario_options& scenario) {
                                          scenario.kept = scenario_options::keeping::always;
                                          apply(scenario);
                                      }});
}

// Of the machine of local grants, or of what stands between it and the engine.
mutant of_keepers(std::string rule, std::string name, kept_mutant what) {
    return of_keepers(std::move(rule),
                      {std::move(name), [what](scenario_options& scenario) { scenario.broken_keeper = what; }});
}

// A mutant that shows only where clients poll.
mutant of_pollers(mutant one) {
    return {std::move(one.name), [apply = std::move(one.apply)](scenario_options& scenario) {
                scenario.polls = scenario_options::polling::always;
                apply(scenario);
            }};
}

// A mutant that shows only where locks are semaphores.
mutant of_semaphores(std::string rule, mutant one) {
    return breaking(std::move(rule), {std::move(one.name), [apply = std::move(one.apply)](scenario_options& scenario) {
                                          scenario.semaphores = scenario_options::counting::always;
                                          apply(scenario);
                                      }});
}

// A mutant that shows only where locks have notes.
mutant of_notes(std::string rule, mutant one) {
    return breaking(std::move(rule), {std::move(one.name), [apply = std::move(one.apply)](scenario_options& scenario) {
                                          scenario.notes = scenario_options::noting::always;
                                          apply(scenario);
                                      }});
}

// A mutant that shows only where users watch.
mutant of_watchers(std::string rule, mutant one) {
    return breaking(std::move(rule), {std::move(one.name), [apply = std::move(one.apply)](scenario_options& scenario) {
                                          scenario.watchers = scenario_options::watching::always;
                                          apply(scenario);
                                      }});
}

mutant of_watchers(std::string rule, std::string name, watch_mutant what) {
    return of_watchers(std::move(rule),
                       {std::move(name), [what](scenario_options& scenario) { scenario.broken_watcher = what; }});
}

// A mutant that shows only with several servers.
mutant of_several(mutant one) {
    return {std::move(one.name), [apply = std::move(one.apply)](scenario_options& scenario) {
                scenario.servers = 3;
                apply(scenario);
            }};
}

// A mutant that shows only when a replica takes over.
mutant of_replicas(std::string name, bool scenario_options::*what) {
    return {std::move(name), [what](scenario_options& scenario) {
                scenario.replicated = true;
                scenario.*what = true;
            }};
}

// A mutant that shows only when slots move.
mutant of_clusters(mutant one) {
    return {std::move(one.name), [apply = std::move(one.apply)](scenario_options& scenario) {
                scenario.cluster = scenario_options::clusters::always;
                apply(scenario);
            }};
}

mutant of_clusters(std::string name, bool scenario_options::*what) {
    return of_clusters({std::move(name), [what](scenario_options& scenario) { scenario.*what = true; }});
}

// A mutant that shows only when members of a Cluster fail over to replicas that acknowledge.
mutant of_member_replicas(mutant one) {
    return of_clusters({std::move(one.name), [apply = std::move(one.apply)](scenario_options& scenario) {
                            scenario.replicated = true;
                            apply(scenario);
                        }});
}

mutant of_member_replicas(std::string name, bool scenario_options::*what) {
    return of_member_replicas({std::move(name), [what](scenario_options& scenario) { scenario.*what = true; }});
}

// Adds an old grant to every hint to poll.
void forge_old_grants(scenario_options& scenario) {
    replace_in_scripts(scenario, "", "tell(wants.channel, 'poll ' .. first)",
                       "tell(wants.channel, 'poll ' .. first) tell(wants.channel, 'grant ' .. first .. ' 1')");
}

}  // namespace

std::vector<mutant> mutants() {
    return {
        of_pollers(in_scripts("WaitersThatPollLookDead", "", "if channel == by_polls then return true end", "")),
        of_pollers(in_scripts("WaitersThatPollNeverDie", "",
                              "if now_us - wants.seen_us > 2000 * wants.interval_ms then return false end", "")),
        in_scripts("ReleaseEndsAnyHold", "mutex/release", "if holder == id then", "if holder then"),
        in_scripts("PollDoesNotRefresh", "mutex/acquire", "if channel ~= '' then",
                   "if channel ~= '' and not redis.call('ZSCORE', KEYS[2], id) then"),
        in_scripts("LastComeFirstServed", "mutex/acquire", "math.max(now_us, last + 1)", "9e15 - now_us"),
        in_hand_over("HandOverWithoutPush", "tell(wants.channel, verb .. news)", "",
                     "tell(channel, 'grant ' .. first .. ' ' .. mark)", ""),
        in_scripts("FastPathHandOverWithoutPush", "mutex/release", "tell(channel, 'grant ' .. first .. ' ' .. mark)",
                   ""),
        in_scripts("RenewalRevives", "mutex/renew", "if not holder then return {0} end",
                   "if not holder then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return {1} end"),
        in_scripts("RenewalDoesNotExtend", "mutex/renew", "redis.call('PEXPIRE', KEYS[1], ARGV[2])", "local _ = 1"),
        in_scripts("PollOfAHolderDoesNotRefresh", "mutex/acquire", "redis.call('PEXPIRE', KEYS[1], lease)", ""),
        in_scripts("TokensIgnoreTheFence", "", "math.max(mark or 0, floor)", "tonumber(floor)"),
        in_scripts("TokensIgnoreTheClock", "", "now_us > last and now_text or string.format('%.0f', last + 1)",
                   "string.format('%.0f', (mark or now_us - 10000000) + 1)"),
        in_scripts("NewWaitersOvertake", "mutex/acquire", "if not holder and queued == 0 then", "if not holder then"),
        in_hand_over("ReleaseDoesNotHandOver", "elseif not promote_next_waiter(nil, retention) then", "else",
                     "if first and lease and", "if false and"),
        in_scripts("FastPathHandOverToDeadWaiters", "mutex/release",
                   "and now_us - seen <= 2000 * interval and is_listened_to(channel) then", "then"),
        in_scripts("TokensOfAFastPathHandOverIgnoreTheFence", "mutex/release", "local mark = tonumber(token) or 2 ^ 53",
                   "local mark = 0"),
        in_scripts("NewWaitersForAFreeLockOvertake", "mutex/acquire",
                   "if not holder and redis.call('EXISTS', KEYS[2], KEYS[3]) == 0", "if not holder"),
        in_scripts("NewWaitersQueueFirst", "mutex/acquire", "'NX', now_text, id", "'NX', '1', id"),
        in_scripts("NewWaitersWithoutExpiry", "mutex/acquire", "redis.call('PEXPIRE', KEYS[3], keep_queue)", ""),
        in_scripts("TokensOfAFreeLockIgnoreTheFence", "mutex/acquire", "math.max(mark or 0, floor)", "tonumber(floor)"),
        in_scripts("ReleaseIgnoresTheQueue", "mutex/release",
                   "if is_held and redis.call('EXISTS', KEYS[2], KEYS[3]) == 0 then", "if is_held then"),
        starting_at(3300, in_scripts("QueueWithoutExpiry", "mutex/acquire", "redis.call('PEXPIRE', KEYS[2], ms)",
                                     "local _ = 1")),
        in_scripts("GivingUpKeepsTheQueuePosition", "mutex/release", "    leave_queue(id)\nend", "end"),
        in_scripts("DeadWaitersAreServed", "", "answer.err ~= nil or answer[2] > 0", "true"),
        in_hand_over("LeaseIsShorterOnTheServer", "redis.call('SET', KEYS[1], id, 'PX', lease)",
                     "redis.call('SET', KEYS[1], id, 'PX', math.ceil(lease * 0.7))",
                     "redis.call('SET', KEYS[1], first, 'PX', lease)",
                     "redis.call('SET', KEYS[1], first, 'PX', math.ceil(lease * 0.7))"),
        in_scripts("ExpiredReadersStay", "", "'-inf', string.format('%.0f', now_ms)", "'-inf', '-inf'"),
        breaking("outlive the last lease",
                 in_scripts("LeasesKeyOutlivesTheLastLease", "", "redis.call('PEXPIREAT', KEYS[5], last)",
                            "local at = redis.call('TIME') if tonumber(last) > at[1] * 1000 + at[2] / 1000 + "
                            "redis.call('PTTL', KEYS[5]) then redis.call('PEXPIREAT', KEYS[5], last) end")),
        in_scripts("TwoUpgradersWait", "rw/acquire", "if wants == 'u' and blocker == 'u' and blocked_by ~= id then",
                   "if false then"),
        in_scripts("RefusedUpgradeEndsTheReadHold", "rw/acquire", "leave_queue(id)\n    return refused('deadlock')",
                   "leave_queue(id)\n    remove(id)\n    return refused('deadlock')"),
        in_scripts("UpgradeAmongReaders", "rw/acquire", "if not writer and readers == 1 then return granted('b')",
                   "if not writer then return granted('b')"),
        in_scripts("UpgradeKeepsItsToken", "rw/acquire", "take_token(floor, shape ~= 'r' and is_marked(id))",
                   "shape == 'b' and token_of(my_grant) or take_token(floor)"),
        in_scripts("LateUpgradeTakesANewToken", "rw/acquire",
                   "writer == id and tonumber(token_of(my_grant)) <= upgrades", "writer == id"),
        starting_at(4200, in_scripts("UpgradeOfAnotherGrant", "rw/acquire",
                                     "(my_grant and token_of(my_grant) == ARGV[11])", "my_grant")),
        in_scripts("ReadersOvertakeWriters", "rw/acquire", "elseif not writer and queued == 0 and (wants == 'r' or",
                   "elseif not writer and (wants == 'r' or queued == 0 and"),
        in_scripts("ReadersOvertakeTheUpgrader", "", "blocker, blocked_by = wants.kind, who\n            break",
                   "if wants.kind == 'w' then blocker, blocked_by = wants.kind, who break end"),
        in_scripts("WritersAreNotPreferred", "", "if prefer == 'writers' then append(held_back, {who, wants})",
                   "if false then local _ = 1"),
        in_scripts("ReadersAreNotPreferred", "", "elseif wants.kind == 'w' and prefer == 'readers' then",
                   "elseif false then"),
        in_scripts("DeadWritersHoldReadersBack", "", "if not wants or who ~= id and not is_alive(wants) or",
                   "if not wants or"),
        starting_at(300, in_scripts("DowngradeIgnoresItsToken", "rw/release",
                                    "(token == '0' or token_of(mine) == token)", "true")),
        in_scripts("DowngradeDoesNotServeTheQueue", "rw/release", "if not first then serve() end",
                   "if not first and left_over == '' then serve() end"),
        in_scripts("ReleaseEndsAllReadHolds", "rw/release", "    remove(id)\n",
                   "    remove(id)\n    if not writer then readers = 0 end\n"),
        in_scripts(
            "RenewalOfAReaderRevives", "rw/renew", "if my_grant then refresh",
            "if not my_grant and not writer then\n    admit(id, 'r', lease, take_token(0))\n    my_grant = 'r ' .. "
            "mark\n    remember_token(retention)\nelseif my_grant then refresh"),
        in_scripts("RenewalOfAReaderDoesNotExtend", "", "extend(id, lease)", "local _ = 1"),
        in_scripts("KeysEndWithTheFirstLease", "",
                   "local last = leases > 0 and redis.call('ZRANGE', KEYS[5], -1, -1, 'WITHSCORES')[2]",
                   "local last = leases > 0 and redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')[2]"),
        in_scripts("CancelledUpgradeStaysInTheQueue", "rw/cancel", "\nstep_out()\n", "\n"),
        of_foreigners(in_scripts("ForeignHoldersAreTakenForDead", "", "if not is_ours(who) then\n", "if false then\n")),
        of_foreigners(in_scripts("ForeignExpiryIsIgnored", "",
                                 "return math.max(now_ms + hash_left_ms + 1, remembered or 0)", "return now_ms")),
        of_foreigners(in_scripts("ForeignReaderWithOurExpiryIsNotNoticed", "", " and not somebody_entered(others) then",
                                 " then")),
        of_foreigners(breaking("was not told that its hold was missing",
                               in_scripts("MissingHoldsAreRestoredSilently", "",
                                          "change(grant_changes, who, grant .. ' lost')", "local _ = 1"))),
        of_foreigners(
            starting_at(5400, breaking("could have been admitted long ago",
                                       in_scripts("ReleaseIgnoresForeignHolders", "", "somebody_left and (foreign or",
                                                  "somebody_left and (false or")))),
        of_foreigners(breaking("foreign clients never get a turn",
                               in_scripts("ForeignClientsGetNoTurn", "mutex/release", "local gap_us = gap_due(",
                                          "local gap_us = (function() end)("))),
        of_foreigners(breaking("acquired the lock during a gap for foreign clients",
                               in_scripts("WaitersIgnoreTheGap", "mutex/acquire",
                                          "local gap_ms = holder and 0 or gap_left_ms()", "local gap_ms = 0"))),
        of_foreigners(
            in_scripts("WaitersOfAQueueThatExpiredAreForgotten", "", "if entries > with_entry then", "if false then")),
        of_foreigners(
            breaking("was free for too long",
                     in_scripts("QueueIsNotServedAfterAGap", "mutex/release",
                                "remember_gap()\n    tell(wants.channel, 'poll ' .. first)", "remember_gap()"))),
        in_scripts("ReadersGetNoPush", "", "tell(message[1], texts[message[2]])", "local _ = 1"),
        // The fast path of readers, and of writers of a free lock. A thousand scenarios do not show that it checks
        // tokens and foreign holders; tests of the scripts do (tests/script/rw).
        in_scripts("FastPathReadersOvertakeTheQueue", "rw/acquire",
                   "redis.call('EXISTS', KEYS[2], KEYS[3]) == 0 and not", "not"),
        in_scripts("NewWaitersForAFreeReadWriteLockOvertake", "rw/acquire",
                   "KEYS[1], KEYS[2], KEYS[3], KEYS[5], KEYS[6])", "KEYS[1], KEYS[5], KEYS[6])"),
        in_scripts("TokensOfAFastPathReadIgnoreTheFence", "rw/acquire", "math.max(mark or 0, floor)",
                   "math.max(0, floor)"),
        in_scripts("FastPathReadersShortenOtherLeases", "rw/acquire", "math.max(ends, latest[#latest] or 0)", "ends"),
        in_scripts("FastPathReadersAreNotCounted", "rw/acquire", "'rcount', string.format('%.0f', holders + 1)",
                   "'rcount', string.format('%.0f', holders)"),
        in_scripts("FastPathReadersIgnoreExpiredLeases", "", "and tonumber(first) > now_ms and", "and"),
        in_scripts("FastPathReleaseIgnoresTheQueue", "rw/release",
                   "and redis.call('EXISTS', KEYS[2], KEYS[3]) == 0 then", "then"),
        in_scripts("FastPathReleaseEndsAllReadHolds", "rw/release", "if holders == 1 then", "if true then"),
        in_scripts("FastPathReleaseLeavesTheLease", "rw/release", "redis.call('ZREM', KEYS[5], id)",
                   "redis.call('ZREM', KEYS[5], '')"),
        {"PushesAreBelievedWithoutTheFence",
         [](scenario_options& scenario) {
             forge_old_grants(scenario);
             replace_in_scripts(scenario, "mutex/acquire", "ticket, position, mark or '0',", "ticket, position, '0',");
         }},
        in_scripts("LocksTakenTogetherAreTakenFromTheirHolder", "mutex/acquire_all",
                   "redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3]) > 0", "redis.call('EXISTS', KEYS[2], KEYS[3]) > 0"),
        in_scripts("LocksReleasedTogetherAreNotHandedOver", "mutex/release_all",
                   "is_held and redis.pcall('EXISTS', KEYS[2], KEYS[3]) == 0", "is_held"),
        in_scripts("TicketsFromClientsClocks", "mutex/acquire", "math.max(now_us, last + 1)",
                   "now_us + string.byte(id, 6) * 20000"),
        // One mutant for one rule.
        breaking("too many commands",
                 in_hand_over("HandOverByAHintOnly", "tell(wants.channel, verb .. news)",
                              "tell(wants.channel, 'poll ' .. who)", "tell(channel, 'grant ' .. first .. ' ' .. mark)",
                              "tell(channel, 'poll ' .. first)")),
        breaking("waits beyond its deadline",
                 {"DeadlinesAreIgnored", [](scenario_options& scenario) { scenario.deadlines_ignored = true; }}),
        breaking("was not answered in time",
                 {"AnswersAreIgnored", [](scenario_options& scenario) { scenario.answers_ignored = true; }}),
        breaking(
            "still waits for an acquisition that it has cancelled",
            {"CancellationsAreIgnored", [](scenario_options& scenario) { scenario.cancellations_ignored = true; }}),
        breaking("within the delay",
                 {"DelaysAreIgnored", [](scenario_options& scenario) { scenario.delay_ignored = true; }}),
        breaking("before its time", {"FirstFailureToConnectEndsEveryWait",
                                     [](scenario_options& scenario) { scenario.first_failure_ends_waits = true; }}),
        breaking("a key outlives every retention",
                 in_scripts("FencesOutliveTheirRetention", "mutex/release", "ahead_ms + retention) or retention)",
                            "ahead_ms + retention) or retention .. '00')")),
        breaking("a key is left after all clients ended",
                 in_scripts("QueuesAreKeptForHours", "mutex/acquire", "redis.call('PEXPIRE', KEYS[2], keep_queue)",
                            "redis.call('PEXPIRE', KEYS[2], keep_queue .. '00')")),
        breaking("a grant that no server made",
                 in_scripts("AnswersTellAnotherToken", "mutex/acquire", "return {1, mark,", "return {1, mark + 1,")),
        breaking("without a reason", in_scripts("WaitersAreRefused", "mutex/acquire",
                                                "if channel == '' then return {0, left, holder or ''} end",
                                                "if true then return {0, left, holder or ''} end")),
        // Several servers.
        of_several(in_scripts("RaisedTokensAreNotStored", "mutex/raise", "remember_token(retention)", "")),
        of_several(in_scripts("SplitVotesAreNotResolved", "mutex/acquire",
                              "if holder == id and mark and mark == ARGV[10] then", "if false then")),
        of_several(in_scripts("ProposedTokensAreNotChecked", "", "proposal and proposal > last and", "proposal and")),
        breaking("was overtaken", of_several({"TokensAreUsedAsClocks",
                                              [](scenario_options& scenario) {
                                                  replace_in_scripts(scenario, "", "return proposal and now_text end",
                                                                     "return proposal and mark end");
                                                  replace_in_scripts(scenario, "", "proposal and now_text or nil",
                                                                     "proposal and mark or nil");
                                              }})),
        of_several(
            {"RestartedServersVoteAtOnce", [](scenario_options& scenario) { scenario.forgetful_servers_vote = true; }}),
        breaking("two conflicting holders",
                 {"UptimesAreTakenAsExact", [](scenario_options& scenario) { scenario.uptimes_look_exact = true; }}),
        of_replicas("NobodyAcknowledges", &scenario_options::nobody_acknowledges),
        of_replicas("WaitWithoutAWriteBeforeIt", &scenario_options::acks_write_nothing),
        of_replicas("ConfirmationByAnotherRun", &scenario_options::runs_look_alike),
        // A Cluster whose slots move.
        starting_at(5200, of_clusters("AskIsRememberedForItsSlot", &scenario_options::asks_remembered)),
        of_clusters("ClientsAreNotToldThatASlotHasLeft", &scenario_options::slots_leave_silently),
        of_clusters("StoppedScriptsCountAsRefused", &scenario_options::half_runs_look_refused),
        of_clusters(in_scripts("LeasesKeyIsEmptiedBeforeItIsFilled", "", "redis.call('ZREM', KEYS[5], '')\n    end",
                               "redis.call('ZREM', KEYS[5], id)\n    end")),
        of_clusters(in_scripts("DeadlinesFollowTheOldMembersClock", "",
                               "return at_least > 1 and at_least + later_ms() - now_ms or 0", "return 0")),
        of_clusters(in_scripts("FastPathReadersFollowTheOldMembersClock", "",
                               "and (measured_after_ms == 0 or measured_after_ms == -1)", "")),
        of_clusters(in_scripts("RenewalAloneDoesNotExtend", "rw/renew_alone",
                               "redis.call('ZADD', KEYS[2], 'GT', string.format('%.0f', now_ms + lease), id)", "")),
        // Members of a Cluster that fail over to replicas.
        of_member_replicas("NobodyAcknowledgesInACluster", &scenario_options::nobody_acknowledges),
        of_member_replicas("ConfirmAnswersAreIgnored", &scenario_options::confirm_answers_ignored),
        starting_at(140,
                    of_member_replicas("LeaseLeftInConfirmAnswersIsIgnored", &scenario_options::lease_left_ignored)),
        of_member_replicas("MovedKeysAreNeverConfirmed", &scenario_options::moved_keys_unconfirmed),
        of_member_replicas(in_scripts("ConfirmationOfAnEndedHold", "mutex/confirm",
                                      "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end",
                                      "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 3600000 end")),
        of_member_replicas(
            in_scripts("ConfirmationWithoutAWrite", "mutex/confirm", "redis.call('PEXPIRE', KEYS[1], left)", "")),
        of_member_replicas(in_scripts("ConfirmationOfAReaderWithoutAWrite", "rw/confirm",
                                      "redis.call('HSET', KEYS[3], id, grant)", "")),
        starting_at(320, of_member_replicas(in_scripts("ConfirmationOfAnotherGrant", "rw/confirm",
                                                       "(token ~= '0' and token ~= token_of(grant))", "false"))),
        // What callers are told.
        breaking("told that it is released, and no script did that",
                 in_scripts("AReleaseIsAnsweredAndDoesNothing", "mutex/release",
                            "    redis.call('DEL', KEYS[1])\n    return {1, 0}", "    return {1, 0}")),
        breaking(
            "told that it was not held, and a script has released it",
            in_scripts("AReleaseDeniesWhatItDid", "mutex/release", "    redis.call('DEL', KEYS[1])\n    return {1, 0}",
                       "    redis.call('DEL', KEYS[1])\n    return {0}")),
        breaking("told that it is renewed, and no script did that",
                 in_scripts("ARenewalOfNothingIsAnswered", "mutex/renew", "if not holder then return {0} end",
                            "if not holder then return {1} end")),
        // Kept locks: the scripts.
        of_keepers(
            "is passed on for too long",
            in_scripts("NobodyIsAskedBack", "",
                       "for _, its_channel in ipairs(channels) do tell(its_channel, texts[its_channel]) end", "")),
        of_keepers("it was not given back",
                   in_scripts("HandOversDoNotTellWhoWaits", "", "(exclusive and mark or token) .. ' ' .. queued",
                              "(exclusive and mark or token) .. ' 0'")),
        of_keepers("does not cover the number",
                   in_scripts("ANewBlockIsNotRemembered", "mutex/renew_block", "redis.call('SET', KEYS[3], mark,",
                              "redis.call('SET', KEYS[3], last > 0 and string.format('%.0f', last) or mark,")),
        starting_at(
            51,
            of_keepers("does not cover the number",
                       in_scripts("BlocksAreTooLong", "", "return {1, token, clock or '', cut or '', ceiling, queued}",
                                  "return {1, token, clock or '', cut or '', string.format('%.0f', ceiling + 1000000), "
                                  "queued}"))),
        of_keepers("", in_scripts("BlocksBeginBeforeTheMark", "", "math.max(last + 1, mark and now_us - 100 or now_us)",
                                  "now_us - 100000")),
        of_keepers("", in_scripts("RenewingABlockRevives", "mutex/renew_block", "if not holder then return {0} end",
                                  "if not holder then redis.call('SET', KEYS[1], id, 'PX', lease) holder = id end")),
        starting_at(7, of_keepers("a holder without trouble lost",
                                  in_scripts("RenewingABlockDoesNotExtend", "mutex/renew_block",
                                             "math.max(left, lease)", "left"))),
        of_keepers("believes in a grant that no server made",
                   in_scripts("MessagesTellOfNumbersBeforeTheBlock", "", "' ' .. who .. ' ' .. token",
                              "' ' .. who .. ' ' .. string.format('%.0f', token - 1)")),
        of_several(of_keepers(
            "", in_scripts("RaisesAreForgotten", "rw/raise", "change(grant_changes, id, my_grant)", "local _ = 1"))),
        // Kept locks: the client.
        of_keepers("after its time to pass on", "WantedIsIgnored", kept_mutant::wanted_is_ignored),
        of_keepers("", "WantedIsHeardLate", kept_mutant::wanted_is_heard_late),
        of_keepers("while others wait for", "WantedIsIgnoredInUse", kept_mutant::wanted_is_ignored_in_use),
        starting_at(20'118'194,
                    of_keepers("it was not given back",
                               in_scripts("CancelledUpgradesDoNotTellWhoWaits", "rw/cancel",
                                          "'', token_of(my_grant), queued}", "'', token_of(my_grant), 0}"))),
        of_keepers("it was not given back", "GiveBacksAreLate", kept_mutant::give_backs_are_late),
        of_keepers("still not served", "HoldsOutliveTheirRelease", kept_mutant::holds_outlive_their_release),
        of_keepers("beyond its passes", "PassesHaveNoBound", kept_mutant::passes_have_no_bound),
        of_keepers("still not served", "LossesAreIgnored", kept_mutant::losses_are_ignored),
        of_keepers("without a proof", "OldProofsCount", kept_mutant::old_proofs_count),
        of_keepers("does not cover the number", "CeilingsCountWhenAsked", kept_mutant::ceilings_count_when_asked),
        of_keepers("does not cover the number", "CeilingsAreIgnored", kept_mutant::ceilings_are_ignored),
        of_keepers("two conflicting holders", "WritersShare", kept_mutant::writers_share),
        of_keepers("", "FastUsersAreNotCounted", kept_mutant::fast_users_are_not_counted),
        of_keepers("", "ValidityLastsLonger", kept_mutant::validity_lasts_longer),
        of_keepers("", "UnmarkedHoldsAreKept", kept_mutant::unmarked_holds_are_kept),
        // Semaphores.
        starting_at(20'135'896, of_semaphores("could have been admitted long ago",
                                              in_scripts("OlderLeasesAreForgottenWhenSomeAreAdmitted", "",
                                                         "shortest = math.min(shortest, math.max(first - now_ms, 0))",
                                                         "local _ = first"))),
        of_semaphores("out than its limit",
                      in_scripts("OnePermitTooManyIsGranted", "semaphore/acquire",
                                 "if queued == 0 and out + permits <= limit", "if queued == 0 and out < limit")),
        of_semaphores("out than its limit",
                      in_scripts("WaitersAreAdmittedBeyondTheLimit", "", "elseif out + permits <= limit then",
                                 "elseif out < limit then")),
        of_semaphores("disagree", in_scripts("PermitsOfTheDeadAreLost", "", "if permits then out = out - permits else",
                                             "if permits then out = out - permits + 1 else")),
        of_semaphores("disagree",
                      in_scripts("ReleaseReturnsOnePermit", "", "out - permits_of(my_grant) or 0", "out - 1 or 0")),
        of_semaphores(
            "was changed by",
            in_scripts("ReleaseEndsTheHoldOfAnother", "semaphore/release", "if is_named then give_back() end",
                       "if is_named then give_back() end\nlocal other = newest[1] or id\n"
                       "if other ~= id and not gone[other] then\n"
                       "    out = out - permits_of(redis.call('HGET', KEYS[6], other))\n    remove(other)\nend")),
        of_semaphores("was overtaken", in_scripts("FewOvertakeMany", "semaphore/acquire",
                                                  "if queued == 0 and out + permits", "if out + permits")),
        of_semaphores("was overtaken", in_scripts("WaitersForFewOvertakeAWaiterForMany", "",
                                                  "            else\n                break\n            end",
                                                  "            else\n                local _ = 1\n            end")),
        of_semaphores("could be admitted and was not",
                      in_scripts("OneReleaseAdmitsOne", "", "news(wants, ' ' .. who .. ' ' .. token, 'grant') end",
                                 "news(wants, ' ' .. who .. ' ' .. token, 'grant') end\n break")),
        of_semaphores("could be admitted", in_scripts("ReleaseDoesNotServe", "semaphore/release",
                                                      "step_out(id) end\nserve()\n", "step_out(id) end\n")),
        of_semaphores("did not acquire them",
                      in_scripts("AdmittedWaitersAreNotTold", "semaphore/release",
                                 "for _, name in ipairs(channels) do tell(name, texts[name]) end", "")),
        of_semaphores("without subscription",
                      in_scripts("DeadWaitersGetPermits", "",
                                 "if not wants or who ~= caller and not is_alive(wants) or", "if not wants or")),
        of_semaphores("", in_scripts("RenewalRevivesPermits", "semaphore/renew",
                                     "if ends + off <= now_ms then return {0} end", "")),
        of_semaphores("lease is not full",
                      in_scripts("RenewalOfPermitsDoesNotExtend", "semaphore/renew",
                                 "redis.call('ZADD', KEYS[2], 'GT', string.format('%.0f', now_ms + lease), id)", "")),
        of_semaphores("expires before a lease ends",
                      in_scripts("TheLimitEndsBeforeTheHolders", "",
                                 "math.max(last - now_ms, waiters_ms, version and retention or 0)",
                                 "math.max(waiters_ms, version and retention or 1)")),
        of_semaphores("did not grow", in_scripts("TokensOfPermitsIgnoreTheFence", "semaphore/acquire",
                                                 "math.max(mark or 0, floor)", "tonumber(floor)")),
        of_semaphores("a late copy", in_scripts("LateCopiesOfAResizeCount", "semaphore/resize",
                                                "if not is_done and (version or '') ~= ARGV[5] then", "if false then")),
        of_semaphores("too many commands",
                      in_scripts("HandOverOfPermitsByAHint", "", "news(wants, ' ' .. who .. ' ' .. token, 'grant')",
                                 "tell(wants.channel, 'poll ' .. who)")),
        of_notes("is not that of",
                 in_scripts("TheCallersNoteIsTold", "mutex/acquire", "note_of(holder)", "note or note_of(holder)")),
        of_notes("is not that of",
                 in_scripts("AnyNoteIsTold", "rw/acquire", "local text = notes and who and notes.read(who)",
                            "local text = notes and notes.all()[2]")),
        of_notes("outlived its grant", in_scripts("ReleaseLeavesTheNote", "mutex/release",
                                                  "redis.pcall('HDEL', KEYS[6], id)", "local _ = 1")),
        of_notes("outlived its grant", in_scripts("FastReleaseLeavesTheNote", "mutex/release",
                                                  "if KEYS[6] then redis.call('DEL', KEYS[6]) end", "")),
        of_notes("outlived its grant",
                 in_scripts("RwReleaseLeavesTheNote", "rw/release", "redis.pcall('HDEL', KEYS[8], id)", "local _ = 1")),
        of_notes("ends before its lease", in_scripts("RenewalLeavesTheNoteBehind", "mutex/renew",
                                                     "redis.call('PEXPIRE', KEYS[2], ARGV[2])", "local _ = 1")),
        of_notes("is not there", in_scripts("WaitersHaveNoNote", "mutex/acquire",
                                            "if note then keep_note(note, lease_ms + keep_queue) end", "")),
        of_notes("took the note of", in_scripts("ReleaseTakesAllNotes", "", "redis.pcall('HDEL', KEYS[6], id)",
                                                "redis.call('DEL', KEYS[6])")),
        of_notes("took the note of",
                 in_scripts("TheSweepTakesWaitersNotes", "mutex/acquire",
                            "if 4 * (notes.count() - 1) <= 5 * (entries + notes.holders()) then return end",
                            "if notes.count() <= 2 then return end\n    entries = 0")),
        // Watchers.
        of_watchers("was not told in time",
                    in_scripts("WatchersAreNotToldOfGrants", "", "if watch then tell_watchers() end\n    return token",
                               "return token")),
        of_watchers("was not told in time",
                    in_scripts("WatchersAreNotToldOfReleases", "mutex/release",
                               "if watch then tell_watchers() end\n    end\n    return {1, queued}",
                               "end\n    return {1, queued}")),
        of_watchers("was not told in time", in_scripts("TheFastPathHandsOverUnseen", "mutex/release",
                                                       "first and lease and not found[3]", "first and lease")),
        starting_at(670, of_watchers("was not told in time",
                                     in_scripts("WatchersAreHiddenByOtherProgramsWaiters", "",
                                                "local watch = entries > 0 and redis.call",
                                                "local watch = entries > 0 and entries ~= queued and redis.call"))),
        of_watchers("was not told in time", in_scripts("WatchersDoNotKnowWhenTheLeaseEnds", "mutex/watch",
                                                       "redis.call('PTTL', KEYS[1]), mark or", "-1, mark or")),
        of_watchers("a wrong position", {"WatchersCountAsWaiters",
                                         [](scenario_options& scenario) {
                                             replace_in_scripts(scenario, "mutex/acquire",
                                                                "math.max(entries - 1, 0), entries, ", "-1, -1, ");
                                             replace_in_scripts(scenario, "mutex/acquire",
                                                                "if #last == (entries > 0 and 2 or 0)",
                                                                "if (last[2] ~= nil) == (entries > 0)");
                                         }}),
        of_watchers(
            "is not to be told of changes for as long",
            in_scripts("WatchersAreNotRenewed", "mutex/watch", "local is_there = 2 * (until_us - now_us) > ms * 1000",
                       "local is_there = until_us > now_us")),
        of_watchers("end before their time", in_scripts("WatchersEndWithTheQueue", "mutex/watch",
                                                        "if is_told and not untold and 1000 *", "if false and 1000 *")),
        of_watchers("does not any more", in_scripts("AWatcherReplacesTheOthers", "mutex/watch",
                                                    "if who ~= id and ends_us > now_us then", "if false then")),
        of_watchers("does not want it",
                    in_scripts("WatchersDoNotLeave", "mutex/watch", "(is_told or string.find(there,",
                               "is_told and (true or string.find(there,")),
        of_watchers("is not so", of_notes("", in_scripts("WatchersAreToldAnyNote", "mutex/watch",
                                                         "redis.pcall('HGET', KEYS[5], holder)",
                                                         "redis.pcall('HVALS', KEYS[5])[1]"))),
        of_watchers("was told", "WatchersAreToldByThreads", watch_mutant::tells_late),
        of_watchers("was not told in time", "WatchersSubscribeAfterTheyHaveAsked", watch_mutant::subscribes_late),
        of_watchers("was not told in time", "WatchersAreDeaf", watch_mutant::is_deaf),
        of_watchers("an older grant after a newer one", {"WatchersForget",
                                                         [](scenario_options& scenario) {
                                                             scenario.replicated = true;
                                                             scenario.broken_watcher = watch_mutant::forgets;
                                                         }}),
        of_clusters(
            of_semaphores("", in_scripts("DeadlinesOfPermitsFollowTheOldMembersClock", "",
                                         "return at_least > 1 and at_least + later_ms() - now_ms or 0", "return 0"))),
        {"PushesOvertakeAnswers", [](scenario_options& scenario) { scenario.pushes_overtake = true; }},
        {"HoldIdsRepeat", [](scenario_options& scenario) { scenario.ids_repeat = true; }},
        {"ClockStopsInPauses", [](scenario_options& scenario) { scenario.clock_stops_in_pauses = true; }},
    };
}

}  // namespace holdfast::sim
