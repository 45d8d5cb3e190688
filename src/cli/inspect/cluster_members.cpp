#include "cli/inspect/cluster_members.hpp"

#include "api/runtime/client_access.hpp"
#include "api/runtime/core.hpp"
#include "cli/inspect/ask.hpp"

#include <future>

namespace holdfast::cli {
namespace {

// What the question says inside of the client's serial section.
template <typename Question>
auto inside(const client& server, const Question& question) {
    api::core& core = *api::core_of(server);
    std::promise<std::invoke_result_t<const Question&, api::backend&>> told;
    core.enter_with([&] { told.set_value(question(core.server(0))); });
    return told.get_future().get();
}

// Whoever answers is known by the map. Who hangs may be in it, too, and be the one who was asked.
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

member_list cluster_members::look(const client& server) {
    if (!is_cluster(server)) return {};
    std::map<std::string, client> present;
    for (const auto& member : settings_of_members(server)) {
        if (auto known = links_.extract(member.display()); !known.empty()) {
            present.insert(std::move(known));
        } else {
            present.emplace(member.display(), api::client_access::make(api::make_core(std::vector{member}, {})));
        }
    }
    links_ = std::move(present);
    member_list all;
    for (const auto& [name, link] : links_) all.push_back(&link);
    return all;
}

}  // namespace holdfast::cli
