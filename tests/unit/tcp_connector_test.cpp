// To whom a TCP connection is made, and who is asked for it.
#include "net/tcp_connector.hpp"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include <optional>

namespace holdfast::net::tcp_connector_test {
namespace {

class fake_stream {
public:
    explicit fake_stream(endpoint target) : target_(std::move(target)) {}
    const endpoint& target() const noexcept { return target_; }
    template <typename Then>
    auto then(Then next) {
        return next;
    }

private:
    endpoint target_;
};

/// Knows no name.
class fake_resolver {
public:
    template <typename... Rest>
    void async_resolve(const std::string& host, Rest&&...) {
        asked_for = host;
    }

    std::optional<std::string> asked_for;
};

class TcpConnector : public ::testing::Test {
protected:
    void connect(const std::string& host, std::uint16_t port) {
        fake_stream stream({.host = host, .port = port, .path = {}, .tls = {}, .display = {}});
        connect_tcp(stream, resolver, socket, [this](const boost::system::error_code& code) { outcome = code; });
        EXPECT_FALSE(outcome) << "never from within";
        context.run();
    }

    boost::asio::io_context context;
    tcp::socket socket{context};
    fake_resolver resolver;
    std::optional<boost::system::error_code> outcome;
};

// Asio resolves all names of a process's context in one thread, one after the other.
TEST_F(TcpConnector, AnAddressIsNotResolved) {
    tcp::acceptor acceptor{context, {boost::asio::ip::address_v4::loopback(), 0}};
    connect("127.0.0.1", acceptor.local_endpoint().port());
    EXPECT_EQ(resolver.asked_for, std::nullopt);
    EXPECT_EQ(outcome, boost::system::error_code());
}

TEST_F(TcpConnector, NeitherIsAnAddressOfTheOtherKind) {
    connect("::1", 1);
    EXPECT_EQ(resolver.asked_for, std::nullopt);
    EXPECT_TRUE(outcome && *outcome) << "nobody is there";
}

TEST_F(TcpConnector, ANameIs) {
    connect("localhost", 1);
    EXPECT_EQ(resolver.asked_for, "localhost");
}

}  // namespace
}  // namespace holdfast::net::tcp_connector_test
