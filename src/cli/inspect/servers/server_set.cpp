#include "cli/inspect/servers/server_set.hpp"

#include "api/runtime/client_access.hpp"
#include "api/runtime/core.hpp"
#include "cli/inspect/servers/ask.hpp"
#include "cli/terminal/system.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <future>
#include <iterator>

namespace holdfast::cli {
namespace {

// Runs the question in the client's serial section.
template <typename Question>
auto inside(const client& server, const Question& question) {
    api::core& core = *api::core_of(server);
    std::promise<std::invoke_result_t<const Question&, api::backend&>> told;
    core.enter_with([&] { told.set_value(question(core.server(0))); });
    return told.get_future().get();
}

// The ping makes the client learn the map. If the member that it asks hangs, an earlier map may still be known.
std::vector<redis::server_settings> settings_of_members(const client& server) {
    const auto known = [&server] { return inside(server, [](api::backend& one) { return one.members(); }); };
    try {
        ask(server, {"PING"});
    } catch (const error&) {
        if (auto members = known(); !members.empty()) return members;
        throw;
    }
    return known();
}

}  // namespace

bool is_cluster(const client& server) {
    return inside(server, [](api::backend& one) { return one.link().listens == engine::channels::one_per_tag; });
}

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

member_list server_set::members(std::size_t i) {
    if (!is_cluster(*links_[i])) return {};
    std::map<std::string, client> present;
    for (const auto& member : settings_of_members(*links_[i])) {
        if (auto known = members_[i].extract(member.display()); !known.empty()) {
            present.insert(std::move(known));
        } else {
            present.emplace(member.display(), api::client_access::make(api::make_core(std::vector{member}, {})));
        }
    }
    members_[i] = std::move(present);
    member_list all;
    for (const auto& [name, link] : members_[i]) all.push_back(&link);
    return all;
}

void server_set::note_silent_members(std::vector<silence> more) {
    std::ranges::move(more, std::back_inserter(silent_members_));
}

std::vector<silence> server_set::all_silent() const {
    std::vector<silence> all = silent_;
    all.insert(all.end(), silent_members_.begin(), silent_members_.end());
    return all;
}

void server_set::tell_silent() const {
    for (const silence& one : all_silent()) tell(one.why);
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
