// holdfast release: releases a lock that somebody else holds.
#include "cli/commands/view_options.hpp"
#include "cli/inspect/locks/lock_look.hpp"
#include "cli/inspect/locks/revoke.hpp"
#include "cli/inspect/output/json_form.hpp"
#include "cli/inspect/output/lock_text.hpp"
#include "cli/terminal/system.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <optional>
#include <set>
#include <thread>

namespace holdfast::cli {
namespace {

using namespace std::chrono_literals;
constexpr auto between_looks = 50ms;

struct release_options : view_options {
    std::string holder;
    std::string grace = "10s";
    bool force = false;
    bool yes = false;
};

// In the order of `revocation`.
constexpr std::array outcome_texts{"released", "had ended already",
                                   "cannot be ended: another program's part in a read-write lock ends by itself"};

// What was seen, asked about, and is ended: the same list all the way. Of each server, because tokens and leases are
// its own.
using sightings = std::vector<std::optional<lock_state>>;

sightings seen_locks(server_set& servers, const release_options& options) {
    const lock_ref where = options.lock();
    return servers.ask_each([&](const client& server) {
        lock_state lock = look_at(server, where);
        if (!options.holder.empty()) {
            std::erase_if(lock.holders, [&options](const lock_holder& h) { return h.id != options.holder; });
        }
        return lock;
    });
}

lock_state merged(const sightings& seen) {
    std::vector<lock_state> answers;
    for (const auto& one : seen) {
        if (one) answers.push_back(*one);
    }
    return merge(std::move(answers), seen.size());
}

// A mutex's token is known by its fencing mark only, which may end between two looks.
const lock_holder* find_grant(const lock_state& lock, const lock_holder& meant) {
    const auto same = [&](const lock_holder& one) {
        return one.id == meant.id && (!one.token || !meant.token || one.token == meant.token);
    };
    const auto found = std::ranges::find_if(lock.holders, same);
    return found == lock.holders.end() ? nullptr : &*found;
}

// Asks every holder to stop, and waits until each has released the lock, or the grace is over. Returns the ids of
// those who have. Nobody is waited for who does not listen.
std::set<std::string> recall_holders(server_set& servers, const sightings& seen, milliseconds grace) {
    struct grant {
        std::size_t server;
        const lock_holder* holder;
    };
    if (grace <= 0ms) return {};
    std::set<std::string> asked;
    std::vector<grant> open;
    for (std::size_t i = 0; i < servers.size(); ++i) {
        if (!seen[i]) continue;
        for (const lock_holder& holder : seen[i]->holders) {
            open.push_back({i, &holder});
            if (recall(servers[i], *seen[i], holder)) asked.insert(holder.id);
        }
    }
    std::erase_if(open, [&](const grant& one) { return !asked.contains(one.holder->id); });
    const auto give_up = std::chrono::steady_clock::now() + grace;
    while (!open.empty() && std::chrono::steady_clock::now() < give_up) {
        std::this_thread::sleep_for(between_looks);
        std::erase_if(open, [&](const grant& one) {
            try {
                return find_grant(look_at(servers[one.server], seen[one.server]->where), *one.holder) == nullptr;
            } catch (const error&) {
                return false;  // whoever forces it finds out
            }
        });
    }
    for (const grant& one : open) asked.erase(one.holder->id);
    return asked;
}

// What became of one holder's grants, on all servers.
struct outcome {
    revocation what = revocation::too_late;
    std::size_t ended = 0;   // on so many servers
    std::size_t left = 0;    // on so many it may have it still
    std::string trouble;     // why
    bool gave_back = false;  // the holder released it, when it was asked to

