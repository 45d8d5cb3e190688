// Commands on hashes.

#include "server_model/command.hpp"
#include "server_model/numbers.hpp"

namespace holdfast::sim {
namespace {

value hset(context& ctx, arguments args) {
    if (args.size() % 2 != 0) return arity_error("hset");
    const auto [hash, wrong_type] = ctx.find_or_create<field_map>(args[1]);
    if (wrong_type) return wrong_type_error();
    std::size_t added = 0;
    for (std::size_t i = 2; i < args.size(); i += 2) added += hash->set(args[i], std::string{args[i + 1]}) ? 1U : 0U;
    return integer_reply(added);
}

value hsetnx(context& ctx, arguments args) {
    const auto [hash, wrong_type] = ctx.find_or_create<field_map>(args[1]);
    if (wrong_type) return wrong_type_error();
    if (hash->find(args[2]) != nullptr) return value::make_integer(0);
    hash->set(args[2], std::string{args[3]});
    return value::make_integer(1);
}

value field_or_nil(const field_map* hash, std::string_view field) {
    const std::string* text = hash == nullptr ? nullptr : hash->find(field);
    return text == nullptr ? value::make_nil() : bulk_reply(*text);
}

value hget(context& ctx, arguments args) {
    const auto [hash, wrong_type] = ctx.find_as<field_map>(args[1]);
    return wrong_type ? wrong_type_error() : field_or_nil(hash, args[2]);
}

value hmget(context& ctx, arguments args) {
    const auto [hash, wrong_type] = ctx.find_as<field_map>(args[1]);
    if (wrong_type) return wrong_type_error();
    std::vector<value> out;
    for (const auto field : args.subspan(2)) out.push_back(field_or_nil(hash, field));
    return value::make_array(std::move(out));
}

value hdel(context& ctx, arguments args) {
    const auto [hash, wrong_type] = ctx.find_as<field_map>(args[1]);
    if (wrong_type) return wrong_type_error();
    if (hash == nullptr) return value::make_integer(0);
    std::size_t removed = 0;
    for (const auto field : args.subspan(2)) removed += hash->erase(field) ? 1U : 0U;
    ctx.drop_if_empty(args[1], *hash);
    return integer_reply(removed);
}

value hlen(context& ctx, arguments args) {
    const auto [hash, wrong_type] = ctx.find_as<field_map>(args[1]);
    if (wrong_type) return wrong_type_error();
    return integer_reply(hash == nullptr ? 0 : hash->size());
}

value hexists(context& ctx, arguments args) {
    const auto [hash, wrong_type] = ctx.find_as<field_map>(args[1]);
    if (wrong_type) return wrong_type_error();
    return value::make_integer(hash != nullptr && hash->find(args[2]) != nullptr ? 1 : 0);
}

value hincrby(context& ctx, arguments args) {
    const auto by = parse_integer(args[3]);
    if (!by) return not_an_integer_error();
    const auto [hash, wrong_type] = ctx.find_as<field_map>(args[1]);
    if (wrong_type) return wrong_type_error();
    std::int64_t number = 0;
    if (const std::string* text = hash == nullptr ? nullptr : hash->find(args[2])) {
        const auto parsed = parse_integer(*text);
        if (!parsed) return value::make_error("ERR hash value is not an integer");
        number = *parsed;
    }
    if (__builtin_add_overflow(number, *by, &number)) {
        return value::make_error("ERR increment or decrement would overflow");
    }
    ctx.find_or_create<field_map>(args[1]).data->set(args[2], std::to_string(number));
    return value::make_integer(number);
}

enum listing : unsigned { names = 1, contents = 2 };

value list(context& ctx, std::string_view key, unsigned what) {
    const auto [hash, wrong_type] = ctx.find_as<field_map>(key);
    if (wrong_type) return wrong_type_error();
    std::vector<value> out;
    if (hash != nullptr) {
        for (const auto& [field, text] : hash->in_order()) {
            if ((what & names) != 0) out.push_back(bulk_reply(field));
            if ((what & contents) != 0) out.push_back(bulk_reply(text));
        }
    }
    return value::make_array(std::move(out));
}

value hkeys(context& ctx, arguments args) {
    return list(ctx, args[1], names);
}
value hvals(context& ctx, arguments args) {
    return list(ctx, args[1], contents);
}
value hgetall(context& ctx, arguments args) {
    return list(ctx, args[1], names | contents);
}

constexpr command hash_commands_table[] = {
    {"hset", -4, writes | adds_memory, one_key, hset},
    {"hsetnx", 4, writes | adds_memory, one_key, hsetnx},
    {"hget", 3, reads, one_key, hget},
    {"hmget", -3, reads, one_key, hmget},
    {"hdel", -3, writes, one_key, hdel},
    {"hlen", 2, reads, one_key, hlen},
    {"hexists", 3, reads, one_key, hexists},
    {"hincrby", 4, writes | adds_memory, one_key, hincrby},
    {"hkeys", 2, reads, one_key, hkeys},
    {"hvals", 2, reads, one_key, hvals},
    {"hgetall", 2, reads, one_key, hgetall},
};

}  // namespace

std::span<const command> hash_commands() {
    return hash_commands_table;
}

}  // namespace holdfast::sim
