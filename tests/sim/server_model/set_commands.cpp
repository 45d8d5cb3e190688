// Commands on sets. Members are sorted; a real server's order is arbitrary.

#include "server_model/command.hpp"

namespace holdfast::sim {
namespace {

value sadd(context& ctx, arguments args) {
    const auto [members, wrong_type] = ctx.find_or_create<member_set>(args[1]);
    if (wrong_type) return wrong_type_error();
    std::size_t added = 0;
    for (const auto member : args.subspan(2)) added += members->emplace(member).second ? 1U : 0U;
    return integer_reply(added);
}

value srem(context& ctx, arguments args) {
    const auto [members, wrong_type] = ctx.find_as<member_set>(args[1]);
    if (wrong_type) return wrong_type_error();
    if (members == nullptr) return value::make_integer(0);
    std::size_t removed = 0;
    for (const auto member : args.subspan(2)) {
        if (const auto found = members->find(member); found != members->end()) {
            members->erase(found);
            ++removed;
        }
    }
    ctx.drop_if_empty(args[1], *members);
    return integer_reply(removed);
}

value smembers(context& ctx, arguments args) {
    const auto [members, wrong_type] = ctx.find_as<member_set>(args[1]);
    if (wrong_type) return wrong_type_error();
    std::vector<value> out;
    if (members != nullptr) {
        for (const auto& member : *members) out.push_back(bulk_reply(member));
    }
    return value::make_array(std::move(out));
}

value scard(context& ctx, arguments args) {
    const auto [members, wrong_type] = ctx.find_as<member_set>(args[1]);
    if (wrong_type) return wrong_type_error();
    return integer_reply(members == nullptr ? 0 : members->size());
}

value sismember(context& ctx, arguments args) {
    const auto [members, wrong_type] = ctx.find_as<member_set>(args[1]);
    if (wrong_type) return wrong_type_error();
    return value::make_integer(members != nullptr && members->contains(args[2]) ? 1 : 0);
}

constexpr command set_commands_table[] = {
    {"sadd", -3, writes | adds_memory, one_key, sadd}, {"srem", -3, writes, one_key, srem},
    {"smembers", 2, reads, one_key, smembers},         {"scard", 2, reads, one_key, scard},
    {"sismember", 3, reads, one_key, sismember},
};

}  // namespace

std::span<const command> set_commands() {
    return set_commands_table;
}

}  // namespace holdfast::sim
