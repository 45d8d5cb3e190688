// A server that misbehaves on purpose, for tests of clients whose peer hangs, lies or sends garbage. The test defines
// the behaviour per connection. Each connection has its own thread; stopping the server ends every wait in it at once.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/sockets.hpp"
#include "support/stop_event.hpp"

namespace holdfast::testing {

/// One accepted connection. Only the session's thread uses it; it closes when the session returns.
class fake_connection {
public:
    fake_connection(unique_fd socket, const stop_event& stopping, int number);

    /// The received bytes, at least one; empty when the peer closed or the server stops.
    std::string read_some();

    /// One RESP command of bulk strings; nothing when the peer closed, the server stops, or the input is no such
    /// command.
    std::optional<std::vector<std::string>> read_command();

    /// False if the peer has closed or the server stops.
    bool write(std::string_view bytes);

    void close() noexcept;

    /// Closes so that the peer sees "connection reset".
    void reset() noexcept;

    /// Reads and discards until the peer closes or the server stops.
    void ignore_the_rest();

    /// False if the server stops first.
    bool sleep_for(std::chrono::milliseconds time) const { return stopping_.sleep_for(time); }

    /// The connection's number, from 0.
    int number() const noexcept { return number_; }

private:
    bool fill();
    std::optional<std::string> read_line();
    std::optional<std::string> read_exactly(std::size_t length);

    unique_fd socket_;
    const stop_event& stopping_;
    int number_;
    std::string buffer_;  // read, not yet returned
};

using session = std::function<void(fake_connection&)>;
using command = std::vector<std::string>;
using command_handler = std::function<void(fake_connection&, const command&)>;

/// Answers to one command. After silence or a close there is nothing more to answer.
namespace answers {
void nothing(fake_connection& connection, const command& asked);
void garbage(fake_connection& connection, const command& asked);
void half_then_silence(fake_connection& connection, const command& asked);
void half_then_close(fake_connection& connection, const command& asked);
void half_then_reset(fake_connection& connection, const command& asked);
void giant_bulk_header(fake_connection& connection,
                       const command& asked);  // announces 2^62 bytes, sends a few
command_handler with(std::string bytes);       // always these
}  // namespace answers

/// Behaviours of a connection.
namespace behaviours {
session silent();   // accepts, reads, never answers
session closing();  // closes at once
session garbage();  // for the first command; the others below likewise
session half_reply_then_silence();
session half_reply_then_close();
session giant_bulk_header();
session each_command(command_handler handler);

struct hello {
    std::string server = "redis";
    std::string version = "7.0.15";
    std::string mode = "standalone";
    std::string role = "master";
};
std::string hello_reply(const hello& fields);

/// Answers HELLO as a Redis of that version would, and leaves every other command to the handler.
session after_hello(command_handler handler, hello fields = {});
}  // namespace behaviours

struct fake_server_options {
    std::filesystem::path unix_path{};  // also listens there, if given
};

class misbehaving_server {
public:
    explicit misbehaving_server(session behaviour, fake_server_options options = {});
    ~misbehaving_server();
    misbehaving_server(misbehaving_server&&) noexcept;
    misbehaving_server& operator=(misbehaving_server&&) noexcept;

    int port() const;
    std::string url() const;       // redis://127.0.0.1:port
    std::string unix_url() const;  // unix:///path

    /// The number of connections accepted so far.
    int connections() const;

    /// Ends all sessions and closes the listeners; the port then refuses connections. Idempotent.
    void stop();

private:
    class state;
    std::unique_ptr<state> state_;
};

}  // namespace holdfast::testing
