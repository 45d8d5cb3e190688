// The limits of the small HTTP server, with limits small enough to be reached.
#include "cli/web/http_server.hpp"

#include "cli/web/web_guard.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

#include <memory>
#include <string>
#include <vector>

namespace holdfast::cli::http_server_test {
namespace {

using namespace std::chrono_literals;
using boost::asio::ip::tcp;
using boost::system::error_code;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class HttpServer : public ::testing::Test {
protected:
    void serve(http_limits limits) {
        server_ = std::make_unique<http_server>(
            context_, "127.0.0.1:0",
            [this](const http_request& asked) -> http_answer {
                if (asked.path == "/stream") {
                    return {.body = "begin\n", .listener = [this](const auto& stream) { streams_.push_back(stream); }};
                }
                return {.body = asked.method + " " + asked.path + " " + asked.body};
            },
            limits);
        const std::string url = server_->url();
        port_ = static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
    }

    tcp::socket connect() {
        tcp::socket socket(peers_);
        socket.connect({boost::asio::ip::address_v4::loopback(), port_});
        return socket;
    }
    static void say(tcp::socket& socket, const std::string& text) {
        boost::asio::write(socket, boost::asio::buffer(text));
    }

    // Everything until the server closes; the server runs meanwhile.
    std::string answer_to(const std::string& text) {
        tcp::socket socket = connect();
        say(socket, text);
        return rest_of(socket);
    }
    std::string rest_of(tcp::socket& socket) {
        std::string all;
        bool is_over = false;
        boost::asio::async_read(socket, boost::asio::dynamic_buffer(all),
                                [&](error_code, std::size_t) { is_over = true; });
        run_until([&] { return is_over; });
        return all;
    }
    template <typename Question>
    void run_until(const Question& question) {
        const auto end = std::chrono::steady_clock::now() + 60s;
        while (!question() && std::chrono::steady_clock::now() < end) {
            context_.restart();
            context_.run_for(1ms);
            peers_.restart();
            peers_.run_for(1ms);
        }
        ASSERT_TRUE(question());
    }

    boost::asio::io_context context_;
    boost::asio::io_context peers_;
    std::unique_ptr<http_server> server_;
    std::vector<std::weak_ptr<http_stream>> streams_;
    std::uint16_t port_ = 0;
};

TEST_F(HttpServer, BodyOfAPostIsReadUpToTheLimit) {
    serve({.body_bytes = 5});
    EXPECT_THAT(answer_to("POST /x HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"), HasSubstr("POST /x hello"));
    EXPECT_THAT(answer_to("POST /x HTTP/1.1\r\nContent-Length: 6\r\n\r\n"), StartsWith("HTTP/1.1 413"));
    EXPECT_THAT(answer_to("POST /x HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), StartsWith("HTTP/1.1 400"));
    EXPECT_THAT(answer_to("POST /x HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 400"));
    EXPECT_THAT(answer_to("PUT /x HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 405"));
}

TEST_F(HttpServer, WithoutALimitNobodyPosts) {
    serve({});
    EXPECT_THAT(answer_to("POST /x HTTP/1.1\r\nContent-Length: 0\r\n\r\n"), StartsWith("HTTP/1.1 405"));
}

TEST_F(HttpServer, HeadsThatCouldMeanTwoThingsAreRefused) {
    serve({.body_bytes = 100});
    for (const char* line : {"Host: a\r\nHost: b", "Transfer-Encoding: chunked",
                             "Content-Length: 1\r\nContent-Length: 2", "no colon", ": no name", "space : x"}) {
        EXPECT_THAT(answer_to("GET / HTTP/1.1\r\n" + std::string(line) + "\r\n\r\n"), StartsWith("HTTP/1.1 400"))
            << line;
    }
    EXPECT_THAT(answer_to("GET / HTTP/1.1\r\nX: " + std::string(9000, 'x') + "\r\n\r\n"), StartsWith("HTTP/1.1 431"));
    EXPECT_THAT(answer_to("nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400"));
}

TEST_F(HttpServer, ConnectionThatSaysNothingIsEnded) {
    serve({.talk = 20ms});
    tcp::socket silent = connect();
    EXPECT_EQ(rest_of(silent), "");
}

TEST_F(HttpServer, ConnectionsBeyondTheLimitAreClosedAndLaterOnesServed) {
    serve({.connections = 1});
    tcp::socket first = connect();
    tcp::socket second = connect();
    EXPECT_EQ(rest_of(second), "");
    say(first, "GET /a HTTP/1.1\r\n\r\n");
    EXPECT_THAT(rest_of(first), HasSubstr("GET /a"));
    EXPECT_THAT(answer_to("GET /b HTTP/1.1\r\n\r\n"), HasSubstr("GET /b"));
}

TEST_F(HttpServer, StreamsBeyondTheLimitAreRefusedUntilOneEnds) {
    serve({.streams = 1});
    {
        tcp::socket first = connect();
        say(first, "GET /stream HTTP/1.1\r\n\r\n");
        run_until([this] { return streams_.size() == 1; });
        EXPECT_THAT(answer_to("GET /stream HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 503"));
    }
    run_until([this] { return streams_[0].expired(); });
    tcp::socket next = connect();
    say(next, "GET /stream HTTP/1.1\r\n\r\n");
    run_until([this] { return streams_.size() == 2; });
}

TEST_F(HttpServer, AnswerThatIsLongerThanTheLimitIsSentWhole) {
    serve({.body_bytes = 1'000'000, .unread_bytes = 1000});
    const std::string body(100'000, 'x');
    EXPECT_THAT(answer_to("POST /x HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + body), HasSubstr(body));
}

TEST_F(HttpServer, StreamBeginsWithItsBodyAndGoesOn) {
    serve({});
    tcp::socket reader = connect();
    say(reader, "GET /stream HTTP/1.1\r\n\r\n");
    run_until([this] { return streams_.size() == 1; });
    streams_[0].lock()->send(std::make_shared<const std::string>("more\n"));
    std::string text;
    bool is_read = false;
    boost::asio::async_read_until(reader, boost::asio::dynamic_buffer(text), "more\n",
                                  [&](error_code, std::size_t) { is_read = true; });
    run_until([&] { return is_read; });
    EXPECT_THAT(text, HasSubstr("begin\nmore\n"));
}

TEST_F(HttpServer, ReaderThatTakesNothingIsDropped) {
    serve({.unread_bytes = 1 << 20});
    tcp::socket lazy = connect();
    say(lazy, "GET /stream HTTP/1.1\r\n\r\n");
    run_until([this] { return streams_.size() == 1; });
    const auto text = std::make_shared<const std::string>(100'000, 'x');
    std::size_t sent = 0;
    run_until([&] {
        if (const auto stream = streams_[0].lock()) stream->send(text);
        sent += text->size();
        return streams_[0].expired() || !streams_[0].lock()->is_open();
    });
    EXPECT_LT(sent, 100U << 20U);
}

TEST_F(HttpServer, ReaderThatIsTooSlowForOnePieceIsDropped) {
    serve({.unread_bytes = 1U << 30U, .talk = 50ms});
    tcp::socket lazy = connect();
    say(lazy, "GET /stream HTTP/1.1\r\n\r\n");
    run_until([this] { return streams_.size() == 1; });
    streams_[0].lock()->send(std::make_shared<const std::string>(64U << 20U, 'x'));  // more than sockets keep
    run_until([this] { return streams_[0].expired(); });
}

// --- who may ask

int status_for(const web_guard& guard, const std::map<std::string, std::string>& fields,
               const std::string& path = "/events") {
    const auto no = guard.refuse({.method = "GET", .path = path, .fields = fields});
    return no ? no->status : 200;
}

TEST(WebGuard, AnswersToAddressesLocalhostAndNamesThatWereToldOnly) {
    const web_guard guard{.hosts = {"locks.example"}};
    for (const char* host :
         {"127.0.0.1:7575", "127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:7575", "10.1.2.3:80", "locks.example"}) {
        EXPECT_EQ(status_for(guard, {{"host", host}}), 200) << host;
    }
    for (const char* host :
         {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example:7575", "", "[::1", "[]", "x@127.0.0.1"}) {
        EXPECT_EQ(status_for(guard, {{"host", host}}), 421) << host;
    }
    EXPECT_EQ(status_for(guard, {}), 421);
}

TEST(WebGuard, RefusesWhatComesFromOtherSites) {
    const web_guard guard;
    const std::string host = "127.0.0.1:7575";
    EXPECT_EQ(status_for(guard, {{"host", host}, {"origin", "http://127.0.0.1:7575"}}), 200);
    for (const char* origin :
         {"http://evil.example", "null", "http://127.0.0.1:80", "http://127.0.0.1:75755", "file://"}) {
        EXPECT_EQ(status_for(guard, {{"host", host}, {"origin", origin}}), 403) << origin;
    }
    EXPECT_EQ(status_for(guard, {{"host", host}, {"sec-fetch-site", "same-origin"}}), 200);
    EXPECT_EQ(status_for(guard, {{"host", host}, {"sec-fetch-site", "cross-site"}}), 403);
    EXPECT_EQ(status_for(guard, {{"host", host}, {"sec-fetch-site", "same-site"}}), 403);
    // A link may open the page, which has no data in it, but not what has.
    const std::map<std::string, std::string> link{
        {"host", host}, {"sec-fetch-site", "cross-site"}, {"sec-fetch-dest", "document"}};
    EXPECT_EQ(status_for(guard, link, "/"), 200);
    EXPECT_EQ(status_for(guard, link, "/metrics"), 403);
}

TEST(WebGuard, TokenIsWantedWhole) {
    const web_guard guard{.token = "0123456789abcdef"};
    const auto is_let_in = [&guard](const std::string& told) {
        return !guard.refuse_without_token({.fields = {{"authorization", told}}});
    };
    EXPECT_TRUE(is_let_in("Bearer 0123456789abcdef"));
    for (const char* wrong : {"", "Bearer ", "Bearer 0123456789abcde", "Bearer 0123456789abcdef0", "0123456789abcdef",
                              "Basic 0123456789abcdef"}) {
        EXPECT_FALSE(is_let_in(wrong)) << wrong;
    }
    EXPECT_TRUE(web_guard{}.refuse_without_token({.fields = {{"authorization", "Bearer "}}}));  // none has any
    EXPECT_NE(random_token(), random_token());
    EXPECT_EQ(random_token().size(), 32U);
}

}  // namespace
}  // namespace holdfast::cli::http_server_test
