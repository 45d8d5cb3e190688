#include "cli/inspect/rights_probe.hpp"

#include "cli/inspect/ask.hpp"
#include "cli/inspect/lock_state.hpp"
#include "cli/terminal/text.hpp"
#include "wire/scripts.hpp"

#include <algorithm>
#include <iterator>
#include <set>

namespace holdfast::cli {
namespace {

constexpr const char* probe_name = "holdfast-doctor";
constexpr const char* probe_card = "hf:client:holdfast-doctor";

struct trial {
    question what;
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

// A form of the command that the server would take: so many words, the first of them a key of ours.
question plain_form(const std::string& command, std::int64_t arity, const std::string& key) {
    const auto words = static_cast<std::size_t>(arity < 0 ? -arity : arity);
    question form{{command}};
    if (words > 1) form.words.push_back(key);
    while (form.words.size() < words) form.words.emplace_back("1");
    return form;
}

// How waiters are woken; and what else a Cluster has to be asked for.
std::vector<trial> channel_trials(const lock_ref& lock, server_kind kind) {
    if (kind == server_kind::alone) {
        std::string channel = "hf:wake:";
        channel += probe_name;
        return {{{{"SUBSCRIBE", channel}}}, {{{"PUBLISH", channel, "1"}}}, {{{"PUBSUB", "NUMSUB", channel}}, false}};
    }
    const std::string channel = wire::channel_of(lock.keys, probe_name);
    return {{{{"SSUBSCRIBE", channel}}},
            {{{"SUNSUBSCRIBE", channel}}},
            {{{"ECHO", "1"}}},
            {{{"SPUBLISH", channel, "1"}}},
            {{{"PUBSUB", "SHARDNUMSUB", channel}}, false},
            {{{"CLUSTER", "SHARDS"}}},
            {{{"ASKING"}}}};
}

std::vector<trial> trials(const client& server, const survey_terms& terms) {
    const lock_ref lock(wire::lock_name(probe_name), wire::key_naming::tagged, terms.prefix);
    const std::string& key = lock.keys.lock();
    std::vector<trial> result{
        {{{"EVALSHA", std::string(40, '0'), "2", key, lock.keys.queue()}}},
        {{{"EVAL", "return 1", "2", key, lock.keys.queue()}}},
        {{{"INFO", "server"}}, false},
        {{{"CLIENT", "KILL", "ID", "0"}}, false},
        {{{"HSET", probe_card, "host", "1"}}, false},
        {{{"PEXPIRE", probe_card, "1"}}, false},
        {{{"DEL", probe_card}}, false},
    };
    std::ranges::move(channel_trials(lock, terms.kind), std::back_inserter(result));
    const std::set<std::string> special{"PUBLISH", "SPUBLISH", "PUBSUB"};
    question about{{"COMMAND", "INFO"}};
    for (const std::string& command : script_commands()) {
        if (!special.contains(command)) about.words.push_back(command);
    }
    const answer told = ask(server, about);
    for (std::size_t i = 0; i < told.items.size() && i + 2 < about.words.size(); ++i) {
        const answer& entry = told.items[i];
        // A command that the server does not have (renamed, or disabled) is tried bare, and found unknown.
        const std::int64_t arity = entry.items.size() > 1 ? entry.items[1].integer.value_or(1) : 1;
        result.push_back({plain_form(about.words[i + 2], arity, key)});
    }
    return result;
}

std::string label_of(const question& what) {
    const std::string& command = what.words[0];
    if (command == "CLIENT" || command == "PUBSUB" || command == "CLUSTER") return command + " " + what.words[1];
    if (what.words.size() > 1 && what.words[1] == probe_card) return command + " of hf:client:*";
    return command;
}

// Other errors (out of memory, a replica) say nothing about rights.
bool is_refusal(const answer& told) {
    return told.is_error && (told.text.starts_with("NOPERM") || told.text.find("unknown command") != std::string::npos);
}

}  // namespace

rights_probe probe_rights(const client& server, const survey_terms& terms) {
    rights_probe result;
    std::vector<trial> all;
    try {
        all = trials(server, terms);
    } catch (const error& why) {
        result.unprobed = why.what();
        return result;
    }
    std::vector<question> burst{{{"MULTI"}}};
    for (const trial& one : all) burst.push_back(one.what);
    burst.push_back({{"DISCARD"}});
    // It fits into one burst: nothing of others gets between MULTI and DISCARD.
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
