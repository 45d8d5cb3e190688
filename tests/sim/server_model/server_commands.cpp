// Commands about the server: time, messages, and the whole keyspace.

#include "server_model/command.hpp"

namespace holdfast::sim {
namespace {

value ping(context&, arguments args) {
    if (args.size() > 2) return arity_error("ping");
    return args.size() == 2 ? bulk_reply(args[1]) : value::make_status("PONG");
}

value echo(context&, arguments args) {
    return bulk_reply(args[1]);
}

value time(context& ctx, arguments) {
    if (!ctx.told_us) ctx.told_us = ctx.clock_us();
    value out = value::make_array(std::vector<value>(2));  // no initializer list: that would copy the values
    out.items[0] = value::make_bulk(std::to_string(ctx.clock_us() / 1'000'000));
    out.items[1] = value::make_bulk(std::to_string(ctx.clock_us() % 1'000'000));
    return out;
}

value dbsize(context& ctx, arguments) {
    return integer_reply(ctx.keys.size());
}

value flushall(context& ctx, arguments args) {
    if (args.size() > 2 || (args.size() == 2 && !same_word(args[1], "sync") && !same_word(args[1], "async"))) {
        return syntax_error();
    }
    ctx.keys.clear();
    return value::make_status("OK");
}

value publish(context& ctx, arguments args) {
    return integer_reply(ctx.pubsub.publish(channel_kind::plain, args[1], {args[2]}));
}
value spublish(context& ctx, arguments args) {
    return integer_reply(ctx.pubsub.publish(channel_kind::sharded, args[1], {args[2]}));
}

value listener_counts(context& ctx, channel_kind kind, arguments names) {
    std::vector<value> out;
    for (const auto name : names) {
        out.push_back(bulk_reply(name));
        out.push_back(integer_reply(ctx.pubsub.listeners(kind, name)));
    }
    return value::make_array(std::move(out));
}

value numsub(context& ctx, arguments args) {
    return listener_counts(ctx, channel_kind::plain, args.subspan(2));
}
value shardnumsub(context& ctx, arguments args) {
    return listener_counts(ctx, channel_kind::sharded, args.subspan(2));
}

value channel_names(context& ctx, channel_kind kind, arguments args) {
    if (args.size() > 3) {
        return value::make_error("ERR unknown subcommand or wrong number of arguments for '" + std::string{args[1]} +
                                 "'. Try PUBSUB HELP.");
    }
    std::vector<value> out;
    for (const auto& name : ctx.pubsub.names(kind)) {
        if (args.size() == 2 || glob_matches(args[2], name)) out.push_back(bulk_reply(name));
    }
    return value::make_array(std::move(out));
}

value channels_command(context& ctx, arguments args) {
    return channel_names(ctx, channel_kind::plain, args);
}
value shardchannels(context& ctx, arguments args) {
    return channel_names(ctx, channel_kind::sharded, args);
}
value numpat(context&, arguments) {
    return value::make_integer(0);
}

constexpr command server_commands_table[] = {
    {"ping", -1, reads, {}, ping},
    {"echo", 2, reads, {}, echo},
    {"time", 1, reads, {}, time},
    {"dbsize", 1, reads | whole_keyspace, {}, dbsize},
    {"flushall", -1, writes | whole_keyspace, {}, flushall},
    {"publish", 3, reads, {}, publish},
    {"spublish", 3, reads | in_a_slot, {}, spublish},
    {"pubsub", -2, reads, {}, nullptr},
    {"pubsub|numsub", -2, reads, {}, numsub},
    {"pubsub|channels", -2, reads, {}, channels_command},
    {"pubsub|shardnumsub", -2, reads, {}, shardnumsub},
    {"pubsub|shardchannels", -2, reads, {}, shardchannels},
    {"pubsub|numpat", 2, reads, {}, numpat},
};

}  // namespace

std::span<const command> server_commands() {
    return server_commands_table;
}

}  // namespace holdfast::sim
