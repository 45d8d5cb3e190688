#include "redis/resp/info_text.hpp"

namespace holdfast::redis {

std::string find_field(std::string_view text, std::string_view name) {
    std::size_t at = 0;
    while ((at = text.find(name, at)) != std::string_view::npos) {
        const bool at_start = at == 0 || text[at - 1] == '\n' || text[at - 1] == ' ';
        at += name.size();
        if (!at_start) continue;
        return std::string(text.substr(at, text.find_first_of(" \r\n", at) - at));
    }
    return {};
}

replication_facts read_replication(const reply_view& reply) {
    return {find_field(reply.text(), "role:") == "slave", find_field(reply.text(), "master_replid:")};
}

}  // namespace holdfast::redis
