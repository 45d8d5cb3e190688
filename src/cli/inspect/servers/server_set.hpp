// The servers that an operator looks at, one client for each.
//
// A lock on several servers is looked at on each of them: a client of all of them would tell what the majority decides,
// an operator wants to know what each one says. All are asked at the same time. A server that does not answer is
// reported and left out, as long as another one answers.
//
// A Cluster is one of them, however many members it has, and answers if one member does. A client of a Cluster sends a
// command to the owner of its key, and a command without a key to any member. A tool that wants the answer of each
// primary (which keys it has, how it is set up) asks them one by one, over links that follow no redirection.
#pragma once

#include "cli/server/server_choice.hpp"

#include <holdfast/client.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace holdfast::cli {

// A server, or a member of a Cluster, that could not be asked.
struct silence {
    std::string server;
    std::string why;
};

bool is_cluster(const client& server);

using member_list = std::vector<const client*>;

class server_set {
public:
    explicit server_set(const std::vector<std::string>& urls);
    // Asks over a client that exists already; it must outlive this.
    explicit server_set(const client& only) : links_{&only}, members_(1) {}

    std::size_t size() const noexcept { return links_.size(); }
    std::size_t majority() const noexcept { return size() / 2 + 1; }
    const client& operator[](std::size_t i) const { return *links_[i]; }
    std::vector<std::string> names() const;
    // "a, b, c"
    std::string text() const;
    // The present primaries of a Cluster; empty for any other server. The links are good until the next call. Throws
    // holdfast::error if no member has named them.
    member_list members(std::size_t i);

    // Asks every server; nothing where one did not answer. Throws holdfast::error if none did.
    template <typename Question>
    auto ask_each(const Question& question) {
        return ask_by_number([&](std::size_t i) { return question(*links_[i]); });
    }
    // The same for a question that needs the number of the server, to ask for its members.
    template <typename Question>
    auto ask_by_number(const Question& question) {
        std::vector<std::optional<std::invoke_result_t<const Question&, std::size_t>>> answers(size());
        in_parallel([&](std::size_t i) { answers[i].emplace(question(i)); });
        return answers;
    }

    // Servers that did not answer the latest question.
    const std::vector<silence>& silent() const noexcept { return silent_; }
    // Primaries that did not answer, of Clusters that did, as reported by note_silent_members().
    const std::vector<silence>& silent_members() const noexcept { return silent_members_; }
    void note_silent_members(std::vector<silence> more);
    // Both, the servers first.
    std::vector<silence> all_silent() const;
    // The same on stderr.
    void tell_silent() const;

private:
    void in_parallel(const std::function<void(std::size_t)>& ask);

    std::vector<std::unique_ptr<client>> own_;
    std::vector<const client*> links_;
    std::vector<std::map<std::string, client>> members_;  // of each server, by name
    std::vector<silence> silent_;
    std::vector<silence> silent_members_;
};

}  // namespace holdfast::cli
