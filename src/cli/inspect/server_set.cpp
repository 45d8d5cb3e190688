#include "cli/inspect/server_set.hpp"

#include "cli/terminal/system.hpp"

#include <holdfast/errors.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <future>
#include <iterator>

namespace holdfast::cli {

server_set::server_set(const std::vector<std::string>& urls) : members_(urls.size()) {
    for (const std::string& url : urls) links_.push_back(own_.emplace_back(std::make_unique<client>(url)).get());
}

std::vector<std::string> server_set::names() const {
    std::vector<std::string> result;
    for (const client* link : links_) result.push_back(link->server());
    return result;
}

std::string server_set::text() const {
    return fmt::format("{}", fmt::join(names(), ", "));
}

void server_set::note_silent_members(std::vector<silence> more) {
    std::ranges::move(more, std::back_inserter(silent_members_));
}

std::vector<silence> server_set::all_silent() const {
    std::vector<silence> all = silent_;
    all.insert(all.end(), silent_members_.begin(), silent_members_.end());
    return all;
}

void server_set::tell_silent() const noexcept {
    for (const auto* some : {&silent_, &silent_members_}) {
        for (const silence& one : *some) tell(one.why);
    }
}

void server_set::in_parallel(const std::function<void(std::size_t)>& ask) {
    silent_.clear();
    silent_members_.clear();
    if (size() == 1) return ask(0);
    std::vector<std::future<void>> asked;
    for (std::size_t i = 0; i < size(); ++i) asked.push_back(std::async(std::launch::async, ask, i));
    std::exception_ptr first;
    for (std::size_t i = 0; i < size(); ++i) {
        try {
            asked[i].get();
        } catch (const error& why) {
            if (!first) first = std::current_exception();
            silent_.push_back({links_[i]->server(), why.what()});
        }
    }
    if (silent_.size() == size()) std::rethrow_exception(first);
}

}  // namespace holdfast::cli
