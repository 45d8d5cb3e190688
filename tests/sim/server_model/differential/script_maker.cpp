#include "server_model/differential/script_maker.hpp"

#include <algorithm>
#include <initializer_list>
#include <regex>
#include <sstream>

#include "wire/scripts.hpp"

namespace holdfast::sim {
namespace {

// Prints a Lua value with its types, to see how a reply was converted.
#define SHOW                                                                                            \
    "local function show(v) if type(v) ~= 'table' then return type(v) .. ':' .. tostring(v) end "       \
    "local t = {} for k, e in pairs(v) do t[#t + 1] = tostring(k) .. '=' .. show(e) end table.sort(t) " \
    "return '{' .. table.concat(t, ',') .. '}' end "

// Each takes one command as ARGV and all keys as KEYS.
constexpr std::string_view around_one_command[] = {
    "return redis.call(unpack(ARGV))",
    "return redis.call(unpack(ARGV))",
    "return redis.pcall(unpack(ARGV))",
    "return {redis.pcall(unpack(ARGV)), 'after'}",
    SHOW "return show(redis.call(unpack(ARGV)))",
    SHOW "return show(redis.pcall(unpack(ARGV)))",
    SHOW "return show({pcall(redis.call, unpack(ARGV))})",
    SHOW "return show({pcall(redis.pcall, unpack(ARGV))})",
    "local r = redis.pcall(unpack(ARGV)) if type(r) == 'table' and r.err then return {'failed', r.err} end "
    "return r",
    "local r = redis.call(unpack(ARGV))\nif not r then\n return 'nothing'\nend\nreturn type(r)",
    "redis.call('DEL', KEYS[1])\nlocal r = redis.call(unpack(ARGV))\nredis.call('SET', KEYS[1], "
    "'done')\nreturn r",
    "local t = redis.call('TIME')\nlocal r = redis.pcall(unpack(ARGV))\nreturn {t[1], t[2], r}",
    "local ok, e = pcall(function() return redis.call(unpack(ARGV)) end)\nif not ok then error(e) end return "
    "e",
    "local ok, e = pcall(redis.call, unpack(ARGV))\nif not ok then return redis.error_reply(e) end return e",
    "return {redis.call('PTTL', KEYS[2]), redis.pcall(unpack(ARGV)), redis.call('PTTL', KEYS[2])}",
};

// Each takes a number, a text and a score as ARGV.
constexpr std::string_view on_values[] = {
    "return tonumber(ARGV[1])",
    "return {tonumber(ARGV[1]) or 'none', ARGV[2], tonumber(ARGV[3]) or false, true, false, 'end'}",
    "return {1, 2.9, -3.7, 'a', {ARGV[2], {ok = 'fine'}, {err = 'MY error'}}, nil, 5}",
    "return tostring(tonumber(ARGV[3]))",
    "return string.format('%.0f', tonumber(ARGV[3]) or 0)",
    "return string.format('%.0f', ARGV[3])",
    "return string.format('%.0f')",
    "return tonumber()",
    "return string.find(nil, '^%d+$')",
    "local out = {} for i, text in ipairs({'0', '007', '9007199254740992', '9007199254740993', '99999999999999999', "
    "' 5', '0x10', '1e3', '-4', '-0', '', '1.5', '1 ', ARGV[1], ARGV[2], ARGV[3]}) do local n = tonumber(text) "
    "out[i] = {tostring(n), n and string.format('%.17g %.0f', n, n), n and string.format('%.0f', n), "
    "n and string.format('%.0f', text), {string.find(text, '^%d+$')}} end return out",
    "local n = tonumber(ARGV[3]) if n then return redis.call('SET', KEYS[1], n) end return "
    "redis.status_reply('NaN')",
    "return {redis.pcall('ZADD', KEYS[1], tonumber(ARGV[3]) or 0, ARGV[2]), redis.pcall('ZSCORE', KEYS[1], "
    "ARGV[2])}",
    "local n = tonumber(ARGV[1]) or 0 return redis.call('HSET', KEYS[1], ARGV[2], n + 0.5, n, n * 2)",
    "return redis.call('GET', nil)",
    "return redis.call('SET', KEYS[1], {})",
    "return redis.pcall('SET', KEYS[1], true)",
    "return redis.call()",
    "return redis.pcall()",
    "return redis.error_reply(ARGV[2])",
    "return redis.error_reply('-' .. ARGV[2])",
    "return redis.error_reply('CODE ' .. ARGV[2])",
    "return redis.status_reply(ARGV[2])",
    "return redis.status_reply()",
    "return {err = 'TOP ' .. ARGV[2]}",
    "return {ok = ARGV[2]}",
    "return {double = tonumber(ARGV[3]) or 1.5}",
    "error('x' .. ARGV[2])",
    "\n\nerror({err = 'OWN ' .. ARGV[2]})",
    "error(tonumber(ARGV[1]))",
    "error(ARGV[2], 0)",
    "local function f()\n error('deep', 2)\nend\nf()",
    "return undefined_thing",
    "undefined_thing = 1",
    "KEYS = {}",
    "redis.call = nil",
    "string.format = nil",
    "rawset(_G, 'x', 1)",
    "setmetatable(_G, {})",
    "return rawset({}, 1, 'x')",
    "return ARGV[2] + 1",
    "return ARGV[9] .. 'x'",
    "local x = nil return x.y",
    "return #ARGV + #KEYS",
    "return redis.sha1hex(ARGV[2])",
    "return redis.sha1hex()",
    "return {redis.log(redis.LOG_NOTICE, 'x')}",
    "return redis.replicate_commands()",
    "return function() end",
    "return redis.call('EVAL', 'return 1', 0)",
    "return redis.call('SUBSCRIBE', 'x')",
    "return redis.pcall('SCRIPT', 'FLUSH')",
    "this is not lua",
    "return 1 2",
    "return (((",
    "return string.rep('x', 'y')",
    "return {math.floor(2.5), math.max(1, 3), select('#', unpack(ARGV)), tostring(nil), type(redis.foo)}",
    "return string.match(ARGV[2], '^(%w+)-(%d+)$')",
    "return {string.match(ARGV[2], '^(%w+)-(%d+)$')}",
    "local t = {} for w in string.gmatch(ARGV[2], '%S+') do t[#t + 1] = w end return t",
    "assert(false, ARGV[2])",
    "assert(redis.call('GET', KEYS[1]) == 1, 'not one')",
    "return loadstring('return KEYS[1]')()",
    "return loadstring('return nothing_here')()",
    "local c = coroutine.wrap(function() coroutine.yield(ARGV[2]) end) return c()",
};

// ARGV: number of words, words, number of words, words, ...
constexpr std::string_view run_all =
    "local out, i = {}, 1\n"
    "while i <= #ARGV do\n"
    "  local n = tonumber(ARGV[i])\n"
    "  out[#out + 1] = redis.pcall(unpack(ARGV, i + 1, i + n))\n"
    "  i = i + n + 1\n"
    "end\n"
    "return out";

constexpr std::string_view all_keys[] = {"k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"};
constexpr std::string_view ids[] = {
    "hf_aaaaaaaaaaaaaaaa.1.aaaaaaaaaaaaaaaaaaaaaa",   "hf_aaaaaaaaaaaaaaaa.2.bbbbbbbbbbbbbbbbbbbbbb",
    "hf_bbbbbbbbbbbbbbbb.1.cccccccccccccccccccccc",   "hf_bbbbbbbbbbbbbbbb.2.dddddddddddddddddddddd",
    "hf_cccccccccccccccc.1.eeeeeeeeeeeeeeeeeeeeee",   "hf_cccccccccccccccc.02.ffffffffffffffffffffff",
    "hf_dddddddddddddddd.001.gggggggggggggggggggggg", "foreign"};
constexpr std::string_view preferences[] = {"arrival", "readers", "writers"};
constexpr std::string_view wishes[] = {"r", "r", "w", "u"};
constexpr std::string_view rests[] = {"", "", "r", "w"};
constexpr std::string_view wakes[] = {"w:a", "w:a", "w:b", "w:c", "w:{a}", ""};
constexpr std::string_view lock_names[] = {"{one}", "{two}"};

word_list eval(std::string_view script) {
    word_list command{"EVAL", std::string{script}, std::to_string(std::size(all_keys))};
    for (const auto key : all_keys) command.emplace_back(key);
    return command;
}

bool mentions(std::string_view description, std::string_view word) {
    return std::regex_search(std::string{description}, std::regex{"\\b" + std::string{word}});
}

argument_kind kind_of(std::string_view description) {
    const std::string_view subject = description.substr(0, description.find_first_of(",;:("));
    const auto about = [subject](std::initializer_list<std::string_view> any) {
        return std::any_of(any.begin(), any.end(), [subject](auto word) { return mentions(subject, word); });
    };
    if (about({"limit", "permits"})) return argument_kind::count;
    if (about({"version"})) return argument_kind::version;
    if (about({"preference"})) return argument_kind::preference;
    if (about({"wants"})) return argument_kind::wish;
    if (subject.starts_with("what is left")) return argument_kind::rest;
    if (description.starts_with("for u")) return argument_kind::moment;
    if (mentions(description, "from now on")) return argument_kind::later_moment;
    if (subject.starts_with("token of the grant") && subject.size() == description.size())
        return argument_kind::past_moment;
    if (about({"token", "floor", "ticket"})) return argument_kind::moment;
    if (about({"ms", "retention", "lease"})) return argument_kind::duration;
    if (about({"channel"})) return argument_kind::channel;
    if (about({"id", "owner"})) return argument_kind::id;
    return argument_kind::unknown;
}

}  // namespace

word_list script_maker::several_commands() {
    word_list command = eval(run_all);
    for (std::size_t left = 2 + random_.below(6); left > 0; --left) {
        const word_list one = commands_.ordered();
        command.push_back(std::to_string(one.size()));
        command.insert(command.end(), one.begin(), one.end());
    }
    return command;
}

word_list script_maker::small() {
    if (random_.one_in(3)) return several_commands();
    if (random_.one_in(2)) {
        word_list command = eval(random_.pick(on_values));
        for (const auto& argument : {commands_.integer(), commands_.text(), commands_.score()}) {
            command.push_back(argument);
        }
        return command;
    }
    word_list command = eval(random_.pick(around_one_command));
    const word_list inner = commands_.ordered();
    command.insert(command.end(), inner.begin(), inner.end());
    return command;
}

std::vector<std::string> documented(std::string_view script, std::string_view heading) {
    // The heading line and its continuation lines, up to the next heading.
    std::istringstream lines{std::string{script}};
    std::string entries;
    bool inside = false;
    for (std::string line; std::getline(lines, line) && line.starts_with("--");) {
        const bool opens = line.starts_with("-- " + std::string{heading} + " ");
        if (!opens && line.size() > 3 && line[3] != ' ') inside = false;
        if (opens) inside = true;
        if (inside) entries += ' ' + line.substr(opens ? 3 + heading.size() : 2);
    }
    std::vector<std::string> found;
    const std::regex entry{R"(  (\d+) )"};
    std::sregex_iterator at{entries.begin(), entries.end(), entry};
    for (const std::sregex_iterator end; at != end;) {
        const auto start = static_cast<std::size_t>(at->position() + at->length());
        if (std::stoul((*at)[1]) != found.size() + 1) {
            ++at;
            continue;
        }
        ++at;
        found.push_back(
            entries.substr(start, at == end ? std::string::npos : static_cast<std::size_t>(at->position()) - start));
    }
    return found;
}

script_maker::script_maker(random_source& random, command_maker& commands) : random_(random), commands_(commands) {
    for (const auto& script : wire::all()) {
        described one{std::string{script.sha1}, std::string{script.name.substr(0, script.name.find('/'))}, {}, {}};
        for (const auto& role : documented(script.text, "KEYS")) {
            one.roles.push_back(role.substr(0, role.find_first_of(" ,;:(")));
        }
        for (const auto& description : documented(script.text, "ARGV")) {
            one.arguments.push_back(kind_of(description));
            if (!description.ends_with("then of each lock")) continue;
            one.locks = 2;
            one.common = one.arguments.size();
        }
        if (one.locks == 1) one.common = one.arguments.size();
        holdfast_.push_back(std::move(one));
    }
}

std::string script_maker::make(argument_kind kind) {
    if (random_.one_in(150)) return commands_.text();
    switch (kind) {
        case argument_kind::moment:
            if (random_.one_in(2)) return "0";
            [[fallthrough]];
        case argument_kind::past_moment:
            return std::to_string(now_us_ + static_cast<std::int64_t>(random_.below(20'000)) - 15'000);
        case argument_kind::later_moment:
            return std::to_string(now_us_ + 10'000 + static_cast<std::int64_t>(random_.below(20'000)));
        case argument_kind::duration:
            return std::to_string(1 + random_.below(random_.one_in(3) ? 5000 : 40));
        case argument_kind::channel:
            return std::string{random_.pick(wakes)};
        case argument_kind::id:
            return std::string{random_.pick(ids)};
        case argument_kind::count:
            return std::to_string(random_.one_in(4) ? 1 + random_.below(4) : 3);
        case argument_kind::version:
            return random_.one_in(2) ? "" : std::string{random_.pick(ids)};
        case argument_kind::preference:
            return std::string{random_.pick(preferences)};
        case argument_kind::wish:
            return std::string{random_.pick(wishes)};
        case argument_kind::rest:
            return std::string{random_.pick(rests)};
        case argument_kind::unknown:
            break;
    }
    return random_.one_in(2) ? std::to_string(random_.below(3)) : std::string{random_.pick(ids)};
}

word_list script_maker::of_holdfast() {
    const described& script = holdfast_[random_.below(holdfast_.size())];
    const std::string name{random_.pick(lock_names)};
    word_list command{"EVALSHA", script.sha1, std::to_string(script.locks * script.roles.size())};
    // The same role has the same key in every script of a lock kind. Locks that are taken together share a slot.
    for (std::size_t i = 0; i < script.locks; ++i) {
        const std::string lock = script.family + ":" + name + std::string(i, '+') + ":";
        for (const auto& role : script.roles) command.push_back(lock + role);
    }
    for (std::size_t i = 0; i < script.common; ++i) {
        const bool is_number_of_locks = script.locks > 1 && i == 0;
        command.push_back(is_number_of_locks ? std::to_string(script.locks) : make(script.arguments[i]));
    }
    for (std::size_t i = 0; i < script.locks; ++i) {
        for (std::size_t at = script.common; at < script.arguments.size(); ++at) {
            command.push_back(make(script.arguments[at]));
        }
    }
    return command;
}

std::vector<std::string> script_maker::holdfast_texts() {
    std::vector<std::string> texts;
    for (const auto& script : wire::all()) texts.emplace_back(script.text);
    return texts;
}

}  // namespace holdfast::sim
