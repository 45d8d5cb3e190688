#include "cli/inspect/person.hpp"

#include "cli/terminal/text.hpp"

#include <fmt/format.h>

namespace holdfast::cli {
namespace {

std::string person(const std::string& id, const std::optional<client_facts>& client) {
    if (!client) return excerpt(id);
    return excerpt(fmt::format("{}@{} {}[{}]", client->user, client->host, client->program, client->pid));
}

}  // namespace

std::string person(const lock_holder& holder) {
    return person(holder.id, holder.client) + (holder.is_foreign ? " (another program)" : "");
}

std::string person(const lock_waiter& waiter) {
    return person(waiter.id, waiter.client);
}

std::string backing_text(const lock_state& lock, const lock_holder& holder) {
    return fmt::format("{} of {}", holder.backing, lock.servers);
}

}  // namespace holdfast::cli
