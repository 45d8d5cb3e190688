#include "cli/doctor/server_survey.hpp"
#include "cli/inspect/locks/lock_state.hpp"
#include "cli/terminal/text.hpp"
#include "redis/resp/error_reply.hpp"
#include "wire/scripts.hpp"

#include <algorithm>
#include <iterator>

namespace holdfast::cli {
namespace {

constexpr const char* probe_name = "holdfast-doctor";

struct trial {
    request what;
    bool is_needed = true;
};

// The commands that the scripts call: redis.call('X' and redis.pcall('X'.
std::set<std::string> script_commands() {
    constexpr std::string_view opening = "call('";
    std::set<std::string> commands;
    for (const wire::script& script : wire::all()) {
        for (std::size_t at = 0; (at = script.text.find(opening, at)) != std::string_view::npos;) {
            at += opening.size();
            commands.emplace(script.text.substr(at, script.text.find('\'', at) - at));
        }
    }
    return commands;
}

// A form of the command that the server accepts: the right number of words, the first of them a key of ours.
request plain_form(const std::string& command, std::int64_t arity, const std::string& key) {
    const auto words = static_cast<std::size_t>(arity < 0 ? -arity : arity);
    request form{{command}};
    if (words > 1) form.words.push_back(key);
    while (form.words.size() < words) form.words.emplace_back("1");
    return form;
}

// What scripts and links send that names a channel.
std::vector<trial> channel_trials(const lock_ref& lock, server_kind kind) {
    if (kind == server_kind::alone) {
        const std::string channel = wire::channel_of(probe_name);
        return {{{{"SUBSCRIBE", channel}}, false},
                {{{"PUBLISH", channel, "1"}}},
                {{{"PUBSUB", "NUMSUB", channel}}, false},
                {{{"PUBLISH", wire::ack_channel_of(probe_name), "1"}}, false}};
    }
    const std::string channel = wire::channel_of(lock.keys, probe_name);
    return {{{{"SSUBSCRIBE", channel}}, false},
            {{{"SUNSUBSCRIBE", channel}}, false},
            {{{"SPUBLISH", channel, "1"}}},
            {{{"PUBSUB", "SHARDNUMSUB", channel}}, false}};
}

// What the library sends outside of scripts. A link exists, so SELECT is allowed, and HELLO or AUTH.
std::vector<trial> library_trials(const lock_ref& lock, server_kind kind) {
    const std::string& key = lock.keys.lock();
    const std::string card = wire::card_key_of(probe_name);
    std::vector<trial> result{
        {{{"EVALSHA", std::string(40, '0'), "2", key, lock.keys.queue()}}},
        {{{"EVAL", "return 1", "2", key, lock.keys.queue()}}},
        {{{"PING"}}},
        {{{"INFO", "server"}}, false},
        {{{"CLIENT", "INFO"}}, false},
        {{{"CLIENT", "KILL", "ID", "0"}}, false},
        {{{"WAIT", "0", "1"}}, false},
        {{{"HSET", card, "host", "1"}}, false},
        {{{"PEXPIRE", card, "1"}}, false},
        {{{"DEL", card}}, false},
    };
    std::ranges::move(channel_trials(lock, kind), std::back_inserter(result));
    if (kind == server_kind::member) {
        result.push_back({{{"CLUSTER", "SHARDS"}}});
        result.push_back({{{"ASKING"}}});
    }
    return result;
}

lock_ref probed_lock(std::string_view prefix) {
    return {wire::lock_name(probe_name), wire::key_naming::tagged, prefix};
}

std::vector<trial> trials(const client& server, const survey_terms& terms) {
    const lock_ref lock = probed_lock(terms.prefix);
    std::vector<trial> result = library_trials(lock, terms.kind);
    const std::set<std::string> with_channels{"PUBLISH", "SPUBLISH", "PUBSUB"};
    request about{{"COMMAND", "INFO"}};
    for (const std::string& command : script_commands()) {
        if (!with_channels.contains(command)) about.words.push_back(command);
    }
    const answer told = ask_all(server, {about}).front();
    if (told.is_error) {
        const failure why = redis::classify_error(told.text, server.server());
        throw error(why.code, why.detail);
    }
    for (std::size_t i = 0; i < told.items.size() && i + 2 < about.words.size(); ++i) {
        const answer& entry = told.items[i];
        // The server does not have a command that was renamed or disabled. It is tried without words, and is unknown.
        const std::int64_t arity = entry.items.size() > 1 ? entry.items[1].integer.value_or(1) : 1;
        result.push_back({plain_form(about.words[i + 2], arity, lock.keys.lock())});
    }
    return result;
}

// The command with its subcommand.
std::string command_of(const request& what) {
    const std::string& command = what.words[0];
    const bool has_subcommand = command == "CLIENT" || command == "PUBSUB" || command == "CLUSTER";
    return has_subcommand ? command + " " + what.words[1] : command;
}

std::string label_of(const request& what) {
    if (what.words.size() < 2) return command_of(what);
    if (what.words[1] == wire::card_key_of(probe_name)) return command_of(what) + " of hf:client:*";
    return what.words[1] == wire::ack_channel_of(probe_name) ? command_of(what) + " to hf:ack:*" : command_of(what);
}

// Other errors (out of memory, a replica) do not concern rights.
bool is_refusal(const answer& told) {
    return told.is_error && (told.text.starts_with("NOPERM") || told.text.find("unknown command") != std::string::npos);
}

}  // namespace

std::set<std::string> probed_commands(server_kind kind) {
    std::set<std::string> names;
    for (const trial& one : library_trials(probed_lock(wire::default_prefix), kind)) names.insert(command_of(one.what));
    return names;
}

rights_probe probe_rights(const client& server, const survey_terms& terms) {
    rights_probe result;
    std::vector<trial> all;
    try {
        all = trials(server, terms);
    } catch (const error& why) {
        result.unprobed = why.what();
        return result;
    }
    std::vector<request> burst{{{"MULTI"}}};
    for (const trial& one : all) burst.push_back(one.what);
    burst.push_back({{"DISCARD"}});
    // One burst: no other command gets between MULTI and DISCARD.
    const std::vector<answer> answers = ask_all(server, burst);
    if (answers.front().is_error) {
        result.unprobed = excerpt(answers.front().text);
        return result;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        const answer& told = answers[i + 1];
        if (!is_refusal(told)) continue;
        result.missing.push_back({label_of(all[i].what), excerpt(told.text), all[i].is_needed});
    }
    return result;
}

}  // namespace holdfast::cli
