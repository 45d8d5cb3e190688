#include "cli/doctor/doctor.hpp"
#include "cli/terminal/text.hpp"
#include "redis/session/greeting.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

namespace holdfast::cli {

finding fine(const char* check, std::string what) {
    return {check, severity::fine, std::move(what), {}, {}};
}

finding unknown(const char* check, const char* what) {
    return {check, severity::warning, std::string(what) + " could not be read",
            "Nobody knows whether locks are safe in this respect.",
            "allow this user INFO and CONFIG GET, or ask the operator of the server"};
}

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

// Its first two numbers.
std::pair<int, int> parsed_version(const std::string& text) {
    std::pair<int, int> version{0, 0};
    const char* const end = text.data() + text.size();
    const auto major = std::from_chars(text.data(), end, version.first);
    if (major.ptr != end) std::from_chars(major.ptr + 1, end, version.second);
    return version;
}

finding check_version(const server_survey& survey) {
    const server_product& product = survey.product;
    if (product.name.empty()) return unknown("version", "the version");
    const std::string what = product.name + " " + product.version;
    if (product.known == experience::tested) return fine("version", what + ", on which holdfast is tested");
    if (product.known == experience::untested) {
        return {"version", severity::warning, what + ": holdfast was never run on it",
                "Locks may work, but nobody has tried to break them there. " + product.caution,
                "use Redis or Valkey, or try it well: holdfast bench, and holders that are killed"};
    }
    if (parsed_version(product.version) >= std::pair(7, 0)) {
        return fine("version", what + "; holdfast is tested on other versions of it");
    }
    return {"version", severity::warning, what + " is old",
            "Locks work from 6.2 on, but releases before 7.0 get no more fixes, and in their scripts keys may expire "
            "between two steps.",
            "upgrade to Redis 7 or later"};
}

finding check_scripts(const server_survey& survey) {
    if (survey.setting("default_lua_flags").value_or("").find("disable-atomicity") != std::string::npos) {
        return {"scripts", severity::danger, "scripts are not atomic (default_lua_flags disable-atomicity)",
                "Every step of a lock is a script. If others run in between, two clients may hold one lock.",
                "start the server without that flag"};
    }
    if (survey.script_refusal.starts_with("NOSCRIPT")) return fine("scripts", "run");
    if (survey.script_refusal.starts_with("NOPERM")) return unknown("scripts", "whether scripts run");
    return {"scripts", severity::danger, "do not run: " + excerpt(survey.script_refusal),
            "Every step of a lock is a script, so locks do not work here.",
            "allow EVAL and EVALSHA on the server (renamed or disabled commands, a setting of the service), or use "
            "another server"};
}

finding a_replica() {
    return {"role", severity::danger, "a replica",
            "A replica accepts no writes, so no lock can be acquired here; a writable one would lose them.",
            "name the primary in the URL"};
}

finding check_role(const server_survey& survey) {
    const auto role = survey.info("role");
    if (!role) return unknown("role", "the role");
    return *role == "master" ? fine("role", "a primary") : a_replica();
}

finding check_eviction(const server_survey& survey) {
    auto policy = survey.info("maxmemory_policy");
    if (!policy) policy = survey.setting("maxmemory-policy");
    if (!policy) return unknown("eviction", "the eviction policy");
    if (*policy == "noeviction") return fine("eviction", "noeviction");
    const auto limit = survey.info_number("maxmemory");
    const std::string what = "maxmemory-policy is " + *policy;
    const std::string fix = "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf";
    if (limit == 0) {
        return {
            "eviction", severity::warning, what + ", though no maxmemory is set",
            "Nothing is evicted as long as memory has no limit; once it has one, locks are dropped like any other key.",
            fix};
    }
    return {"eviction", severity::danger, what,
            "A full server drops keys to make room. Every key of a lock has an expiry, so volatile-* drops them as "
            "readily as allkeys-*: a lock that is held is gone, and somebody else gets it.",
            fix};
}

finding check_memory(const server_survey& survey) {
    const auto limit = survey.info_number("maxmemory");
    const auto used = survey.info_number("used_memory");
    if (!limit || !used) return unknown("memory", "memory use");
    if (*limit == 0) return fine("memory", "no limit set");
    const auto percent = *used * 100 / *limit;
    std::string what = fmt::format("{} % of maxmemory used", percent);
    if (percent < 90) return fine("memory", std::move(what));
    return {"memory", percent < 100 ? severity::warning : severity::danger, std::move(what),
            "A full server refuses writes, and with them every new lock.",
            "raise maxmemory, or find out what fills it"};
}

std::string megabytes(std::int64_t bytes) {
    return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

// A quarter of the memory there may be, or a gigabyte where there is no limit.
bool is_much(std::int64_t bytes, std::int64_t limit) {
    return limit > 0 ? bytes >= limit / 4 : bytes >= 1'000'000'000;
}

finding check_marks(const server_survey& survey) {
    if (!survey.marks) return unknown("marks", "the number of fencing marks");
    const server_survey::mark_estimate& found = *survey.marks;
    std::string what = fmt::format("about {} fencing marks, {} (estimated from {} of {} keys)", found.marks,
                                   megabytes(found.bytes), found.sampled, found.keys);
    if (!is_much(found.bytes, survey.info_number("maxmemory").value_or(0))) return fine("marks", std::move(what));
    return {"marks", severity::warning, std::move(what),
            "Every name of a lock leaves a mark of about 110 bytes and its key's name, for --fence-retention (an hour) "
            "after its last grant. Names that are used once add up.",
            "use fewer names, lower --fence-retention (at least --max-lease; in programs "
            "client_options::fence_retention), or "
            "raise maxmemory "
            "(docs/deployment.md)"};
}

finding check_persistence(const server_survey& survey) {
    constexpr const char* meaning =
        "After a restart the server has forgotten locks that are still held, and gives them to others. Holders learn "
        "it at their next renewal; fencing tokens still tell them apart.";
    constexpr const char* fix =
        "CONFIG SET appendonly yes (appendfsync always forgets nothing), or let every run say --mistrust-restarts and "
        "every program set client_options::after_restart to mistrusted";
    if (survey.terms.servers > 1) {
        return fine("persistence",
                    "not needed: a server that was restarted grants no locks for " + about(survey.terms.max_lease));
    }
    const auto aof = survey.info_number("aof_enabled");
    if (!aof) return unknown("persistence", "persistence");
    if (*aof == 1) {
        const std::string fsync = survey.setting("appendfsync").value_or("everysec");
        if (fsync != "no") return fine("persistence", "append-only file, fsync " + fsync);
        return {"persistence", severity::warning, "append-only file, but appendfsync is no", meaning,
                "CONFIG SET appendfsync everysec, or always"};
    }
    if (survey.terms.origin == server_origin::local)
        return fine("persistence", "none, on purpose: the local server's locks end with it");
    const auto save = survey.setting("save");
    return {"persistence", severity::warning,
            !save           ? "no append-only file"
            : save->empty() ? "none"
                            : "snapshots only (save " + *save + ")",
            meaning, fix};
}

finding check_saving(const server_survey& survey) {
    const auto snapshot = survey.info("rdb_last_bgsave_status");
    const auto append = survey.info("aof_last_write_status");
    if (!snapshot) return unknown("saving", "the state of the last save");
    if (*snapshot == "ok" && append.value_or("ok") == "ok") return fine("saving", "the last save went well");
    return {"saving", severity::danger, "the last save to disk failed",
            "Redis then refuses writes (MISCONF): no lock can be acquired, renewed or released.",
            "see the server's log; most often the disk is full or the directory not writable"};
}

// In a Cluster the other one of two members has no replica left when it has taken over.
bool has_just_one_successor(const server_survey& survey, std::int64_t replicas) {
    return survey.terms.kind == server_kind::member && replicas == 1;
}

finding too_many_replicas_needed(std::string what) {
    return {"replicas", severity::warning, std::move(what),
            "When the replica has taken over it has none itself, and grants nothing until the other one is back.",
            "CONFIG SET min-replicas-to-write 0, or give every primary two replicas"};
}

finding check_replicas(const server_survey& survey) {
    const auto replicas = survey.info_number("connected_slaves");
    if (!replicas) return unknown("replicas", "the number of replicas");
    if (*replicas == 0) return fine("replicas", "none");
    const auto needed = survey.setting_number("min-replicas-to-write");
    if (!needed) return unknown("replicas", "min-replicas-to-write");
    const auto many = counted(static_cast<std::size_t>(*replicas), "replica");
    const bool is_just_one = has_just_one_successor(survey, *replicas);
    std::string what = fmt::format("{}, min-replicas-to-write {}", many, *needed);
    if (*needed > 0 && is_just_one) return too_many_replicas_needed(std::move(what));
    if (*needed > 0 || is_just_one) return fine("replicas", std::move(what));
    return {"replicas", severity::warning, many + ", but min-replicas-to-write is 0",
            "Replication is not waited for. A primary that is cut off goes on granting locks that its successor knows "
            "nothing of, without any limit in time.",
            "CONFIG SET min-replicas-to-write 1 and min-replicas-max-lag 3 bound that time (docs/deployment.md); "
            "holdfast run --replicas 1 (in programs .replicas = 1) waits for a replica, and several servers, each with "
            "its own --url, avoid it"};
}

finding check_clock(const server_survey& survey) {
    const auto apart = std::chrono::floor<milliseconds>(microseconds(std::abs(survey.skew.count())));
    const auto error = std::chrono::ceil<milliseconds>(survey.skew_error);
    if (apart < 1s) return fine("clock", fmt::format("within {} of this machine's", about(apart + error)));
    return {"clock", severity::warning,
            fmt::format("the server's clock is {} {} this machine's", about(apart),
                        survey.skew > 0us ? "ahead of" : "behind"),
            "Leases are not affected: nobody compares the two clocks. But tokens are made of the server's time; when "
            "such a clock is set right, leases end early or late, and servers of a quorum disagree about tokens.",
            "run chrony or another NTP client on both machines"};
}

std::string rights_fix(const server_survey& survey) {
    return fmt::format("ACL SETUSER {}with the rights of docs/deployment.md, \"The least rights\"",
                       survey.terms.kind == server_kind::member ? "on every member " : "");
}

finding check_rights(const server_survey& survey) {
    if (survey.rights.unprobed) {
        return {"rights", severity::warning, "could not be looked at: " + *survey.rights.unprobed,
                "Whether this user may do all that locks need will show when it does it.",
                "allow this user COMMAND, MULTI and DISCARD"};
    }
    std::vector<std::string> needed;
    std::vector<std::string> useful;
    std::string reason;
    for (const missing_right& right : survey.rights.missing) {
        if (right.is_needed && reason.empty()) reason = right.reason;
        (right.is_needed ? needed : useful).push_back(right.command);
    }
    if (!needed.empty()) {
        return {
            "rights", severity::danger, fmt::format("missing: {} ({})", fmt::join(needed, ", "), reason),
            "Locks do not work for this user, or fail in the middle of a step, which the server does not roll back.",
            rights_fix(survey)};
    }
    if (!useful.empty()) {
        return {"rights", severity::warning, fmt::format("missing: {}", fmt::join(useful, ", ")),
                "Locks work. Without INFO and CLIENT an old link is not dropped on reconnect, without PUBSUB a dead "
                "waiter is found out later, without SUBSCRIBE waiters poll, without hf:client:* tools cannot tell who "
                "holds a lock, without WAIT and hf:ack:* locks with --replicas are refused.",
                rights_fix(survey)};
    }
    return fine("rights", "all that locks need");
}

finding check_wake_ups(const server_survey& survey) {
    const auto is_subscription = [](const missing_right& right) { return right.command.ends_with("SUBSCRIBE"); };
    const bool is_member = survey.terms.kind == server_kind::member;
    if (std::ranges::any_of(survey.rights.missing, is_subscription)) {
        return {"wake-ups", severity::warning, "subscriptions are refused, so waiters poll",
                "A waiter learns of its turn at its next poll: the first one within 250 ms, each one behind it up to "
                "250 ms later. Holders hear no recall, and a kept lock is not kept.",
                "allow SUBSCRIBE (in a Cluster SSUBSCRIBE) and the channels; or add wake=poll to the URL, if that is "
                "what you want"};
    }
    if (!survey.lacks_resp3) return fine("wake-ups", "by messages");
    return {"wake-ups", severity::warning,
            is_member ? "HELLO 3 is refused: RESP2, and waiters poll" : "HELLO 3 is refused: RESP2 on two connections",
            is_member ? "A waiter learns of its turn at its next poll, up to 250 ms for each waiter up to itself later."
                      : "A client that waits needs a second connection, and a hand-over one more round trip.",
            "use a server or proxy that speaks RESP3; or add resp=2 to the URL, which saves the question at each "
            "connect"};
}

// "normal 0 0 0 slave … pubsub 33554432 8388608 60": hard limit, soft limit, seconds.
std::optional<std::pair<std::int64_t, std::int64_t>> pubsub_limits(const std::string& setting) {
    const std::size_t at = setting.find("pubsub ");
    if (at == std::string::npos) return std::nullopt;
    char* rest = nullptr;
    const std::int64_t hard = std::strtoll(setting.c_str() + at + 7, &rest, 10);
    return std::pair(hard, std::strtoll(rest, nullptr, 10));
}

finding check_buffers(const server_survey& survey) {
    constexpr std::int64_t enough = 1 << 20;
    const auto setting = survey.setting("client-output-buffer-limit");
    const auto limits = setting ? pubsub_limits(*setting) : std::nullopt;
    if (!limits) return unknown("buffers", "client-output-buffer-limit");
    const auto low = [](std::int64_t limit) { return limit != 0 && limit < enough; };
    const std::string what = fmt::format("pubsub {} {} bytes", limits->first, limits->second);
    if (!low(limits->first) && !low(limits->second)) return fine("buffers", what);
    return {"buffers", severity::warning, "client-output-buffer-limit is low: " + what,
            "A client that waits for locks listens on the link it asks by. If its answers pile up beyond the limit, "
            "the server cuts the link; it heals, but holds are not renewed meanwhile.",
            "CONFIG SET client-output-buffer-limit \"pubsub 32mb 8mb 60\""};
}

finding check_clients(const server_survey& survey) {
    const auto connected = survey.info_number("connected_clients");
    auto most = survey.info_number("maxclients");
    if (!most) most = survey.setting_number("maxclients");
    if (!connected || !most) return unknown("clients", "maxclients");
    const std::string what = fmt::format("{} of {} connections used", *connected, *most);
    if (*connected * 10 < *most * 9) return fine("clients", what);
    return {"clients", severity::warning, what, "A client whose link breaks may not get back in, and loses its holds.",
            "raise maxclients, and the limit of open files of the server"};
}

finding check_idle(const server_survey& survey) {
    constexpr std::int64_t shortest_s = 10;  // clients ping every five seconds
    const auto timeout = survey.setting_number("timeout");
    if (!timeout) return unknown("idle", "timeout");
    if (*timeout == 0 || *timeout >= shortest_s)
        return fine("idle", *timeout == 0 ? "links stay open" : fmt::format("links close after {} s", *timeout));
    return {
        "idle", severity::warning, fmt::format("idle links are closed after {} s", *timeout),
        "By default a client sends PING every 5 s. A shorter timeout of the server closes idle links again and again.",
        "CONFIG SET timeout 0"};
}

finding check_uptime(const server_survey& survey) {
    const auto uptime = survey.info_number("uptime_in_seconds");
    if (!uptime) return unknown("uptime", "the uptime");
    const std::chrono::seconds told(*uptime);
    if (survey.terms.origin == server_origin::local || redis::least_uptime(told) >= survey.terms.max_lease)
        return fine("uptime", about(told));
    if (survey.terms.servers > 1) {
        return {"uptime", severity::warning, fmt::format("started {} s ago", *uptime),
                "It may have forgotten locks, and grants none until the longest lease is over.", "nothing: it passes"};
    }
    return {"uptime", severity::warning, fmt::format("started {} s ago", *uptime),
            "It may have forgotten locks that are still believed in, until the longest lease is over.",
            "nothing: it passes"};
}

finding check_latency(const server_survey& survey) {
    const auto at = [&survey](std::size_t percent) {
        return survey.round_trips[(survey.round_trips.size() - 1) * percent / 100];
    };
    const auto ms = [](microseconds span) {
        return fmt::format("{:.2f} ms", static_cast<double>(span.count()) / 1000);
    };
    const std::string what =
        fmt::format("round trip {} median, {} at 99 %, {} at most", ms(at(50)), ms(at(99)), ms(at(100)));
    if (at(99) < 50ms) return fine("latency", what);
    return {
        "latency", at(99) < 500ms ? severity::warning : severity::danger, what,
        "A renewal that is late by a lease loses the hold; choose leases of at least a hundred round trips.",
        "look for slow commands (SLOWLOG GET), big keys, fork times of saves (INFO latest_fork_usec), a busy network"};
}

}  // namespace

std::vector<finding> examine(const server_survey& survey) {
    constexpr std::array checks{check_role,        check_eviction, check_rights,  check_wake_ups, check_saving,
                                check_persistence, check_replicas, check_memory,  check_marks,    check_version,
                                check_scripts,     check_clock,    check_buffers, check_clients,  check_idle,
                                check_uptime,      check_latency};
    std::vector<finding> findings;
    for (const auto check : checks) findings.push_back(check(survey));
    return findings;
}

std::optional<finding> examine(const error& why) {
    if (why.condition() == errc::read_only) return a_replica();
    if (why.condition() != errc::too_old && why.condition() != errc::unsupported) return std::nullopt;
    return finding{"version", severity::danger, why.what(), "Locks do not work on this server.",
                   "use Redis 7 or later, or Valkey"};
}

}  // namespace holdfast::cli
