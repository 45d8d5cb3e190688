#include <algorithm>
#include <cctype>
#include <utility>

#include "support/fake_server.hpp"

namespace holdfast::testing {
namespace {

bool is_hello(const command& asked) {
    if (asked.empty()) return false;
    return std::ranges::equal(asked.front(), std::string_view{"HELLO"},
                              [](unsigned char a, char b) { return std::toupper(a) == b; });
}

std::string bulk(std::string_view text) {
    return "$" + std::to_string(text.size()) + "\r\n" + std::string{text} + "\r\n";
}

// An array that announces more elements than it sends, cut off inside an element.
constexpr std::string_view half_a_reply = "*3\r\n$5\r\nfirst\r\n$6\r\nsec";

}  // namespace

namespace answers {

void nothing(fake_connection&, const command&) {}

void garbage(fake_connection& connection, const command&) {
    connection.write("\x16\x03\x01 this is not RESP\r\n\xff\xfe\r\n");
}

void half_then_silence(fake_connection& connection, const command&) {
    connection.write(half_a_reply);
    connection.ignore_the_rest();
}

void half_then_close(fake_connection& connection, const command&) {
    connection.write(half_a_reply);
    connection.close();
}

void half_then_reset(fake_connection& connection, const command&) {
    connection.write(half_a_reply);
    connection.reset();
}

void giant_bulk_header(fake_connection& connection, const command&) {
    connection.write("$4611686018427387904\r\nand so on");
    connection.ignore_the_rest();
}

command_handler with(std::string bytes) {
    return [bytes = std::move(bytes)](fake_connection& connection, const command&) { connection.write(bytes); };
}

}  // namespace answers

namespace behaviours {

session each_command(command_handler handler) {
    return [handler = std::move(handler)](fake_connection& connection) {
        while (const std::optional<command> asked = connection.read_command()) handler(connection, *asked);
    };
}

session silent() {
    return [](fake_connection& connection) { connection.ignore_the_rest(); };
}

session closing() {
    return [](fake_connection& connection) { connection.close(); };
}

session garbage() {
    return each_command(&answers::garbage);
}

session half_reply_then_silence() {
    return each_command(&answers::half_then_silence);
}

session half_reply_then_close() {
    return each_command(&answers::half_then_close);
}

session giant_bulk_header() {
    return each_command(&answers::giant_bulk_header);
}

std::string hello_reply(const hello& fields) {
    return "%7\r\n" + bulk("server") + bulk(fields.server) + bulk("version") + bulk(fields.version) + bulk("proto") +
           ":3\r\n" + bulk("id") + ":7\r\n" + bulk("mode") + bulk(fields.mode) + bulk("role") + bulk(fields.role) +
           bulk("modules") + "*0\r\n";
}

session after_hello(command_handler handler, hello fields) {
    return each_command(
        [handler = std::move(handler), reply = hello_reply(fields)](fake_connection& connection, const command& asked) {
            if (is_hello(asked)) {
                connection.write(reply);
            } else {
                handler(connection, asked);
            }
        });
}

}  // namespace behaviours
}  // namespace holdfast::testing
