// Random replies, their bytes, and random damage to bytes. Everything follows from the seed.
#pragma once

#include <array>
#include <random>
#include <string>
#include <string_view>

#include "unit/redis/resp/resp_support.hpp"

namespace holdfast::redis::testing {

class reply_generator {
public:
    enum class protocol { resp2, resp3 };

    reply_generator(std::uint32_t seed, protocol speaks) : random_(seed), speaks_(speaks) {}

    std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>{0, bound - 1}(random_); }

    tree reply(std::size_t depth_left = 4) {
        constexpr std::array resp2{resp_type::array,   resp_type::simple_string, resp_type::simple_error,
                                   resp_type::integer, resp_type::bulk_string,   resp_type::null};
        constexpr std::array more{resp_type::map,
                                  resp_type::set,
                                  resp_type::push,
                                  resp_type::double_number,
                                  resp_type::boolean,
                                  resp_type::blob_error,
                                  resp_type::verbatim_string,
                                  resp_type::big_number};
        const std::size_t choice = below(speaks_ == protocol::resp2 ? resp2.size() : resp2.size() + more.size());
        return reply_of(choice < resp2.size() ? resp2[choice] : more[choice - resp2.size()], depth_left);
    }

    std::string encode(const tree& t) {
        std::string bytes = speaks_ == protocol::resp3 && below(12) == 0 ? attribute() : "";
        const std::string text = t.type == resp_type::verbatim_string ? "txt:" + t.text : t.text;
        switch (t.type) {
            case resp_type::simple_string:
                return bytes + "+" + text + "\r\n";
            case resp_type::simple_error:
                return bytes + "-" + text + "\r\n";
            case resp_type::double_number:
                return bytes + "," + text + "\r\n";
            case resp_type::big_number:
                return bytes + "(" + text + "\r\n";
            case resp_type::integer:
                return bytes + ":" + std::to_string(t.integer) + "\r\n";
            case resp_type::boolean:
                return bytes + (t.integer == 1 ? "#t\r\n" : "#f\r\n");
            case resp_type::bulk_string:
                return bytes + blob('$', text);
            case resp_type::blob_error:
                return bytes + blob('!', text);
            case resp_type::verbatim_string:
                return bytes + blob('=', text);
            case resp_type::null:
                return bytes + any_null();
            case resp_type::array:
                return bytes + children('*', t.children, t.children.size());
            case resp_type::map:
                return bytes + children('%', t.children, t.children.size() / 2);
            case resp_type::set:
                return bytes + children('~', t.children, t.children.size());
            case resp_type::push:
                return bytes + children('>', t.children, t.children.size());
        }
        return bytes;
    }

    /// Changes, removes, doubles or moves a few bytes, mostly syntax.
    std::string damage(std::string bytes) {
        constexpr std::string_view telling = "\r\n$*:+-0123456789 ?x%~_,#|>(=!";
        for (std::size_t times = 1 + below(3); times > 0 && !bytes.empty(); --times) {
            const std::size_t at = below(bytes.size());
            const std::size_t length = 1 + below(6);
            switch (below(6)) {
                case 0:
                    bytes[at] = telling[below(telling.size())];
                    break;
                case 1:
                    bytes[at] = static_cast<char>(below(256));
                    break;
                case 2:
                    bytes.insert(at, 1, telling[below(telling.size())]);
                    break;
                case 3:
                    bytes.erase(at, length);
                    break;
                case 4:
                    bytes.insert(at, bytes.substr(below(bytes.size()), length));
                    break;
                default:
                    bytes.resize(at);
                    break;
            }
        }
        return bytes;
    }

private:
    tree reply_of(resp_type type, std::size_t depth_left) {
        switch (type) {
            case resp_type::array:
            case resp_type::set:
            case resp_type::push:
                return with_children(type, below(4), depth_left);
            case resp_type::map:
                return with_children(type, 2 * below(3), depth_left);
            case resp_type::integer:
                return number(integer());
            case resp_type::boolean:
                return boolean(static_cast<int>(below(2)));
            case resp_type::null:
                return null();
            case resp_type::double_number:
                return leaf(type, number_text(below(3)));
            case resp_type::big_number:
                return leaf(type, std::to_string(integer()) + std::string(below(30), '7'));
            case resp_type::simple_string:
            case resp_type::simple_error:
                return leaf(type, printable(below(20)));
            default:
                return leaf(type, any_bytes(below(8) == 0 ? below(400) : below(20)));
        }
    }

    tree with_children(resp_type type, std::size_t count, std::size_t depth_left) {
        tree t = aggregate(type, {});
        if (depth_left == 0) return t;
        for (; count > 0; --count) t.children.push_back(reply(depth_left - 1));
        return t;
    }

    // All bit lengths are equally likely.
    std::int64_t integer() {
        const auto bits = std::uniform_int_distribution<std::uint64_t>{}(random_);
        return static_cast<std::int64_t>(bits) >> below(64);
    }

    std::string number_text(std::size_t kind) {
        if (kind == 0) return std::array{"inf", "-inf", "nan"}[below(3)];
        return std::to_string(integer()) + (kind == 1 ? ".25" : "e-7");
    }

    std::string printable(std::size_t length) {
        std::string text;
        while (text.size() < length) text += static_cast<char>(' ' + below(95));
        return text;
    }

    std::string any_bytes(std::size_t length) {
        std::string text;
        while (text.size() < length) text += below(4) == 0 ? "\r\n" : std::string(1, static_cast<char>(below(256)));
        return text;
    }

    std::string any_null() {
        return std::array{"$-1\r\n", "*-1\r\n", "_\r\n"}[below(speaks_ == protocol::resp2 ? 2 : 3)];
    }

    std::string attribute() {
        const tree about = with_children(resp_type::map, 2 * below(3), 1);
        return children('|', about.children, about.children.size() / 2);
    }

    static std::string blob(char type, const std::string& text) {
        return type + std::to_string(text.size()) + "\r\n" + text + "\r\n";
    }

    std::string children(char type, const std::vector<tree>& all, std::size_t announced) {
        std::string bytes = type + std::to_string(announced) + "\r\n";
        for (const tree& child : all) bytes += encode(child);
        return bytes;
    }

    std::mt19937 random_;
    protocol speaks_;
};

}  // namespace holdfast::redis::testing