    bool is_over(const server_set& servers) const {
        return (gave_back || what == revocation::done) && left < servers.majority();
    }
};

outcome end_holder(const server_set& servers, const sightings& seen, const std::string& id) {
    outcome result;
    for (std::size_t i = 0; i < servers.size(); ++i) {
        if (!seen[i]) {
            ++result.left;  // it did not answer
            continue;
        }
        const auto holder = std::ranges::find(seen[i]->holders, id, &lock_holder::id);
        if (holder == seen[i]->holders.end()) continue;
        try {
            const revocation here = revoke(servers[i], *seen[i], *holder);
            if (here == revocation::done) ++result.ended;
            if (here == revocation::impossible) ++result.left;
            if (result.what != revocation::done) result.what = here;
        } catch (const error& why) {
            if (servers.size() == 1) throw;
            ++result.left;
            result.trouble = why.what();
        }
    }
    return result;
}

bool is_agreed(const lock_state& lock, const release_options& options) {
    if (options.yes) return true;
    if (::isatty(STDERR_FILENO) == 1) std::cerr << report(lock, palette::of(STDERR_FILENO));
    return user_agrees(
        fmt::format("A holder that does not stop when it is asked to goes on beside the next one. End the hold of {}?",
                    lock.holders.size() == 1 ? "this holder" : "all these holders"));
}

std::string sentence_for(const outcome& one, const server_set& servers) {
    if (one.gave_back && one.ended == 0) return "stopped, and released it";
    std::string text = outcome_texts[static_cast<std::size_t>(one.what)];
    if (servers.size() > 1 && one.ended > 0) text += fmt::format(" on {} of {} servers", one.ended, servers.size());
    if (one.what == revocation::done && !one.is_over(servers)) text += "; a majority may have it still";
    return one.trouble.empty() ? text : text + ": " + one.trouble;
}

void print(const server_set& servers, const lock_state& lock, const std::vector<outcome>& outcomes,
           const release_options& options) {
    json rows = json::array();
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        const lock_holder& holder = lock.holders[i];
        json row = to_json(holder, lock);
        row["released"] = outcomes[i].is_over(servers);
        rows.push_back(std::move(row));
        if (!options.json) std::cout << fmt::format("{}: {}\n", person(holder), sentence_for(outcomes[i], servers));
    }
    if (!options.json) return;
    json out = document(servers, "name", lock.where.name.text());
    out["holders"] = std::move(rows);
    std::cout << indented(out);
}

int release(const release_options& options) {
    if (!options.force) {
        throw trouble("release ends the hold of somebody else; if that is what you want, say --force");
    }
    const milliseconds grace = duration_of(options.grace, "--grace");
    server_set servers = options.open();
    const sightings seen = seen_locks(servers, options);
    const lock_state lock = merged(seen);
    servers.tell_silent();
    if (lock.is_free()) {
        tell(options.holder.empty()
                 ? fmt::format("nobody holds '{}'", excerpt(options.name))
                 : fmt::format("'{}' does not hold '{}'", excerpt(options.holder), excerpt(options.name)));
        return not_acquired;
    }
    if (!is_agreed(lock, options)) {
        tell(fmt::format("not released: '{}' stays with {}; --yes skips the question", excerpt(options.name),
                         person(lock.holders.front())));
        return not_acquired;
    }
    const std::set<std::string> gave_back = recall_holders(servers, seen, grace);
    std::vector<outcome> outcomes;
    for (const lock_holder& holder : lock.holders) {
        // Also of one who gave it back: it may not have reached every server.
        outcomes.push_back(end_holder(servers, seen, holder.id));
        outcomes.back().gave_back = gave_back.contains(holder.id);
    }
    print(servers, lock, outcomes, options);
    const bool all = std::ranges::all_of(outcomes, [&](const outcome& one) { return one.is_over(servers); });
    return all ? all_well : not_acquired;
}

}  // namespace

void add_release(CLI::App& app, int& status) {
    const auto [command, options] =
        add_command<release_options>(app, "release", "release a lock that somebody else holds", status, release);
    declare_lock(*command, *options);
    command->add_flag("--force", options->force, "needed: without it nothing is done");
    command->add_flag("--yes", options->yes, "do not ask");
    command->add_option("--grace", options->grace, "time for the holder to stop; then it is forced (10s)")
        ->type_name("TIME");
    command->add_option("--holder", options->holder, "only this one of several readers")->type_name("ID");
    declare_json(*command, *options);
    declare_server(*command, *options);
    command->footer(
        "Asks the holder to stop and to release the lock: its lost() fires, and `holdfast run` ends its command "
        "first.\n"
        "A grant that is not released within --grace, or whose holder does not listen, is ended at once; the holder "
        "is\n"
        "told, but may go on for a while beside the next one. Only the grants that are shown are ended.\n"
        "Exit status: 0 released; 1 not: nobody holds it, it ended meanwhile, or the answer was no; 125 failed.");
}

}  // namespace holdfast::cli
