// The servers that an operator looks at, one client for each.
//
// A lock on several servers is looked at on each of them: a client of all of them would tell what the majority decides,
// an operator wants to know what each one says. All are asked at the same time. A server that does not answer is told
// of and left out, as long as another one answers. A Cluster is one of them, however many members it has, and answers
// if one of them does.
#pragma once

#include "cli/inspect/cluster_members.hpp"
#include "cli/server/server_choice.hpp"

#include <holdfast/client.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace holdfast::cli {

class server_set {
public:
    explicit server_set(const std::vector<std::string>& urls);
    // Asks over a client that is there already; it must outlive this.
    explicit server_set(const client& only) : links_{&only}, members_(1) {}

    std::size_t size() const noexcept { return links_.size(); }
    std::size_t majority() const noexcept { return size() / 2 + 1; }
    const client& operator[](std::size_t i) const { return *links_[i]; }
    std::vector<std::string> names() const;
    // Of a Cluster its primaries, to be asked one by one; of any other server nobody.
    member_list members(std::size_t i) { return members_[i].look(*links_[i]); }
    // "a, b, c"
    std::string text() const;

    // Asks every server; nothing where one did not answer. Throws holdfast::error if none did.
    template <typename Question>
    auto ask_each(const Question& question) {
        return ask_by_number([&](std::size_t i) { return question(*links_[i]); });
    }
    // The same for who wants to know which one it is, to ask for its members.
    template <typename Question>
    auto ask_by_number(const Question& question) {
        std::vector<std::optional<std::invoke_result_t<const Question&, std::size_t>>> answers(size());
        in_parallel([&](std::size_t i) { answers[i].emplace(question(i)); });
        return answers;
    }

    // Those that the latest question was not answered by.
    const std::vector<silence>& silent() const noexcept { return silent_; }
    // Primaries of those Clusters that did answer, as whoever asked them one by one has noted.
    const std::vector<silence>& silent_members() const noexcept { return silent_members_; }
    void note_silent_members(std::vector<silence> more);
    // Both, the servers first.
    std::vector<silence> all_silent() const;
    // The same to people, on stderr.
    void tell_silent() const noexcept;

private:
    void in_parallel(const std::function<void(std::size_t)>& ask);

    std::vector<std::unique_ptr<client>> own_;
    std::vector<const client*> links_;
    std::vector<cluster_members> members_;  // of each
    std::vector<silence> silent_;
    std::vector<silence> silent_members_;
};

}  // namespace holdfast::cli
